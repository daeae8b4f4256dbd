/* base/map.h - numbers found by keys: what would otherwise be searched for in a list.
 *
 * A key has three parts, so that one map serves several kinds of things and pairs of them.
 */
#ifndef GP_BASE_MAP_H
#define GP_BASE_MAP_H

#include "base/status.h"

typedef struct gp_map_key {
  uint64_t thing; /* a pointer or a number */
  int32_t kind, part;
} gp_map_key;

typedef struct gp_map_entry {
  gp_map_key key;
  int32_t value; /* + 1; 0: an empty place */
} gp_map_entry;

typedef struct gp_map {
  gp_map_entry *entries; /* room is a power of two, at most half full */
  size_t count, room;
} gp_map;

/* Return the number stored for a key, or -1. */
int32_t gp_map_get(const gp_map *map, gp_map_key key);
/* Store a number from 0 on for a key that has none. */
gp_status gp_map_put(gp_map *map, gp_map_key key, int32_t value);
/* Make `to`, which holds nothing, an equal map. */
gp_status gp_map_copy(const gp_map *from, gp_map *to);
void gp_map_free(gp_map *map); /* frees what it holds, not the struct */

#endif
