/* schedule/access/slots.c - memory for instances of one size: slots that are used again.
 *
 * A list that ends is coloured: an instance takes the lowest slot that is free, so a buffer has as
 * many slots as instances are ever alive at once. A stream of mini-batches never ends: there
 * instance i takes slot i mod K, with the smallest K for which no two live instances meet.
 */
#include "base/memory.h"
#include "schedule/access/access.h"

/* ---- colouring ----------------------------------------------------------------------------- */

typedef struct colours {
  const gp_lifetimes *lifetimes;
  uint64_t *taken; /* [buffer][words]: a bit for each slot */
  size_t words;
  int32_t *slot, *count;
} colours;

static gp_status born(void *context, const gp_lifetime *life) {
  const colours *c = context;
  uint64_t *taken = &c->taken[(size_t)life->buffer * c->words];
  int32_t word = 0;
  while (taken[word] == UINT64_MAX) word++;
  int32_t slot = 64 * word + __builtin_ctzll(~taken[word]);
  taken[word] |= UINT64_C(1) << slot % 64;
  if (slot >= c->count[life->buffer]) c->count[life->buffer] = slot + 1;
  c->slot[life - c->lifetimes->list] = slot;
  return GP_OK;
}

static void dead(void *context, const gp_lifetime *life) {
  const colours *c = context;
  int32_t slot = c->slot[life - c->lifetimes->list];
  c->taken[(size_t)life->buffer * c->words + (size_t)slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

gp_status gp_lifetimes_colour(const gp_access_list *accesses, const gp_lifetimes *lifetimes,
                              int32_t *slot, int32_t *count) {
  colours c = {.lifetimes = lifetimes,
               .words = (size_t)accesses->instance_count / 64 + 1,
               .slot = slot,
               .count = count};
  for (int32_t b = 0; b < accesses->buffer_count; b++) count[b] = 0;
  GP_TRY(gp_alloc_array((size_t)accesses->buffer_count * c.words + 1, sizeof *c.taken,
                        (void **)&c.taken));
  gp_status status = gp_lifetimes_walk(lifetimes, &(gp_lifetime_watch){&c, born, dead});
  gp_free(c.taken);
  return status;
}

/* ---- rings --------------------------------------------------------------------------------- */

/* Do two lives meet in a ring of so many slots? until[slots] receives the end of the latest life in
 * each; lifetimes are listed in the order of their begins. */
static bool meet(const gp_lifetimes *lifetimes, int32_t buffer, int32_t slots, int32_t *until) {
  for (int32_t i = 0; i < slots; i++) until[i] = -1;
  for (int32_t i = 0; i < lifetimes->count; i++) {
    const gp_lifetime *life = &lifetimes->list[i];
    if (life->buffer != buffer) continue;
    int32_t *own = &until[life->instance % slots];
    if (*own >= life->begin) return true;
    *own = life->end;
  }
  return false;
}

gp_status gp_lifetimes_ring(const gp_lifetimes *lifetimes, int32_t buffer, int32_t most,
                            int32_t *slots) {
  int32_t *until;
  GP_TRY(gp_alloc_array((size_t)most + 1, sizeof *until, (void **)&until));
  while (*slots && *slots < most && meet(lifetimes, buffer, *slots, until)) ++*slots;
  gp_free(until);
  return GP_OK;
}
