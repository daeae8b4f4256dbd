/* io/bpe/vocabulary.c - the two tables, with open addressing.
 *
 * At most four fifths of the slots are used: fewer would be faster for rare words, but the tables
 * are as large as the files already. */
#include "io/bpe/vocabulary.h"

#include <string.h>

#include "base/memory.h"
#include "io/bpe/alphabet.h"

/* ---- hashing ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a) {
  a ^= a >> 32;
  a *= 0xd6e8feb86659fd93u;
  return a ^ a >> 32;
}

uint64_t gp_bytes_hash(const char *bytes, size_t size) {
  uint64_t hash = mix(size + 1);
  for (; size > 8; bytes += 8, size -= 8) {
    uint64_t eight;
    memcpy(&eight, bytes, 8);
    hash = mix(hash ^ eight);
  }
  uint64_t last = 0;
  memcpy(&last, bytes, size);
  return mix(hash ^ last);
}

static gp_status make_slots(size_t count, uint32_t **slot, size_t *slots) {
  size_t size = 16;
  while (size / 5 * 4 < count) size *= 2;
  void *memory = NULL;
  GP_TRY(gp_alloc_array(size, sizeof **slot, &memory));
  *slot = memory;
  *slots = size;
  return GP_OK;
}

/* ---- tokens -------------------------------------------------------------------------------- */

gp_status gp_vocabulary_open(gp_vocabulary *v, size_t count, size_t tokens, size_t bytes) {
  void *memory = NULL;
  GP_TRY(gp_alloc_array(count, sizeof *v->token, &memory));
  v->token = memory;
  v->count = count;
  memory = NULL;
  GP_TRY(gp_alloc(bytes + 1, &memory));
  v->bytes = memory;
  v->room = bytes;
  return make_slots(tokens, &v->slot, &v->slots);
}

/* The slot of a token, or the empty one where it belongs. `spelt`: the token is kept as files spell
 * it, which holds for added tokens and for strings outside the alphabet. */
static size_t find_slot(const gp_vocabulary *v, bool spelt, const char *bytes, size_t size) {
  size_t at = gp_bytes_hash(bytes, size) & (v->slots - 1);
  for (; v->slot[at]; at = (at + 1) & (v->slots - 1)) {
    const gp_token *token = &v->token[v->slot[at] - 1];
    if (token->size == size && (token->kind != GP_TOKEN_BYTES) == spelt &&
        memcmp(v->bytes + token->at, bytes, size) == 0)
      break;
  }
  return at;
}

gp_status gp_vocabulary_add(gp_vocabulary *v, uint32_t id, const char *string, bool added) {
  size_t size = strlen(string), bytes = size;
  char *to = v->bytes + v->used;
  GP_ASSERT(id < v->count && size <= v->room - v->used);
  if (v->token[id].kind != GP_TOKEN_NONE)
    return gp_fail(GP_EFORMAT, "id %u stands for '%.40s' and for another token", id, string);
  bool stands = !added && gp_alphabet_bytes(string, size, to, &bytes);
  if (!stands) memcpy(to, string, size);
  if (!stands) bytes = size;
  size_t slot = find_slot(v, !stands, to, bytes);
  if (v->slot[slot])
    return gp_fail(GP_EFORMAT, "token '%.40s' has the ids %u and %u", string, v->slot[slot] - 1,
                   id);
  gp_token_kind kind = stands ? GP_TOKEN_BYTES : added ? GP_TOKEN_ADDED : GP_TOKEN_STRING;
  v->token[id] = (gp_token){.at = (uint32_t)v->used, .size = bytes & 0x3fffffff, .kind = kind & 3};
  v->slot[slot] = id + 1;
  v->used += bytes;
  return GP_OK;
}

uint32_t gp_vocabulary_find(const gp_vocabulary *v, gp_token_kind kind, const char *bytes,
                            size_t size) {
  uint32_t id = v->slot[find_slot(v, kind != GP_TOKEN_BYTES, bytes, size)];
  return id ? id - 1 : GP_NO_TOKEN;
}

/* Look a string up. It is decoded into the free memory behind the tokens, and not kept. */
uint32_t gp_vocabulary_string(const gp_vocabulary *v, const char *string) {
  size_t size = strlen(string), bytes = size;
  bool stands =
      size <= v->room - v->used && gp_alphabet_bytes(string, size, v->bytes + v->used, &bytes);
  if (!stands) return gp_vocabulary_find(v, GP_TOKEN_STRING, string, size);
  return gp_vocabulary_find(v, GP_TOKEN_BYTES, v->bytes + v->used, bytes);
}

void gp_vocabulary_close(gp_vocabulary *v) {
  gp_free(v->bytes);
  gp_free(v->token);
  gp_free(v->slot);
  *v = (gp_vocabulary){0};
}

/* ---- merges -------------------------------------------------------------------------------- */

static size_t pair_slot(const gp_merges *m, uint32_t left, uint32_t right) {
  size_t at = mix((uint64_t)left << 32 | right) & (m->slots - 1);
  for (; m->slot[at]; at = (at + 1) & (m->slots - 1)) {
    const gp_merge *merge = &m->merge[m->slot[at] - 1];
    if (merge->left == left && merge->right == right) break;
  }
  return at;
}

gp_status gp_merges_index(gp_merges *m) {
  GP_TRY(make_slots(m->count, &m->slot, &m->slots));
  for (size_t i = 0; i < m->count; i++)
    m->slot[pair_slot(m, m->merge[i].left, m->merge[i].right)] = (uint32_t)i + 1;
  return GP_OK;
}

uint32_t gp_merges_find(const gp_merges *m, uint32_t left, uint32_t right) {
  return m->slot[pair_slot(m, left, right)] - 1; /* an empty slot gives GP_NO_TOKEN */
}

void gp_merges_close(gp_merges *m) {
  gp_free(m->merge);
  gp_free(m->into);
  gp_free(m->slot);
  *m = (gp_merges){0};
}
