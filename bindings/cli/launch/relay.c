/* bindings/cli/launch/relay.c - see relay.h. */
#include "cli/launch/relay.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pipes ----------------------------------------------------------------------------------- */

bool gp_relay_open(gp_relay *relay, int rank, bool shows) {
  relay->rank = rank;
  relay->shows = shows;
  relay->kept = malloc(GP_RELAY_KEPT);
  for (int s = 0; s < 2; s++) {
    int ends[2];
    if (!relay->kept || pipe2(ends, O_CLOEXEC)) return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    relay->streams[s].from = ends[0];
    relay->streams[s].to = ends[1];
  }
  return true;
}

void gp_relay_close(gp_relay *relay) {
  for (int s = 0; s < 2; s++) {
    if (relay->streams[s].from > 0) close(relay->streams[s].from);
    if (relay->streams[s].to > 0) close(relay->streams[s].to);
  }
  free(relay->kept);
  relay->kept = NULL;
}

/* Nothing comes from standard input: rank 0 reads it. */
void gp_relay_attach(const gp_relay *relay) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(relay->streams[0].to, STDOUT_FILENO);
  dup2(relay->streams[1].to, STDERR_FILENO);
}

void gp_relay_started(gp_relay *relay) {
  for (int s = 0; s < 2; s++) {
    close(relay->streams[s].to);
    relay->streams[s].to = -1;
  }
}

nfds_t gp_relay_list(const gp_relay *relay, struct pollfd *fds) {
  nfds_t count = 0;
  for (int s = 0; s < 2; s++)
    if (relay->streams[s].from > 0)
      fds[count++] = (struct pollfd){.fd = relay->streams[s].from, .events = POLLIN};
  return count;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void show(const gp_relay *relay, int stream, const char *line, size_t length) {
  FILE *to = stream ? stderr : stdout;
  fprintf(to, "[%d] %.*s\n", relay->rank, (int)length, line);
  fflush(to);
}

/* Keep the end of the errors. */
static void keep(gp_relay *relay, const char *line, size_t length) {
  if (length + 1 > GP_RELAY_KEPT) return;
  if (relay->kept_length + length + 1 > GP_RELAY_KEPT) {
    const size_t dropped = relay->kept_length + length + 1 - GP_RELAY_KEPT;
    memmove(relay->kept, relay->kept + dropped, relay->kept_length - dropped);
    relay->kept_length -= dropped;
  }
  memcpy(relay->kept + relay->kept_length, line, length);
  relay->kept_length += length;
  relay->kept[relay->kept_length++] = '\n';
}

static void end_line(gp_relay *relay, int stream) {
  gp_relay_stream *s = &relay->streams[stream];
  if (relay->shows)
    show(relay, stream, s->line, s->length);
  else if (stream)
    keep(relay, s->line, s->length);
  s->length = 0;
}

static void take(gp_relay *relay, int stream, const char *text, size_t n) {
  gp_relay_stream *s = &relay->streams[stream];
  for (size_t i = 0; i < n; i++) {
    if (text[i] != '\n') s->line[s->length++] = text[i];
    if (text[i] == '\n' || s->length == GP_RELAY_LINE) end_line(relay, stream);
  }
}

static void read_stream(gp_relay *relay, int stream) {
  gp_relay_stream *s = &relay->streams[stream];
  char text[4096];
  ssize_t n = 1;
  while (s->from > 0 && (n = read(s->from, text, sizeof text)) > 0)
    take(relay, stream, text, (size_t)n);
  if (s->from <= 0 || n != 0) return;
  if (s->length) end_line(relay, stream);
  close(s->from);
  s->from = -1;
}

void gp_relay_read(gp_relay *relay) {
  for (int s = 0; s < 2; s++) read_stream(relay, s);
}

void gp_relay_show_errors(const gp_relay *relay) {
  if (relay->shows || !relay->kept_length) return;
  for (size_t at = 0; at < relay->kept_length;) {
    const char *line = relay->kept + at;
    const char *end = memchr(line, '\n', relay->kept_length - at);
    show(relay, 1, line, (size_t)(end - line));
    at += (size_t)(end - line) + 1;
  }
}
