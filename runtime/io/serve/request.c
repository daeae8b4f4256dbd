/* io/serve/request.c - parses the head of a request: one line and its fields.
 *
 * Any program on this machine can send anything: every byte is checked, nothing is allocated, and
 * only paths of plain characters are accepted. The host is checked because a foreign web page may
 * use a name that points to 127.0.0.1, and could then read what is served here. */
#include "io/serve/request.h"

#include <stdio.h> /* snprintf */
#include <string.h>
#include <strings.h> /* strncasecmp */

bool gp_request_is_whole(const char *text, size_t size) {
  return memmem(text, size, "\r\n\r\n", 4) != NULL || memmem(text, size, "\n\n", 2) != NULL;
}

static bool starts(const char *text, size_t size, const char *word) {
  size_t length = strlen(word);
  return size >= length && memcmp(text, word, length) == 0;
}

static bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && strchr("._-/", c) != NULL);
}

/* Read "/path HTTP/1.1" up to the end of the line; a query after the path is ignored. */
static int read_target(const char *text, size_t size, gp_request *request) {
  size_t length = 0;
  while (length < size && is_plain(text[length])) length++;
  if (length == 0 || length >= GP_REQUEST_PATH || text[0] != '/') return 400;
  memcpy(request->path, text, length);
  request->path[length] = '\0';
  if (strstr(request->path, "..")) return 400;
  const char *space = memchr(text + length, ' ', size - length);
  if (!space || (text[length] != ' ' && text[length] != '?')) return 400;
  size_t left = size - (size_t)(space + 1 - text);
  if (!starts(space + 1, left, "HTTP/")) return 400;
  return starts(space + 1, left, "HTTP/1.") ? 0 : 505;
}

/* The bytes of the first line; a newline alone also ends a line (RFC 9112, 2.2). *next: where the
 * next line begins. */
static size_t line_of(const char *text, size_t size, size_t *next) {
  const char *end = memchr(text, '\n', size);
  size_t line = end ? (size_t)(end - text) : size;
  *next = end ? line + 1 : size;
  return line > 0 && end && text[line - 1] == '\r' ? line - 1 : line;
}

/* Find the host field's value, without spaces around it; false if the head has none, or two. */
static bool find_host(const char *text, size_t size, const char **value, size_t *length) {
  int found = 0;
  for (size_t at = 0, next; at < size; at += next) {
    size_t line = line_of(text + at, size - at, &next);
    if (line > 5 && strncasecmp(text + at, "Host:", 5) == 0) {
      *value = text + at + 5;
      *length = line - 5;
      while (*length && **value == ' ') ++*value, --*length;
      while (*length && (*value)[*length - 1] == ' ') --*length;
      found++;
    }
  }
  return found == 1;
}

static bool is_own_host(const char *value, size_t length, int port) {
  static const char *const names[] = {"127.0.0.1", "localhost"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char wanted[32];
    int size = snprintf(wanted, sizeof wanted, "%s:%d", names[i], port);
    if ((size_t)size == length && strncasecmp(value, wanted, length) == 0) return true;
    if (port == 80 && strlen(names[i]) == length && strncasecmp(value, names[i], length) == 0)
      return true;
  }
  return false;
}

int gp_request_read(const char *text, size_t size, int port, gp_request *request) {
  const char *host = NULL;
  size_t next, line = line_of(text, size, &next), host_length = 0;
  *request = (gp_request){.head_only = starts(text, line, "HEAD ")};
  size_t method = request->head_only ? 5 : 4;
  if (!request->head_only && !starts(text, line, "GET ")) return 405;
  int code = read_target(text + method, line - method, request);
  if (code) return code;
  if (!find_host(text, size, &host, &host_length)) return 400;
  return is_own_host(host, host_length, port) ? 0 : 403;
}
