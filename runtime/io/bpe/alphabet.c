/* io/bpe/alphabet.c - GPT-2's alphabet of 256 printable characters for the 256 bytes.
 *
 * Bytes that are printable in Latin-1 stand for themselves; the others, in ascending order, are
 * U+0100 and up. Source: Radford et al., 2019, bytes_to_unicode of encoder.py. */
#include "io/bpe/alphabet.h"

#include "io/text/utf8.h"

static bool is_printable(unsigned code) {
  return (code >= '!' && code <= '~') || (code >= 0xa1 && code <= 0xac) ||
         (code >= 0xae && code <= 0xff);
}

/* The byte of a code point, or -1: bytes 0..32, 127..160 and 173 have the code points from 256
 * on. */
static int byte_of(unsigned code) {
  if (code < 0x100) return is_printable(code) ? (int)code : -1;
  if (code < 0x100 + 33) return (int)(code - 0x100);
  if (code < 0x100 + 33 + 34) return (int)(code - 0x100 - 33 + 127);
  return code == 0x100 + 33 + 34 ? 173 : -1;
}

bool gp_alphabet_bytes(const char *string, size_t size, char *bytes, size_t *count) {
  size_t n = 0;
  for (size_t at = 0; at < size;) {
    size_t step = gp_utf8_step((unsigned char)string[at]);
    int byte = byte_of(gp_utf8_code(string + at));
    if (byte < 0) return false;
    at += step;
    bytes[n++] = (char)byte;
  }
  *count = n;
  return true;
}
