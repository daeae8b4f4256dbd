/* io/safetensors/names.c - the ordered set: an array of names and an open-addressing table of
 * positions.
 *
 * A checkpoint may hold a million tensors, so finding duplicate names must not be quadratic.
 * Invariant: every name in the array is in the table, and the table has a free slot. Texts lie one
 * after another in blocks: a separate allocation would cost a short name ten times its bytes. */
#include "io/safetensors/names.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

enum { FIRST_SLOTS = 64, FIRST_BLOCK = 256, LARGEST_BLOCK = 64 << 10 };

typedef struct gp_names_block {
  struct gp_names_block *next;
  size_t used, size;
  char text[];
} block;

static size_t hash(const char *name) {
  return (size_t)gp_hash_fold(gp_hash_text(GP_HASH_START, name));
}

/* The slot that holds the name, or the free one where it belongs. */
static size_t find_slot(const gp_names *names, const char *name) {
  size_t mask = names->slots - 1, at = hash(name) & mask;
  while (names->slot[at] && strcmp(names->name[names->slot[at] - 1], name)) at = (at + 1) & mask;
  return at;
}

/* Double the table before it is more than half full, so that searches stay short. */
static gp_status grow_table(gp_names *names) {
  if (2 * (names->count + 1) <= names->slots) return GP_OK;
  size_t slots = names->slots ? 2 * names->slots : FIRST_SLOTS;
  if (slots > UINT32_MAX) return gp_fail(GP_ENOMEM, "archive: too many names");
  void *slot = NULL;
  GP_TRY(gp_alloc_array(slots, sizeof *names->slot, &slot));
  gp_free(names->slot);
  names->slot = slot;
  names->slots = slots;
  for (size_t i = 0; i < names->count; i++)
    names->slot[find_slot(names, names->name[i])] = (uint32_t)(i + 1);
  return GP_OK;
}

static gp_status grow_array(gp_names *names) {
  void *array = names->name;
  GP_TRY(gp_grow_array(names->count, &names->capacity, sizeof *names->name, &array));
  names->name = array;
  return GP_OK;
}

/* Add a block. Sizes double, so that few names take little memory and many names take few
 * blocks. */
static gp_status add_block(gp_names *names, size_t wanted) {
  size_t size = names->blocks ? 2 * names->blocks->size : FIRST_BLOCK, bytes = 0;
  if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
  if (size < wanted) size = wanted;
  GP_TRY(gp_size_add(sizeof(block), size, &bytes));
  void *memory = NULL;
  GP_TRY(gp_alloc(bytes, &memory));
  block *made = memory;
  *made = (block){.next = names->blocks, .size = size};
  names->blocks = made;
  return GP_OK;
}

gp_status gp_names_store(gp_names *names, const char *text, char **copy) {
  size_t bytes = strlen(text) + 1;
  if (!names->blocks || names->blocks->size - names->blocks->used < bytes)
    GP_TRY(add_block(names, bytes));
  block *b = names->blocks;
  *copy = memcpy(b->text + b->used, text, bytes);
  b->used += bytes;
  return GP_OK;
}

gp_status gp_names_add(gp_names *names, const char *name) {
  GP_TRY(grow_table(names));
  GP_TRY(grow_array(names));
  size_t at = find_slot(names, name);
  if (names->slot[at]) return gp_fail(GP_EINVAL, "'%.100s' is given twice", name);
  GP_TRY(gp_names_store(names, name, &names->name[names->count]));
  names->slot[at] = (uint32_t)++names->count;
  return GP_OK;
}

void gp_names_clear(gp_names *names) {
  while (names->blocks) {
    block *next = names->blocks->next;
    gp_free(names->blocks);
    names->blocks = next;
  }
  gp_free(names->name);
  gp_free(names->slot);
  *names = (gp_names){0};
}
