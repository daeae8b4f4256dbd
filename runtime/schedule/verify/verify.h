/* schedule/verify/verify.h - what the checks of a schedule share: tables of where actions stand,
 * and how a fault is told.
 *
 *   check.c     all checks, one after the other
 *   index.c     ops, devices, uniqueness (checks 1 and 2)
 *   complete.c  nothing missing, a (stage, micro-batch) on one device (checks 1 and 2)
 *   messages.c  sends and receives in pairs (check 5)
 *   updates.c   updates and reductions, shards (check 9)
 *   versions.c  versions of the weights (check 8)
 *   order.c     an order in which everything can run, or the cycle (checks 3 and 4)
 *   capacity.c  blocking sends over channels that hold so much (check 6), and how much they must
 *   limits.c    the checks that need a number given
 *   report.c    the grid with the fault marked
 *
 * A position is always that of the action in schedule->actions.
 */
#ifndef GP_SCHEDULE_VERIFY_H
#define GP_SCHEDULE_VERIFY_H

#include "schedule/edges.h"

/* What every stage must have done before any of them goes on: the last action of each part. */
typedef struct gp_verify_join {
  int32_t *last; /* [stage][copy]: position + 1; 0: there is none; NULL: no stage has one */
  int32_t over;  /* so many of these, from the first on, are known to be done */
} gp_verify_join;

typedef struct gp_verify {
  const gp_schedule *s;
  gp_schedule_fault *fault; /* receives what is wrong */
  int32_t *order;           /* per action: its place in the topological order; negative: none yet */
  gp_edges edges;
  int32_t *update, *reduce;     /* [stage][copy][batch]: position + 1 of U and REDUCE; NULL: none */
  int32_t *ending[3];           /* [stage][copy]: the same of TIE, NORM, CLIP */
  gp_verify_join *sums, *norms; /* what TIE waits for; what CLIP, and U beside norms, wait for */
  int32_t *reduced;             /* [stage][copy]: REDUCEs seen while the index is made */
  int32_t batch_count;
  bool forward_only;
} gp_verify;

/* Fill the tables. The caller frees them by gp_verify_free, also after a failure. */
gp_status gp_verify_index(gp_verify *v);
void gp_verify_free(gp_verify *v);

gp_status gp_verify_complete(const gp_verify *v);
gp_status gp_verify_messages(const gp_verify *v);
gp_status gp_verify_updates(const gp_verify *v);
gp_status gp_verify_shards(const gp_verify *v);
gp_status gp_verify_versions(const gp_verify *v);
/* Fills v->order, which has room for all actions. */
gp_status gp_verify_order(const gp_verify *v);

/* ---- asking -------------------------------------------------------------------------------- */

/* Returns the position of TIE, NORM or CLIP of a stage's copy, or -1. */
static inline int32_t gp_verify_ending(const gp_verify *v, gp_act op, int32_t holder) {
  const int32_t *table = v->ending[op - GP_ACT_TIE];
  return table ? table[holder] - 1 : -1;
}

/* Counts the devices of a stage. */
static inline int32_t gp_verify_copies(const gp_schedule *s, int32_t stage) {
  const int32_t *at = &s->placement[stage * s->copy_count];
  return at[s->copy_count - 1] == at[0] ? 1 : s->copy_count;
}

/* Returns an action that action a needs and that is not in the order yet, or -1. */
int32_t gp_verify_blocker(const gp_verify *v, int32_t a);

/* Run the schedule over channels: each device receives what an action needs, computes, and sends
 * what others need. A channel is one direction over one cut between two devices and holds
 * `capacity` messages; 0: both ends meet. Unit costs: F = I = W = R = 1, B = 2, a message takes no
 * time. *makespan receives when the last device ends, or -1 if devices wait for each other; then it
 * fails with the circle if `tell` is set. Source: schedules.md 1.4. */
gp_status gp_verify_channels(const gp_verify *v, int32_t capacity, bool tell, int32_t *makespan);

/* ---- telling ------------------------------------------------------------------------------- */

/* Fail with "schedule: <action> <text>" and the grid, the action marked. */
gp_status gp_verify_fail(const gp_verify *v, int32_t position, const char *check,
                         const char *format, ...) GP_PRINTF(4, 5);
/* Fail where no action is at fault: with the text alone, and the grid around the device's start. */
gp_status gp_verify_fail_device(const gp_verify *v, int32_t device, const char *check,
                                const char *format, ...) GP_PRINTF(4, 5);
/* Print an action into text; returns it. */
const char *gp_verify_name(const gp_verify *v, int32_t position, char text[GP_ACTION_TEXT]);

#endif
