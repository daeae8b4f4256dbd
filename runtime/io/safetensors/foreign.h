/* io/safetensors/foreign.h - recognises files of other formats by their first bytes. */
#ifndef GP_IO_SAFETENSORS_FOREIGN_H
#define GP_IO_SAFETENSORS_FOREIGN_H

#include <stddef.h>

enum { GP_FOREIGN_BYTES = 32 }; /* how many bytes are looked at */

/* What the file is, and what to do about it ("a Python pickle (...)"); NULL: unknown. */
const char *gp_foreign_name(const void *first, size_t bytes);

#endif
