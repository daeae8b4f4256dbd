/* device/link/ranks/near.c - see near.h. */
#include "device/link/ranks/near.h"

#include <stdlib.h>
#include <string.h>

#include "base/bell.h"
#include "base/memory.h"

enum { PAGE = 4096 };

/* A slot's words, on a cache line of their own: the run in the upper half, a count in the lower. */
typedef struct words {
  _Alignas(64) _Atomic uint64_t published; /* rounds; written by the maker */
  _Atomic uint64_t released;               /* last uses; written by the reader */
} words;

struct gp_near {
  gp_link_spec spec;
  gp_shared *slots;       /* words, then values from a page on */
  char *values;           /* slot 0, there */
  gp_shared *other_bells; /* NULL: not opened yet */
  gp_bell *other;         /* of the worker at the other end */
};

/* ---- memory ---------------------------------------------------------------------------------- */

static gp_status values_at(const gp_link_spec *spec, size_t *at) {
  return gp_size_align((size_t)spec->slots * sizeof(words), PAGE, at);
}

static gp_status bytes_of(const gp_link_spec *spec, size_t *bytes) {
  size_t at, values;
  GP_TRY(values_at(spec, &at));
  GP_TRY(gp_size_mul((size_t)spec->slots, spec->bytes, &values));
  return gp_size_add(at, values, bytes);
}

static words *words_of(const gp_near *near, int32_t slot) {
  return (words *)gp_shared_data(near->slots) + slot;
}

char *gp_near_slot(const gp_near *near, int32_t slot) {
  return near->values + (size_t)slot * near->spec.bytes;
}

/* Note where the values begin, once the memory is there. */
static gp_status find_values(gp_near *near) {
  size_t at;
  GP_TRY(values_at(&near->spec, &at));
  near->values = gp_shared_data(near->slots) + at;
  return GP_OK;
}

static gp_status open_bells(gp_near *near, const gp_near_offer *offer, int32_t number) {
  const size_t bytes = (size_t)near->spec.bell_count * sizeof(gp_bell);
  if (near->other) return GP_OK;
  GP_TRY(gp_shared_open(&offer->bells, bytes, &near->other_bells));
  near->other = (gp_bell *)gp_shared_data(near->other_bells) + number;
  return GP_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

gp_status gp_near_make_bells(int32_t count, gp_shared **bells) {
  const char *wish = getenv("GPIPE_RANKS_SHARED");
  if (wish && !strcmp(wish, "0"))
    return gp_fail(GP_EUNSUPPORTED, "ranks share no memory with GPIPE_RANKS_SHARED=0");
  GP_TRY(gp_shared_new((size_t)count * sizeof(gp_bell), bells));
  for (int32_t i = 0; i < count; i++) ((gp_bell *)gp_shared_data(*bells))[i].is_shared = true;
  return GP_OK;
}

static gp_status make(const gp_link_spec *spec, gp_near **near) {
  GP_TRY(gp_alloc(sizeof **near, (void **)near));
  (*near)->spec = *spec;
  return GP_OK;
}

gp_status gp_near_new(const gp_link_spec *spec, gp_near **near) {
  size_t bytes;
  gp_near *made;
  GP_TRY(bytes_of(spec, &bytes));
  GP_TRY(make(spec, &made));
  gp_status status = gp_shared_new(bytes, &made->slots);
  if (!status) status = find_values(made);
  if (status) return gp_near_free(made), status;
  *near = made;
  return GP_OK;
}

gp_near_offer gp_near_offer_of(const gp_near *near) {
  return (gp_near_offer){gp_shared_offer_of(near->spec.bells), gp_shared_offer_of(near->slots)};
}

gp_status gp_near_meet(gp_near *near, const gp_near_offer *maker) {
  return open_bells(near, maker, near->spec.from_bell);
}

void gp_near_seal(gp_near *near) { gp_shared_seal(near->slots); }

gp_status gp_near_open(const gp_link_spec *spec, const gp_near_offer *reader, gp_near **near) {
  size_t bytes;
  gp_near *made;
  GP_TRY(bytes_of(spec, &bytes));
  GP_TRY(make(spec, &made));
  gp_status status = gp_shared_open(&reader->slots, bytes, &made->slots);
  if (!status) status = find_values(made);
  if (!status) status = open_bells(made, reader, spec->to_bell);
  if (status) return gp_near_free(made), status;
  *near = made;
  return GP_OK;
}

void gp_near_free(gp_near *near) {
  if (!near) return;
  gp_shared_free(near->slots);
  gp_shared_free(near->other_bells);
  gp_free(near);
}

/* ---- words ----------------------------------------------------------------------------------- */

static uint64_t word_of(uint32_t run, uint32_t count) { return (uint64_t)run << 32 | count; }

/* The count, if it is of this run. */
static uint32_t count_in(uint64_t word, uint32_t run) {
  return word >> 32 == run ? (uint32_t)word : 0;
}

void gp_near_publish(gp_near *near, uint32_t run, gp_link_turn turn, const char *value) {
  if (near->spec.bytes) memcpy(gp_near_slot(near, turn.slot), value, near->spec.bytes);
  atomic_store(&words_of(near, turn.slot)->published, word_of(run, turn.round + 1));
  gp_bell_ring(near->other);
}

uint32_t gp_near_released(const gp_near *near, uint32_t run, int32_t slot) {
  return count_in(atomic_load(&words_of(near, slot)->released), run);
}

bool gp_near_has(const gp_near *near, uint32_t run, gp_link_turn turn) {
  return count_in(atomic_load(&words_of(near, turn.slot)->published), run) > turn.round;
}

/* The reader alone writes the word, so it may read it first. */
void gp_near_release(gp_near *near, uint32_t run, int32_t slot) {
  _Atomic uint64_t *word = &words_of(near, slot)->released;
  atomic_store(word, word_of(run, count_in(atomic_load(word), run) + 1));
  gp_bell_ring(near->other);
}
