/* io/text/utf8.h - finds out how much of a text is well-formed UTF-8. */
#ifndef GP_IO_TEXT_UTF8_H
#define GP_IO_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the longest well-formed beginning: no overlong forms, no surrogates, nothing beyond
 * U+10FFFF, no truncated character. */
size_t gp_utf8_prefix(const char *text, size_t size);
bool gp_utf8_valid(const char *text, size_t size);
/* The length of a character in well-formed text, by its lead byte. */
size_t gp_utf8_step(unsigned char lead);
/* The code point at `text`, which must be well-formed. */
unsigned gp_utf8_code(const char *text);

#endif
