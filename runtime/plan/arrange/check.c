/* plan/arrange/check.c - proves that no two buffers that are alive together share a byte.
 *
 * A sweep over time keeps the set of buffers alive, numbered by their offsets. They are disjoint
 * so far, so that a new one overlaps one of them exactly if it overlaps its neighbour below or
 * above.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/arrange/arrange.h"

/* ---- a set of numbers ---------------------------------------------------------------------- */

enum { LEVELS = 6, BITS = 64 }; /* 64^6 exceeds any int32_t */

/* level[0] has a bit per number, each level above a bit per word that is not 0 below. */
typedef struct set {
  uint64_t *level[LEVELS];
  uint64_t *words;
} set;

static gp_status set_new(int32_t count, set *s) {
  size_t words = 0, begin[LEVELS];
  for (size_t k = 0, bits = (size_t)count; k < LEVELS; k++) {
    begin[k] = words;
    bits = bits / BITS + 1;
    words += bits;
  }
  GP_TRY(gp_alloc_array(words, sizeof *s->words, (void **)&s->words));
  for (int k = 0; k < LEVELS; k++) s->level[k] = s->words + begin[k];
  return GP_OK;
}

static void set_add(set *s, int32_t number) {
  for (int k = 0; k < LEVELS; k++, number /= BITS)
    s->level[k][number / BITS] |= UINT64_C(1) << number % BITS;
}

static void set_remove(set *s, int32_t number) {
  for (int k = 0; k < LEVELS; k++, number /= BITS) {
    s->level[k][number / BITS] &= ~(UINT64_C(1) << number % BITS);
    if (s->level[k][number / BITS]) return;
  }
}

static int32_t lowest_bit(uint64_t word) { return __builtin_ctzll(word); }
static int32_t highest_bit(uint64_t word) { return BITS - 1 - __builtin_clzll(word); }

/* Find the nearest number of the set above (or below) a number; -1: there is none. */
static int32_t set_near(const set *s, int32_t number, bool above) {
  for (int k = 0; k < LEVELS; k++, number /= BITS) {
    const int bit = number % BITS;
    uint64_t word = s->level[k][number / BITS];
    word &= above ? ~UINT64_C(1) << bit : ~(~UINT64_C(0) << bit);
    if (!word) continue;
    number = number / BITS * BITS + (above ? lowest_bit(word) : highest_bit(word));
    while (k-- > 0) {
      word = s->level[k][number];
      number = number * BITS + (above ? lowest_bit(word) : highest_bit(word));
    }
    return number;
  }
  return -1;
}

/* ---- the sweep ----------------------------------------------------------------------------- */

typedef struct key {
  int64_t time;
  size_t offset;
  int32_t buffer;
} key;

static int by_offset(const void *a, const void *b) {
  const key *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static int by_time(const void *a, const void *b) {
  const key *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

typedef struct sweep {
  const gp_lifespan *buffers;
  int32_t count;    /* buffers with bytes */
  key *at;          /* in the order of their offsets */
  key *begin, *end; /* `buffer` is a place in `at` */
  set alive;
} sweep;

static gp_status overlap(const sweep *w, int32_t a, int32_t b, int32_t pair[2]) {
  const int32_t i = w->at[a].buffer, k = w->at[b].buffer;
  if (pair) {
    pair[0] = i < k ? i : k;
    pair[1] = i < k ? k : i;
  }
  return gp_fail(GP_EINVAL,
                 "buffers %d and %d: both are alive at %lld and lie at %zu and %zu (%zu and %zu "
                 "bytes), expected places that do not overlap",
                 i, k,
                 (long long)(w->buffers[i].first > w->buffers[k].first ? w->buffers[i].first
                                                                       : w->buffers[k].first),
                 w->buffers[i].offset, w->buffers[k].offset, w->buffers[i].bytes,
                 w->buffers[k].bytes);
}

/* Do two buffers that are alive share a byte? a lies below b. */
static bool meet(const sweep *w, int32_t a, int32_t b) {
  if (a < 0 || b < 0) return false;
  return w->buffers[w->at[b].buffer].offset - w->buffers[w->at[a].buffer].offset <
         w->buffers[w->at[a].buffer].bytes;
}

static gp_status run(sweep *w, int32_t pair[2]) {
  for (int32_t i = 0, over = 0; i < w->count; i++) {
    const int32_t own = w->begin[i].buffer;
    for (; w->end[over].time < w->begin[i].time; over++) set_remove(&w->alive, w->end[over].buffer);
    const int32_t below = set_near(&w->alive, own, false), above = set_near(&w->alive, own, true);
    if (meet(w, below, own)) return overlap(w, below, own, pair);
    if (meet(w, own, above)) return overlap(w, own, above, pair);
    set_add(&w->alive, own);
  }
  return GP_OK;
}

static gp_status sort_keys(sweep *w, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    const gp_lifespan *s = &w->buffers[i];
    if (s->last < s->first)
      return gp_fail(GP_EINVAL, "buffer %d: it lives from %lld to %lld, expected ascending times",
                     (int)i, (long long)s->first, (long long)s->last);
    if (s->bytes) w->at[w->count++] = (key){.offset = s->offset, .buffer = i};
  }
  qsort(w->at, (size_t)w->count, sizeof *w->at, by_offset);
  for (int32_t i = 0; i < w->count; i++) {
    w->begin[i] = (key){.time = w->buffers[w->at[i].buffer].first, .buffer = i};
    w->end[i] = (key){.time = w->buffers[w->at[i].buffer].last, .buffer = i};
  }
  qsort(w->begin, (size_t)w->count, sizeof *w->begin, by_time);
  qsort(w->end, (size_t)w->count, sizeof *w->end, by_time);
  return GP_OK;
}

gp_status gp_arrange_check(const gp_lifespan *buffers, int32_t count, int32_t pair[2]) {
  sweep w = {.buffers = buffers};
  const size_t room = (size_t)count + 1;
  GP_TRY(gp_alloc_array(3 * room, sizeof *w.at, (void **)&w.at));
  w.begin = w.at + room;
  w.end = w.begin + room;
  gp_status status = sort_keys(&w, count);
  if (!status) status = set_new(w.count, &w.alive);
  if (!status) status = run(&w, pair);
  gp_free(w.alive.words);
  gp_free(w.at);
  return status;
}
