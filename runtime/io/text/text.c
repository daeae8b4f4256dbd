/* io/text/text.c - the growing text. It doubles, so appending n bytes costs O(n) in all. */
#include "io/text/text.h"

#include <inttypes.h>
#include <stdio.h> /* snprintf */
#include <string.h>

#include "base/memory.h"

enum { FIRST_CAPACITY = 4096 };

/* Make room for `more` bytes. On failure the text stays as it is: the caller clears it. */
static gp_status reserve(gp_text *text, size_t more) {
  size_t wanted;
  GP_TRY(gp_size_add(text->size, more, &wanted));
  if (wanted <= text->capacity) return GP_OK;
  size_t grown = FIRST_CAPACITY;
  GP_TRY(gp_size_mul(text->capacity, 2, &grown));
  if (grown < FIRST_CAPACITY) grown = FIRST_CAPACITY;
  if (grown < wanted) grown = wanted;
  void *data = text->data;
  GP_TRY(gp_resize_array(text->capacity, grown, 1, &data));
  text->data = data;
  text->capacity = grown;
  return GP_OK;
}

/* Append bytes. With none, data must not be touched: it is NULL at first. */
gp_status gp_text_bytes(gp_text *text, const char *bytes, size_t count) {
  if (!count) return GP_OK;
  GP_TRY(reserve(text, count));
  memcpy(text->data + text->size, bytes, count);
  text->size += count;
  return GP_OK;
}

gp_status gp_text_string(gp_text *text, const char *string) {
  return gp_text_bytes(text, string, strlen(string));
}

/* Append a number. It is printed as an integer: a double would round beyond 2^53. */
gp_status gp_text_uint(gp_text *text, uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRIu64, value);
  return gp_text_string(text, digits);
}

/* Does JSON require an escape for this character? */
static bool needs_escape(char c) { return (unsigned char)c < 0x20 || c == '"' || c == '\\'; }

/* Append a JSON string. Plain characters are copied in runs, because names hardly ever need an
 * escape. Characters above ASCII stay as they are: the header is UTF-8. */
gp_status gp_text_quote(gp_text *text, const char *string) {
  GP_TRY(gp_text_string(text, "\""));
  while (*string) {
    size_t plain = 0;
    while (string[plain] && !needs_escape(string[plain])) plain++;
    GP_TRY(gp_text_bytes(text, string, plain));
    string += plain;
    if (!*string) break;
    char escape[8];
    unsigned char c = (unsigned char)*string++;
    snprintf(escape, sizeof escape, c < 0x20 ? "\\u%04x" : "\\%c", c);
    GP_TRY(gp_text_string(text, escape));
  }
  return gp_text_string(text, "\"");
}

void gp_text_clear(gp_text *text) {
  gp_free(text->data);
  *text = (gp_text){0};
}
