/* schedule/verify/verify.h - what the checks of a schedule share: where each action stands, and how
 * a fault is told.
 *
 *   check.c     all checks, one after the other
 *   index.c     ops, devices, uniqueness (checks 1 and 2)
 *   complete.c  nothing missing, a (stage, micro-batch) on one device (checks 1 and 2)
 *   messages.c  sends and receives in pairs (check 5)
 *   updates.c   updates and reductions, shards (check 9)
 *   versions.c  versions of the weights (check 8)
 *   order.c     an order in which everything can run, or the cycle (checks 3 and 4)
 *   live.c      activations alive and their slots (checks 7 and 10)
 *   stash.c     versions of the weights alive (check 8)
 *   channels.c  blocking sends over channels that hold so much (check 6)
 *   capacity.c  how much they have to hold
 *   limits.c    the checks that need a number given
 *   report.c    the grid with the fault marked
 *
 * A position is always that of the action in schedule->actions.
 */
#ifndef GP_SCHEDULE_VERIFY_H
#define GP_SCHEDULE_VERIFY_H

#include "schedule/schedule.h"

/* What every stage must have done before any of them goes on: per stage and copy the last of these
 * actions. */
typedef struct gp_verify_join {
  int32_t *last; /* [stage][copy]: position + 1; 0: there is none; NULL: nothing waits for it */
  int32_t over;  /* of these, from the first on, are known to be done */
} gp_verify_join;

typedef struct gp_verify {
  const gp_schedule *s;
  gp_schedule_fault *fault;  /* receives what is wrong */
  int32_t *order;            /* per action: its place in the topological order; negative: not yet */
  int32_t *at[GP_ACT_COUNT]; /* per op that occurs, [stage][micro]: position + 1; 0: none */
  int32_t *update, *reduce;  /* [stage][copy][batch]: position + 1 of U and REDUCE; NULL: none */
  int32_t *ending[3];        /* [stage][copy]: the same of TIE, NORM, CLIP */
  gp_verify_join *sums, *norms; /* what TIE waits for; what CLIP and U do, where there are norms */
  int32_t *reduced;             /* [stage][copy]: REDUCEs seen while the index is made */
  int32_t batch_count;
  bool forward_only;
} gp_verify;

/* Fill the tables; what was built is freed by gp_verify_free, also after a failure. */
gp_status gp_verify_index(gp_verify *v);
void gp_verify_free(gp_verify *v);

gp_status gp_verify_complete(const gp_verify *v);
gp_status gp_verify_messages(const gp_verify *v);
gp_status gp_verify_updates(const gp_verify *v);
gp_status gp_verify_shards(const gp_verify *v);
gp_status gp_verify_versions(const gp_verify *v);
/* Needs order[count] of the actions. */
gp_status gp_verify_order(const gp_verify *v);

/* ---- asking -------------------------------------------------------------------------------- */

static inline size_t gp_verify_cell(const gp_verify *v, int32_t stage, int32_t micro) {
  return (size_t)stage * (size_t)v->s->micro_count + (size_t)micro;
}

/* Position of an action, or -1. */
static inline int32_t gp_verify_at(const gp_verify *v, gp_act op, int32_t stage, int32_t micro) {
  return v->at[op] ? v->at[op][gp_verify_cell(v, stage, micro)] - 1 : -1;
}

/* Position of TIE, NORM or CLIP of a stage's copy, or -1. */
static inline int32_t gp_verify_ending(const gp_verify *v, gp_act op, int32_t holder) {
  const int32_t *table = v->ending[op - GP_ACT_TIE];
  return table ? table[holder] - 1 : -1;
}

/* B or I: what makes the gradient of the stage's input; -1: none. */
static inline int32_t gp_verify_backward(const gp_verify *v, int32_t stage, int32_t micro) {
  int32_t b = gp_verify_at(v, GP_ACT_B, stage, micro);
  return b >= 0 ? b : gp_verify_at(v, GP_ACT_I, stage, micro);
}

/* B or W: what makes the gradient of the stage's weights; -1: none. */
static inline int32_t gp_verify_weights(const gp_verify *v, int32_t stage, int32_t micro) {
  int32_t b = gp_verify_at(v, GP_ACT_B, stage, micro);
  return b >= 0 ? b : gp_verify_at(v, GP_ACT_W, stage, micro);
}

static inline bool gp_verify_on(const gp_schedule *s, int32_t a, int32_t device) {
  return a >= s->first[device] && a < s->first[device + 1];
}

/* Which of the stage's copies the action is of. */
static inline int32_t gp_verify_copy(const gp_schedule *s, int32_t a) {
  return s->copy_count == 2 && !gp_verify_on(s, a, s->placement[2 * s->actions[a].stage]);
}

/* Its stage and copy as an index [stage][copy]. */
static inline int32_t gp_verify_holder(const gp_schedule *s, int32_t a) {
  return s->actions[a].stage * s->copy_count + gp_verify_copy(s, a);
}

/* The device of an action that has a stage, on which it is known to be. */
static inline int32_t gp_verify_device(const gp_schedule *s, int32_t a) {
  return s->placement[gp_verify_holder(s, a)];
}

/* Copies of the stage on devices of their own. */
static inline int32_t gp_verify_copies(const gp_schedule *s, int32_t stage) {
  const int32_t *at = &s->placement[stage * s->copy_count];
  return at[s->copy_count - 1] == at[0] ? 1 : 2;
}

/* A need of action a that is not in the order yet, or -1. */
int32_t gp_verify_blocker(const gp_verify *v, int32_t a);
/* Where the message that this receive, or this action's input, takes comes from: the position of
 * the action that makes it, or -1 where it crosses no devices. */
int32_t gp_verify_source(const gp_verify *v, int32_t a);

/* ---- telling ------------------------------------------------------------------------------- */

/* Fail with "schedule: <action> <text>" and the grid, the action marked. */
gp_status gp_verify_fail(const gp_verify *v, int32_t position, const char *check,
                         const char *format, ...) GP_PRINTF(4, 5);
/* The same where no action is at fault: the text alone, and the grid around the device's start. */
gp_status gp_verify_fail_device(const gp_verify *v, int32_t device, const char *check,
                                const char *format, ...) GP_PRINTF(4, 5);
/* An action in letters, into text. */
const char *gp_verify_name(const gp_verify *v, int32_t position, char text[GP_ACTION_TEXT]);

#endif
