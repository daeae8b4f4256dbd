/* device/link/ranks/probe.c - measures the way that values of a pipeline take between CPU devices
 * of two ranks: the memory that both share (near.h) where they are on one host, else messages
 * (ranks/probe.h).
 *
 * A round is a burst of values one way and a small one back. As in a pipeline the maker copies a
 * value into the reader's memory, and the reader finds it there. */
#include <string.h>

#include "base/bell.h"
#include "base/memory.h"
#include "base/thread.h"
#include "device/link/ranks/near.h"
#include "gpipe/process.h"
#include "ranks/probe.h"
#include "ranks/ranks.h"

enum { SLOTS = 4, ANSWER = 8, RUN = 1, SPINS = 4000, PAUSE_NS = 100000000 };
enum { ASKS, ANSWERS, ENDS }; /* the numbers of the two bells */

/* One end of the way. */
typedef struct probe {
  const gp_rank_probe_spec *spec;
  int32_t peer;
  int own;                /* ASKS or ANSWERS */
  gp_shared *bells;       /* made here */
  gp_near *reads, *makes; /* what comes, and what goes */
  char *value;            /* what goes; its first byte says whether the round is the last one */
  int64_t come, gone;     /* values so far */
  int spins;              /* looks before it sleeps; one where the two ends share a core */
} probe;

static size_t bytes_of(const probe *p, int from) { return from == ASKS ? p->spec->bytes : ANSWER; }

/* The values that one of the ends makes. */
static gp_link_spec way_from(const probe *p, int from) {
  return (gp_link_spec){.slots = SLOTS,
                        .bytes = bytes_of(p, from),
                        .bells = p->bells,
                        .bell_count = ENDS,
                        .from_bell = from,
                        .to_bell = ENDS - 1 - from};
}

/* ---- the two ends get to know each other ----------------------------------------------------- */

/* Make what this end offers. A page that was never written is read from a single page of zeros, so
 * the value is written. */
static gp_status make(probe *p) {
  GP_TRY(gp_alloc(bytes_of(p, p->own), (void **)&p->value));
  memset(p->value, 1, bytes_of(p, p->own));
  GP_TRY(gp_near_make_bells(ENDS, &p->bells));
  const gp_link_spec in = way_from(p, ENDS - 1 - p->own);
  return gp_near_new(&in, &p->reads);
}

static void free_all(probe *p) {
  gp_near_free(p->makes);
  gp_near_free(p->reads);
  gp_shared_free(p->bells);
  gp_free(p->value);
}

static gp_status open_other(probe *p, const gp_near_offer *offer) {
  const gp_link_spec out = way_from(p, p->own);
  GP_TRY(gp_near_open(&out, offer, &p->makes));
  return gp_near_meet(p->reads, offer);
}

/* Gather a piece of both ends. *whole: both have given one of so many bytes; then *other receives
 * the other end's, if this rank is one of the two. */
static gp_status exchange(const probe *p, const void *own, size_t bytes, size_t expected,
                          void *other, bool *whole) {
  gp_rank_pieces all;
  GP_TRY(gp_ranks_gather("links", 0, own, bytes, &all));
  *whole = all.bytes[p->spec->from] == expected && all.bytes[p->spec->to] == expected;
  if (*whole) memcpy(other, all.data[p->peer], expected);
  gp_rank_pieces_free(&all);
  return GP_OK;
}

/* Every rank makes this call, and all get the same answer. */
static gp_status meet(probe *p, bool takes_part, bool *met) {
  gp_near_offer own, other;
  const bool offers = takes_part && gp_ranks_are_near(p->peer) && make(p) == GP_OK;
  if (offers) own = gp_near_offer_of(p->reads);
  GP_TRY(exchange(p, offers ? (void *)&own : "", offers ? sizeof own : 0, sizeof own, &other, met));
  if (!*met) return GP_OK;
  const bool opens = takes_part && open_other(p, &other) == GP_OK;
  char ignored;
  return exchange(p, "y", opens, 1, &ignored, met);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static gp_link_turn turn_of(int64_t number) {
  return (gp_link_turn){(int32_t)(number % SLOTS), (uint32_t)(number / SLOTS)};
}

static bool has_come(const probe *p) { return gp_near_has(p->reads, RUN, turn_of(p->come)); }

static bool is_free(const probe *p) {
  const gp_link_turn turn = turn_of(p->gone);
  return gp_near_released(p->makes, RUN, turn.slot) >= turn.round;
}

static gp_status look(const probe *p, int64_t begin) {
  GP_TRY(gp_ranks_check());
  return gp_probe_look(p->peer, begin);
}

/* Wait as the workers of a pipeline do. */
static gp_status await(const probe *p, bool (*is_ready)(const probe *)) {
  const int64_t begin = gp_now_ns();
  gp_bell *bell = (gp_bell *)gp_shared_data(p->bells) + p->own;
  gp_status status = GP_OK;
  for (int i = 0; i < p->spins; i++) {
    if (is_ready(p)) return GP_OK;
    gp_pause();
  }
  for (;;) {
    atomic_store(&bell->sleeping, 1);
    const uint32_t rings = atomic_load(&bell->rings);
    if (is_ready(p) || (status = look(p, begin))) break;
    gp_bell_sleep(bell, rings, PAUSE_NS);
  }
  atomic_store(&bell->sleeping, 0);
  return status;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static gp_status send(probe *p, bool last) {
  GP_TRY(await(p, is_free));
  p->value[0] = (char)last;
  gp_near_publish(p->makes, RUN, turn_of(p->gone++), p->value);
  return GP_OK;
}

static gp_status take(probe *p, bool *last) {
  GP_TRY(await(p, has_come));
  const int32_t slot = turn_of(p->come++).slot;
  *last = *gp_near_slot(p->reads, slot) != 0;
  gp_near_release(p->reads, RUN, slot);
  return GP_OK;
}

static gp_status ask_once(void *context, bool last, gp_rank_probe *taken) {
  probe *p = context;
  bool ignored;
  const int64_t begin = gp_now_ns();
  for (int i = 0; i < p->spec->burst; i++) GP_TRY(send(p, last));
  GP_TRY(take(p, &ignored));
  taken->seconds = 1e-9 * (double)(gp_now_ns() - begin);
  return GP_OK;
}

static gp_status answer(probe *p) {
  for (bool last = false; !last;) {
    for (int i = 0; i < p->spec->burst; i++) GP_TRY(take(p, &last));
    GP_TRY(send(p, last));
  }
  return GP_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

gp_status gp_link_probe(const gp_rank_probe_spec *spec, gp_rank_probe *result) {
  *result = (gp_rank_probe){0};
  GP_TRY(gp_probe_check(spec));
  GP_TRY(gp_ranks_join());
  const bool asks = gp_ranks_own() == spec->from, takes_part = asks || gp_ranks_own() == spec->to;
  probe p = {.spec = spec,
             .peer = asks ? spec->to : spec->from,
             .own = asks ? ASKS : ANSWERS,
             .spins = gp_machine_info().cores > 1 ? SPINS : 1};
  bool met = false;
  gp_status status = meet(&p, takes_part, &met);
  if (!status && met && takes_part)
    status = asks ? gp_probe_rounds(spec, ask_once, &p, result) : answer(&p);
  result->work = 0; /* most of it is waiting */
  free_all(&p);
  return status || met ? status : gp_ranks_probe(spec, result);
}
