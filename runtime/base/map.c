/* base/map.c - see map.h: open addressing with linear steps.
 *
 * Nothing is ever taken out, so a search may end at the first empty place, and no place needs a
 * mark for what was there. A value is stored plus one: memory that is all zeros is an empty map.
 */
#include "base/map.h"

#include <string.h>

#include "base/memory.h"

/* The multiplier is that of splitmix64. */
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 29;
}

/* Mix kind and part before the thing is added: things are addresses and small numbers, which
 * differ in few bits. */
static size_t hash(gp_map_key key) {
  uint64_t pair = (uint64_t)(uint32_t)key.kind << 32 | (uint32_t)key.part;
  return (size_t)mix(key.thing + mix(pair + 1));
}

static bool is_same(gp_map_key a, gp_map_key b) {
  return a.thing == b.thing && a.kind == b.kind && a.part == b.part;
}

/* Find where the key lies, or the empty place where it would. There is one: half of
 * them are empty. */
static size_t place_of(const gp_map *map, gp_map_key key) {
  size_t at = hash(key) & (map->room - 1);
  while (map->entries[at].value && !is_same(map->entries[at].key, key))
    at = (at + 1) & (map->room - 1);
  return at;
}

int32_t gp_map_get(const gp_map *map, gp_map_key key) {
  return map->room ? map->entries[place_of(map, key)].value - 1 : -1;
}

/* Double the room: a power of two, so that a mask takes the remainder. After a failure the
 * map is as before. */
static gp_status grow(gp_map *map) {
  gp_map larger = {.count = map->count, .room = map->room ? 2 * map->room : 16};
  GP_TRY(gp_alloc_array(larger.room, sizeof(gp_map_entry), (void **)&larger.entries));
  for (size_t i = 0; i < map->room; i++)
    if (map->entries[i].value)
      larger.entries[place_of(&larger, map->entries[i].key)] = map->entries[i];
  gp_free(map->entries);
  *map = larger;
  return GP_OK;
}

gp_status gp_map_put(gp_map *map, gp_map_key key, int32_t value) {
  /* at most half full: then a search looks at one or two places */
  if (2 * map->count >= map->room) GP_TRY(grow(map));
  map->entries[place_of(map, key)] = (gp_map_entry){.key = key, .value = value + 1};
  map->count++;
  return GP_OK;
}

gp_status gp_map_copy(const gp_map *from, gp_map *to) {
  *to = (gp_map){.count = from->count, .room = from->room};
  if (!from->room) return GP_OK;
  GP_TRY(gp_alloc_array(from->room, sizeof(gp_map_entry), (void **)&to->entries));
  memcpy(to->entries, from->entries, from->room * sizeof(gp_map_entry));
  return GP_OK;
}

void gp_map_free(gp_map *map) {
  gp_free(map->entries);
  *map = (gp_map){0};
}
