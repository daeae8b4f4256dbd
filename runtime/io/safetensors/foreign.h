/* io/safetensors/foreign.h - recognise by its first bytes a file that is not what it was given
 * as. */
#ifndef GP_IO_SAFETENSORS_FOREIGN_H
#define GP_IO_SAFETENSORS_FOREIGN_H

#include <stddef.h>

enum { GP_FOREIGN_BYTES = 32 }; /* the first bytes of a file that are looked at */

/* What it is, with what to do about it ("a Python pickle (...)"); NULL: nothing known. */
const char *gp_foreign_name(const void *first, size_t bytes);

#endif
