/* io/names.h - an ordered set of names: position by name and name by position. */
#ifndef GP_IO_NAMES_H
#define GP_IO_NAMES_H

#include "base/status.h"

typedef struct gp_names {
  char **name; /* owned, in the order of adding */
  size_t count, capacity;
  uint32_t *slot; /* hash table of positions + 1; 0 is free; a power of two, at most half full */
  size_t slots;
} gp_names;

/* Append a copy. Errors: GP_EINVAL for a name given twice. */
gp_status gp_names_add(gp_names *names, const char *name);
bool gp_names_has(const gp_names *names, const char *name);
void gp_names_clear(gp_names *names);

#endif
