/* io/text/utf8.c - well-formed UTF-8. Source: RFC 3629; Unicode 15, table 3-7. */
#include "io/text/utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of the well-formed sequence at p (of n > 0 bytes); 0 if there is none. */
static size_t sequence_length(const unsigned char *p, size_t n) {
  if (p[0] < 0x80) return 1;
  size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || n < length) return 0;
  for (size_t i = 1; i < length; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
  bool outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
  return overlong || outside ? 0 : length;
}

/* Look at eight bytes at a time first, because most text is ASCII. */
size_t gp_utf8_prefix(const char *text, size_t size) {
  size_t at = 0;
  while (at < size) {
    uint64_t eight;
    while (size - at >= sizeof eight) {
      memcpy(&eight, text + at, sizeof eight);
      if (eight & 0x8080808080808080u) break;
      at += sizeof eight;
    }
    if (at == size) break;
    size_t length = sequence_length((const unsigned char *)text + at, size - at);
    if (!length) break;
    at += length;
  }
  return at;
}

bool gp_utf8_valid(const char *text, size_t size) { return gp_utf8_prefix(text, size) == size; }

size_t gp_utf8_step(unsigned char lead) {
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

unsigned gp_utf8_code(const char *text) {
  static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  size_t length = gp_utf8_step((unsigned char)text[0]);
  unsigned code = (unsigned char)text[0] & mask[length];
  for (size_t i = 1; i < length; i++) code = code << 6 | ((unsigned char)text[i] & 0x3f);
  return code;
}
