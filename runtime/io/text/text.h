/* io/text/text.h - a text that grows: for headers that are built before they go to a file. */
#ifndef GP_IO_TEXT_TEXT_H
#define GP_IO_TEXT_TEXT_H

#include "base/status.h"

typedef struct gp_text {
  char *data; /* not NUL-terminated */
  size_t size, capacity;
} gp_text;

/* Append bytes, a C string, a number, or a C string as a JSON string. Errors: GP_ENOMEM. */
gp_status gp_text_bytes(gp_text *text, const char *bytes, size_t count);
gp_status gp_text_string(gp_text *text, const char *string);
gp_status gp_text_uint(gp_text *text, uint64_t value);
gp_status gp_text_quote(gp_text *text, const char *string);
void gp_text_clear(gp_text *text);

#endif
