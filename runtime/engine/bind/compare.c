/* engine/bind/compare.c - see compare.h.
 *
 * What a plan sends and expects follows from its sizes, its actions and its edges. Numbers that
 * people know are compared one by one, the rest by a hash of 64 bits (FNV-1a). A rank that plans
 * its own devices alone knows no tasks of others, so that only whole plans compare tasks. */
#include "engine/bind/compare.h"

#include <string.h>

#include "base/hash.h"
#include "plan/channels.h"
#include "plan/edge/step_edges.h"
#include "ranks/ranks.h"

enum { NUMBERS = 9 };
static const char *const names[NUMBERS] = {
    "kind",  "devices", "stages",  "micro-batches",   "rows of a micro-batch",
    "edges", "updates", "actions", "planning by rank"};

typedef struct outline {
  uint64_t numbers[NUMBERS], hash;
} outline;

/* ---- the hash -------------------------------------------------------------------------------- */

static void mix(uint64_t *hash, int64_t number) {
  *hash = gp_hash_fold(gp_hash_word(*hash, (uint64_t)number));
}

static void mix_task(uint64_t *hash, const gp_task *task) {
  mix(hash, task->op);
  mix(hash, task->stage);
  mix(hash, task->copy);
  mix(hash, task->partial);
  mix(hash, task->merges);
  mix(hash, task->from);
  mix(hash, task->micro);
  mix(hash, task->order);
  mix(hash, task->use_count);
  mix(hash, task->program ? task->program->instr_count : 0);
}

static uint64_t hash_of(const gp_plan *plan) {
  uint64_t hash = plan->outline;
  for (int32_t t = 0; !plan->share && t < plan->first[plan->device_count]; t++)
    mix_task(&hash, &plan->tasks[t]);
  for (int32_t e = 0; e < gp_plan_value_channels(plan); e++) {
    if (!plan->share) mix(&hash, plan->channels[e].slots);
    mix(&hash, (int64_t)plan->channels[e].bytes);
  }
  for (int32_t e = 0; e < plan->step_edge_count; e++) {
    mix(&hash, (int64_t)plan->step_edges[e].value);
    mix(&hash, plan->step_edges[e].maker);
    mix(&hash, (int64_t)plan->step_edges[e].bytes);
    mix(&hash, plan->step_edges[e].half);
  }
  return hash;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static outline outline_of(const gp_plan *plan) {
  return (outline){{(uint64_t)plan->kind, (uint64_t)plan->device_count, (uint64_t)plan->stage_count,
                    (uint64_t)plan->step_micros, (uint64_t)plan->shapes[0].rows,
                    (uint64_t)plan->edge_count, (uint64_t)plan->update,
                    (uint64_t)plan->action_count, plan->share != 0},
                   hash_of(plan)};
}

/* One rank steps where another evaluates: numbers would say nothing. */
static gp_status compare_kinds(uint64_t a, uint64_t b, int rank) {
  static const char *const kinds[] = {[GP_PLAN_STEP] = "step",
                                      [GP_PLAN_SPLIT] = "forward (and backward)",
                                      [GP_PLAN_EVALUATE] = "evaluate",
                                      [GP_PLAN_FORWARD] = "forward"};
  const size_t count = sizeof kinds / sizeof *kinds;
  if (a == b) return GP_OK;
  return gp_fail(GP_ESTATE,
                 "plan: rank 0 plans for '%s', rank %d for '%s': expected the same calls in the "
                 "same order on all ranks",
                 a < count ? kinds[a] : "?", rank, b < count ? kinds[b] : "?");
}

static gp_status compare_numbers(const outline *a, const outline *b, int rank) {
  for (int n = 0; n < NUMBERS; n++)
    if (a->numbers[n] != b->numbers[n])
      return gp_fail(GP_ESTATE,
                     "plan: %s is %llu on rank 0 and %llu on rank %d, expected the same model, "
                     "options and batch on all ranks",
                     names[n], (unsigned long long)a->numbers[n], (unsigned long long)b->numbers[n],
                     rank);
  return GP_OK;
}

static gp_status compare(const gp_rank_pieces *all) {
  const outline *a = (const outline *)all->data[0];
  for (int r = 1; r < all->count; r++) {
    const outline *b = (const outline *)all->data[r];
    if (all->bytes[r] != sizeof *b || all->bytes[0] != sizeof *a)
      return gp_fail(GP_ESTATE, "plan: rank %d runs another version than rank 0", r);
    GP_TRY(compare_kinds(a->numbers[0], b->numbers[0], r));
    GP_TRY(compare_numbers(a, b, r));
    if (a->hash != b->hash)
      return gp_fail(GP_ESTATE,
                     "plan: rank %d computes something else than rank 0 in its layers or its loss "
                     "(settings, modes, shapes), expected the same on all ranks",
                     r);
  }
  return GP_OK;
}

gp_status gp_plan_compare(const gp_plan *plan) {
  const outline own = outline_of(plan);
  gp_rank_pieces all;
  GP_TRY(gp_ranks_gather("plan", 0, &own, sizeof own, &all));
  gp_status status = compare(&all);
  gp_rank_pieces_free(&all);
  return status;
}
