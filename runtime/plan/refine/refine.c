/* plan/refine/refine.c - see refine.h. */
#include "plan/refine/refine.h"

#include <stdlib.h>

#include "base/memory.h"

/* The layers of a block may be given any option, run again right before their backward, or run
 * again before the layer behind them does, so that what they make for that one need not be saved.
 */
typedef struct change {
  int32_t first, end; /* layers */
  int32_t choice;     /* an option; the number of options, or one more */
  int32_t number;     /* in the order in which they are listed, which settles ties */
  gp_worth worth;     /* of the list with this change alone */
  double merit;       /* what comes first has more */
} change;

typedef struct refiner {
  const gp_refine_spec *spec;
  int32_t *looks;
  gp_refined *now;
  gp_refine_blocks blocks;
  change *changes; /* of the list at hand, those that change anything */
  int32_t count;
} refiner;

bool gp_refine_suits(const gp_refine_spec *spec, const gp_worth *a, const gp_worth *b) {
  const bool a_fits = a->bytes <= spec->memory, b_fits = b->bytes <= spec->memory;
  if (a_fits != b_fits) return a_fits;
  if (a_fits && a->seconds != b->seconds) return a->seconds < b->seconds;
  return a->bytes < b->bytes;
}

static bool fits(const refiner *r, const gp_worth *worth) {
  return worth->bytes <= r->spec->memory;
}

/* ---- changes --------------------------------------------------------------------------------- */

static bool is_in(const change *c, gp_remat_step step) {
  return step.layer >= c->first && step.layer < c->end;
}

/* Copy a list without what runs the layers of a block again, and with their new choice. False
 * through *can if there is nothing to join. */
static gp_status apply(const refiner *r, const gp_remat_list *from, const change *c,
                       gp_remat_list *to, bool *can) {
  const int32_t alone = r->spec->options, joined = alone + 1;
  size_t room = 0;
  bool placed = c->choice < alone;
  *to = (gp_remat_list){0};
  for (int32_t i = 0; i < from->count; i++) {
    gp_remat_step step = from->steps[i];
    const bool back = step.act == GP_REMAT_BACKWARD, own = is_in(c, step);
    if (own && !back) continue;
    const bool here = c->choice == joined ? step.layer == c->end && !back : own;
    for (int32_t l = c->first; here && !placed && l < c->end; l++)
      GP_TRY(gp_remat_append(to, &room, (gp_remat_step){GP_REMAT_KEEP, l, 0}));
    placed |= here;
    if (own) step.option = c->choice < alone ? c->choice : 0;
    GP_TRY(gp_remat_append(to, &room, step));
  }
  *can = placed;
  return GP_OK;
}

static bool same(const gp_remat_list *a, const gp_remat_list *b) {
  if (a->count != b->count) return false;
  for (int32_t i = 0; i < a->count; i++) {
    const gp_remat_step x = a->steps[i], y = b->steps[i];
    if (x.layer != y.layer || x.act != y.act ||
        (x.act == GP_REMAT_BACKWARD && x.option != y.option))
      return false;
  }
  return true;
}

/* Judge a list with a change. made->list has no steps if it changes nothing or no looks are left.
 */
static gp_status look(const refiner *r, const gp_remat_list *from, const change *c,
                      gp_refined *made) {
  bool can;
  gp_status status = apply(r, from, c, &made->list, &can);
  if (!status && (!can || *r->looks <= 0 || same(from, &made->list)))
    return gp_remat_list_free(&made->list), GP_OK;
  if (!status) status = r->spec->judge(r->spec->context, &made->list, &made->worth);
  if (status) gp_remat_list_free(&made->list);
  --*r->looks;
  return status;
}

static void take(gp_refined *to, gp_refined *from) {
  gp_remat_list_free(&to->list);
  *to = *from;
  *from = (gp_refined){0};
}

static int32_t choices_of(const refiner *r) { return r->spec->options + 1 + r->spec->joins; }

/* Judge all changes of the list at hand; there are none if looks do not suffice. */
static gp_status list_changes(refiner *r) {
  r->count = 0;
  if (*r->looks < r->blocks.count * choices_of(r)) return GP_OK;
  for (int32_t b = 0; b < r->blocks.count; b++)
    for (int32_t k = 0; k < choices_of(r); k++) {
      change c = {.first = r->blocks.first[b], .end = r->blocks.first[b + 1]};
      c.choice = k;
      c.number = r->count;
      gp_refined made;
      GP_TRY(look(r, &r->now->list, &c, &made));
      if (!made.list.count) continue;
      c.worth = made.worth;
      gp_remat_list_free(&made.list);
      r->changes[r->count++] = c;
    }
  return GP_OK;
}

