/* io/safetensors/names.h - an ordered set of names: it finds positions by name and names by
 * position. */
#ifndef GP_IO_SAFETENSORS_NAMES_H
#define GP_IO_SAFETENSORS_NAMES_H

#include "base/status.h"

typedef struct gp_names {
  char **name; /* in the order of adding; the texts lie in blocks */
  size_t count, capacity;
  uint32_t *slot; /* hash table of positions + 1; 0 is free; a power of two, at most half full */
  size_t slots;
  struct gp_names_block *blocks; /* newest first */
} gp_names;

/* Append a copy of the name. Errors: GP_EINVAL for a duplicate. */
gp_status gp_names_add(gp_names *names, const char *name);
/* Copy another text that shall live as long as the names. */
gp_status gp_names_store(gp_names *names, const char *text, char **copy);
void gp_names_clear(gp_names *names);

#endif
