/* device/rows_version.h - a hash of what the rows of ops.def mean, which the core and its plugin
 * compare.
 *
 * It is of the rows as the compiler sees them: comments, blanks and the texts for people do not
 * count, so that editing those refuses no plugin. Included only where it is compared. */
#ifndef GP_DEVICE_ROWS_VERSION_H
#define GP_DEVICE_ROWS_VERSION_H

#include <stdint.h>

/* FNV-1a. */
static inline uint64_t gp_rows_version(void) {
  static const char *const rows[] = {
#define GP_OP(name, operands, outputs, attributes, flags, text)                                    \
#name ":" #operands ":" #outputs ":" #attributes ":" #flags ";",
#include "ops/rows.def"
#undef GP_OP
  };
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
    for (const char *at = rows[i]; *at; at++)
      hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
  return hash;
}

#endif