static int by_merit(const void *left, const void *right) {
  const change *a = left, *b = right;
  if (a->merit != b->merit) return a->merit > b->merit ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static double saved_by(const refiner *r, const change *c) {
  return (double)r->now->worth.bytes - (double)c->worth.bytes;
}

static double gained_by(const refiner *r, const change *c) {
  return r->now->worth.seconds - c->worth.seconds;
}

/* Sort by what is saved for the time; what saves nothing comes last, with merit 0. */
static void sort_by_saving(const refiner *r) {
  const double least = 1e-12; /* s: what costs no time is worth most */
  for (int32_t i = 0; i < r->count; i++) {
    change *c = &r->changes[i];
    const double cost = -gained_by(r, c), saved = saved_by(r, c);
    c->merit = saved > 0 ? saved / (cost > least ? cost : least) : 0;
  }
  qsort(r->changes, (size_t)r->count, sizeof *r->changes, by_merit);
}

static void sort_by_gain(const refiner *r) {
  for (int32_t i = 0; i < r->count; i++) r->changes[i].merit = gained_by(r, &r->changes[i]);
  qsort(r->changes, (size_t)r->count, sizeof *r->changes, by_merit);
}

/* ---- until it fits --------------------------------------------------------------------------- */

/* Give up bytes of a list, in the order of the sorted changes, until it fits or has become slower
 * than `limit`. *better: anything was given up. */
static gp_status shrink(const refiner *r, gp_refined *made, double limit, bool *better) {
  *better = false;
  for (int32_t i = 0; i < r->count && r->changes[i].merit > 0; i++) {
    gp_refined next;
    if (fits(r, &made->worth) || made->worth.seconds >= limit) break;
    GP_TRY(look(r, &made->list, &r->changes[i], &next));
    if (!next.list.count) continue;
    const bool less = next.worth.bytes < made->worth.bytes;
    if (less) take(made, &next);
    gp_remat_list_free(&next.list);
    *better |= less;
  }
  return GP_OK;
}

static gp_status make_fit(refiner *r) {
  bool better = true;
  while (better && !fits(r, &r->now->worth) && *r->looks > 0) {
    GP_TRY(list_changes(r));
    sort_by_saving(r);
    GP_TRY(shrink(r, r->now, 1e300, &better));
  }
  return GP_OK;
}

/* ---- faster ---------------------------------------------------------------------------------- */

/* Take changes that save time, the best ones first. */
static gp_status take_gains(const refiner *r, bool *better) {
  *better = false;
  for (int32_t i = 0; i < r->count && r->changes[i].merit > 0; i++) {
    gp_refined next;
    GP_TRY(look(r, &r->now->list, &r->changes[i], &next));
    if (next.list.count && gp_refine_suits(r->spec, &next.worth, &r->now->worth)) {
      take(r->now, &next);
      *better = true;
    }
    gp_remat_list_free(&next.list);
  }
  return GP_OK;
}

/* Take a change that does not fit, and make room for it elsewhere. `r` has the changes sorted by
 * what they save. */
static gp_status exchange(const refiner *r, const change *c, bool *better) {
  gp_refined made;
  bool shrunk;
  GP_TRY(look(r, &r->now->list, c, &made));
  if (!made.list.count) return GP_OK;
  gp_status status = shrink(r, &made, r->now->worth.seconds, &shrunk);
  *better = !status && gp_refine_suits(r->spec, &made.worth, &r->now->worth);
  if (*better) take(r->now, &made);
  gp_remat_list_free(&made.list);
  return status;
}

enum { EXCHANGES = 12 }; /* changes that others make room for: those that save the most time */

static gp_status take_exchanges(refiner *r, bool *better) {
  change gains[EXCHANGES];
  int32_t count = 0;
  for (int32_t i = 0; i < r->count && count < EXCHANGES && r->changes[i].merit > 0; i++)
    gains[count++] = r->changes[i];
  sort_by_saving(r);
  for (int32_t i = 0; i < count && !*better; i++) GP_TRY(exchange(r, &gains[i], better));
  return GP_OK;
}

static gp_status make_faster(refiner *r) {
  bool better = true;
  while (better && *r->looks > 0) {
    GP_TRY(list_changes(r));
    sort_by_gain(r);
    GP_TRY(take_gains(r, &better));
    if (!better) GP_TRY(take_exchanges(r, &better));
  }
  return GP_OK;
}

static gp_status refine(refiner *r) {
  do {
    GP_TRY(make_fit(r));
    if (fits(r, &r->now->worth)) GP_TRY(make_faster(r));
  } while (*r->looks > 0 && gp_refine_blocks_halve(&r->blocks));
  return GP_OK;
}

gp_status gp_refine(const gp_refine_spec *spec, int32_t *looks, gp_refined *best) {
  refiner r = {.spec = spec, .looks = looks, .now = best};
  const size_t most = (size_t)spec->layers * (size_t)choices_of(&r);
  GP_TRY(gp_alloc_array(most + 1, sizeof *r.changes, (void **)&r.changes));
  gp_status status = gp_refine_blocks_new(spec->groups, spec->layers, spec->busy, &r.blocks);
  if (!status) status = refine(&r);
  gp_refine_blocks_free(&r.blocks);
  gp_free(r.changes);
  return status;
}
