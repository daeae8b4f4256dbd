/* engine/run/meet.c - how ranks go on with a stream together.
 *
 * Every rank is given the same mini-batches and runs what its devices have of them. After each one
 * they meet, on the threads of their scripts: the ranks of the last stage bring the losses that
 * have become known, and each says whether it has to end the stream. So all of them end it behind
 * the same mini-batch, and every script sees the same losses at the same step. The workers do not
 * wait for that. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/optimizer/skips.h"
#include "engine/run/agree.h"
#include "engine/run/run.h"
#include "engine/watch/watchdog.h"
#include "gpipe/process.h"
#include "ranks/ranks.h"

/* What a rank says, before the losses. */
typedef struct head {
  int32_t ends, interrupted;
  uint64_t batch, settings; /* hashes of the mini-batch that it was given, and of its update's */
} head;

typedef struct meeting {
  gp_pipeline *p;
  int64_t begin, count; /* micro-batches whose losses have become known */
} meeting;

static size_t piece_bytes(const meeting *m) {
  return sizeof(head) + (size_t)m->count * sizeof(gp_micro_output);
}

static void write_piece(const meeting *m, const gp_minibatch *batch, char *piece) {
  const gp_run *run = &m->p->run;
  gp_micro_output *outputs = (gp_micro_output *)(piece + sizeof(head));
  const bool interrupted = gp_interrupt_pending();
  *(head *)piece = (head){.ends = gp_run_failed(run) || gp_skips_are_stuck(m->p),
                          .interrupted = interrupted,
                          .batch = gp_minibatch_hash(batch),
                          .settings = gp_minibatch_settings(m->p, batch)};
  for (int64_t i = 0; i < m->count; i++) outputs[i] = gp_micro_output_of(run, m->begin + i);
}

/* The i-th of the outputs that the rank of a device has sent. */
static const gp_micro_output *output_of(const meeting *m, const gp_rank_pieces *all, int32_t device,
                                        int64_t i) {
  const char *piece = all->data[gp_device_lane(m->p, device)->rank];
  return (const gp_micro_output *)(piece + sizeof(head)) + i;
}

/* Take over the losses of the ranks that have run the last stage, and what the first copy of that
 * stage has counted. */
static void read_losses(const meeting *m, const gp_rank_pieces *all) {
  const gp_plan *plan = m->p->run.plan;
  const int32_t counting = plan->placement[gp_plan_holder(plan, plan->stage_count - 1, 0)];
  for (int64_t i = 0; i < m->count; i++) {
    const int64_t micro = m->begin + i;
    const int32_t device = plan->runners[1][micro % plan->step_micros];
    gp_micro_output_set(&m->p->run, micro, &output_of(m, all, device, i)->loss,
                        &output_of(m, all, counting, i)->count);
  }
}

static bool judge(const meeting *m, const gp_rank_pieces *all, bool *interrupted) {
  const head *first = (const head *)all->data[0];
  bool ends = false;
  for (int32_t r = 0; r < all->count; r++) {
    const head *one = (const head *)all->data[r];
    ends |= one->ends || one->interrupted;
    *interrupted |= one->interrupted;
    if (!gp_run_failed(&m->p->run))
      ends |= gp_run_parts(m->p, r, one->batch == first->batch, one->settings == first->settings);
  }
  return ends;
}

static gp_status exchange(const meeting *m, const gp_minibatch *batch, gp_rank_pieces *all) {
  char *own;
  GP_TRY(gp_alloc(piece_bytes(m), (void **)&own));
  write_piece(m, batch, own);
  gp_status status =
      gp_ranks_gather(m->p->spread->what, gp_run_patience(m->p), own, piece_bytes(m), all);
  gp_free(own);
  GP_TRY(status);
  for (int32_t r = 0; r < all->count && !status; r++)
    if (all->bytes[r] != piece_bytes(m))
      status = gp_fail(GP_ESTATE,
                       "step: rank %d has a piece of %zu bytes, expected %zu: the ranks are at "
                       "different steps",
                       (int)r, all->bytes[r], piece_bytes(m));
  if (status) gp_rank_pieces_free(all);
  return status;
}

bool gp_stream_meet(gp_pipeline *p, const gp_minibatch *batch, int64_t known, bool *interrupted) {
  const gp_run *run = &p->run;
  const gp_plan *plan = run->plan;
  const int64_t size = gp_run_group(plan);
  const meeting m = {p, run->known * size, (known - run->known) * size};
  gp_rank_pieces all;
  *interrupted = false;
  gp_status status = exchange(&m, batch, &all);
  if (status) {
    gp_run_lose(p, status);
    gp_watch_give_up(p);
    return true;
  }
  const bool ends = judge(&m, &all, interrupted);
  if (!ends) read_losses(&m, &all);
  gp_rank_pieces_free(&all);
  return ends;
}
