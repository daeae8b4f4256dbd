/* base/text.c - see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

gp_text gp_text_begin(char *text, size_t size) {
  if (size) *text = '\0';
  return (gp_text){text, size, 0};
}

void gp_text_put(gp_text *t, const char *format, ...) {
  va_list args;
  size_t left = t->length < t->size ? t->size - t->length : 0;
  va_start(args, format);
  int length = vsnprintf(left ? t->text + t->length : NULL, left, format, args);
  va_end(args);
  if (length > 0) t->length += (size_t)length;
}
