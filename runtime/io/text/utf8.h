/* io/text/utf8.h - where bytes are well-formed UTF-8 and where they are not. */
#ifndef GP_IO_TEXT_UTF8_H
#define GP_IO_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the longest well-formed beginning: no overlong forms, no surrogates, nothing beyond
 * U+10FFFF, no character cut off. */
size_t gp_utf8_prefix(const char *text, size_t size);
bool gp_utf8_valid(const char *text, size_t size);
/* Bytes of the character that a lead byte of well-formed text begins. */
size_t gp_utf8_step(unsigned char lead);
/* The code point at `text`, which is well-formed. */
unsigned gp_utf8_code(const char *text);

#endif
