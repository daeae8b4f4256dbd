/* schedule/edges.h - where each action of a schedule stands, and which action takes whose value.
 *
 * The verifier, the passes and the simulator all ask here, so a schedule means the same to each of
 * them. A position is always an index into schedule->actions.
 */
#ifndef GP_SCHEDULE_EDGES_H
#define GP_SCHEDULE_EDGES_H

#include "schedule/schedule.h"

typedef struct gp_edges {
  const gp_schedule *s;      /* borrowed */
  int32_t *at[GP_ACT_COUNT]; /* per op that occurs, [stage][micro]: position + 1; 0: none */
} gp_edges;

/* Enter all actions of a verified schedule. */
gp_status gp_edges_enter_all(gp_edges *edges);
void gp_edges_free(gp_edges *edges); /* what it holds; not the struct */

/* ---- where actions stand ------------------------------------------------------------------- */

static inline size_t gp_edges_cell(const gp_schedule *s, int32_t stage, int32_t micro) {
  return (size_t)stage * (size_t)s->micro_count + (size_t)micro;
}

/* Position of an action, or -1. */
static inline int32_t gp_edges_at(const gp_edges *e, gp_act op, int32_t stage, int32_t micro) {
  return e->at[op] ? e->at[op][gp_edges_cell(e->s, stage, micro)] - 1 : -1;
}

/* Position of the B or I that makes the gradient of the stage's input, or -1. */
static inline int32_t gp_edges_backward(const gp_edges *e, int32_t stage, int32_t micro) {
  int32_t b = gp_edges_at(e, GP_ACT_B, stage, micro);
  return b >= 0 ? b : gp_edges_at(e, GP_ACT_I, stage, micro);
}

/* Position of the B or W that makes the gradient of the stage's weights, or -1. */
static inline int32_t gp_edges_weights(const gp_edges *e, int32_t stage, int32_t micro) {
  int32_t b = gp_edges_at(e, GP_ACT_B, stage, micro);
  return b >= 0 ? b : gp_edges_at(e, GP_ACT_W, stage, micro);
}

gp_status gp_edges_make_table(gp_edges *edges, gp_act op);

/* Enter action a, which has a stage and a micro-batch. *before receives the action that was entered
 * earlier for the same op, stage and micro-batch (and stays there), or -1. The table of an op is
 * made with its first action: four bytes a cell, so a thousand stages with four thousand
 * micro-batches take 16 MiB for each op that occurs. */
static inline gp_status gp_edges_enter(gp_edges *edges, int32_t a, int32_t *before) {
  const gp_action *x = &edges->s->actions[a];
  if (!edges->at[x->op]) GP_TRY(gp_edges_make_table(edges, (gp_act)x->op));
  int32_t *cell = &edges->at[x->op][gp_edges_cell(edges->s, x->stage, x->micro)];
  *before = *cell - 1;
  if (!*cell) *cell = a + 1;
  return GP_OK;
}

static inline bool gp_action_is_on(const gp_schedule *s, int32_t a, int32_t device) {
  return a >= s->first[device] && a < s->first[device + 1];
}

/* The copy of its stage that an action runs on, which is on a device of the stage. */
static inline int32_t gp_action_copy(const gp_schedule *s, int32_t a) {
  const int32_t *at = &s->placement[s->actions[a].stage * s->copy_count];
  int32_t copy = 0;
  while (copy + 1 < s->copy_count && !gp_action_is_on(s, a, at[copy])) copy++;
  return copy;
}

/* The index [stage][copy] of the action's stage and copy. */
static inline int32_t gp_action_holder(const gp_schedule *s, int32_t a) {
  return s->actions[a].stage * s->copy_count + gp_action_copy(s, a);
}

/* The device of an action, which has a stage and is known to be on a device of it. */
static inline int32_t gp_action_device(const gp_schedule *s, int32_t a) {
  return s->placement[gp_action_holder(s, a)];
}

/* ---- which action takes whose value -------------------------------------------------------- */

/* The action whose value this one takes: F takes that of the stage before, B (or I) that of the
 * stage after, a receive that of its send; they may be on one device. -1: it takes none, or takes
 * it through a receive that the schedule names. A skip connection or a frozen stage needs no more
 * than these. */
static inline int32_t gp_edges_source(const gp_edges *e, int32_t a) {
  const gp_action *x = &e->s->actions[a];
  switch ((gp_act)x->op) {
  case GP_ACT_F:
    if (x->stage == 0 || gp_edges_at(e, GP_ACT_RECV_F, x->stage, x->micro) >= 0) return -1;
    return gp_edges_at(e, GP_ACT_F, x->stage - 1, x->micro);
  case GP_ACT_B:
  case GP_ACT_I:
    if (x->stage + 1 == e->s->stage_count) return -1;
    if (gp_edges_at(e, GP_ACT_RECV_B, x->stage, x->micro) >= 0) return -1;
    return gp_edges_backward(e, x->stage + 1, x->micro);
  case GP_ACT_RECV_F: return gp_edges_at(e, GP_ACT_SEND_F, x->stage - 1, x->micro);
  case GP_ACT_RECV_B: return gp_edges_at(e, GP_ACT_SEND_B, x->stage + 1, x->micro);
  default: return -1;
  }
}

/* The action that takes the value of this one, or -1. Sends and receives come in pairs, so a
 * computation whose value is received has a send of its own. */
static inline int32_t gp_edges_reader(const gp_edges *e, int32_t a) {
  const gp_action *x = &e->s->actions[a];
  switch ((gp_act)x->op) {
  case GP_ACT_F:
    if (x->stage + 1 == e->s->stage_count) return -1;
    if (gp_edges_at(e, GP_ACT_SEND_F, x->stage, x->micro) >= 0) return -1;
    return gp_edges_at(e, GP_ACT_F, x->stage + 1, x->micro);
  case GP_ACT_B:
  case GP_ACT_I:
    if (x->stage == 0 || gp_edges_at(e, GP_ACT_SEND_B, x->stage, x->micro) >= 0) return -1;
    return gp_edges_backward(e, x->stage - 1, x->micro);
  case GP_ACT_SEND_F: return gp_edges_at(e, GP_ACT_RECV_F, x->stage + 1, x->micro);
  case GP_ACT_SEND_B: return gp_edges_at(e, GP_ACT_RECV_B, x->stage - 1, x->micro);
  default: return -1;
  }
}

/* ---- endings ------------------------------------------------------------------------------- */

/* What all stages must have done before any of them goes on. TIE waits for the gradients of all
 * stages and for their reductions. CLIP waits for the norms, and so does U if there are norms. */
typedef enum gp_join { GP_JOIN_SUMS, GP_JOIN_NORMS, GP_JOIN_COUNT } gp_join;
/* The join that actions of this op wait for; GP_JOIN_COUNT: none. norms: the schedule has NORMs. */
static inline gp_join gp_join_of(gp_act op, bool norms) {
  if (op == GP_ACT_TIE) return GP_JOIN_SUMS;
  return norms && (op == GP_ACT_CLIP || op == GP_ACT_U) ? GP_JOIN_NORMS : GP_JOIN_COUNT;
}
/* Is an action of this op one of those that the join waits for? */
static inline bool gp_join_counts(gp_join join, gp_act op) {
  if (join == GP_JOIN_NORMS) return op == GP_ACT_NORM;
  return op == GP_ACT_B || op == GP_ACT_W || op == GP_ACT_REDUCE;
}

/* Find the micro-batches *begin to *end - 1, whose gradients the endings of a batch read. */
void gp_edges_batch(const gp_schedule *s, int32_t batch, int32_t *begin, int32_t *end);

#endif
