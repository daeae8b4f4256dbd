/* base/text.h - a text under construction, in memory of the caller. */
#ifndef GP_BASE_TEXT_H
#define GP_BASE_TEXT_H

#include <stddef.h>

#include "base/status.h"

/* What does not fit is cut; length counts all the same, so that the caller learns how much room the
 * whole text needs. size 0: nothing is written. */
typedef struct gp_text {
  char *text;
  size_t size, length;
} gp_text;

/* Begin an empty text. */
gp_text gp_text_begin(char *text, size_t size);
void gp_text_put(gp_text *text, const char *format, ...) GP_PRINTF(2, 3);

#endif
