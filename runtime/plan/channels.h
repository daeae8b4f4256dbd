/* plan/channels.h - the channels of a plan: where the values of an edge pass that one copy of its
 * stage makes.
 *
 * Replicas share no values of the model's edges, and the two copies of a stage in a replica run
 * micro-batches of their own. So each copy has a channel for every edge, with as many slots as its
 * values need, and each channel has one maker. Channels of step edges come behind those of all
 * copies. */
#ifndef GP_PLAN_CHANNELS_H
#define GP_PLAN_CHANNELS_H

#include "plan/plan.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* The number of a channel. Edges of both kinds have numbers: step edges behind those of the
 * model. */
static inline int32_t gp_plan_channel(const gp_plan *plan, int32_t edge, int32_t copy) {
  if (edge < plan->edge_count) return copy * plan->edge_count + edge;
  return (plan->copy_count - 1) * plan->edge_count + edge;
}
/* Count the channels of the model's edges, and those of both kinds. */
static inline int32_t gp_plan_value_channels(const gp_plan *plan) {
  return plan->copy_count * plan->edge_count;
}
static inline int32_t gp_plan_channel_count(const gp_plan *plan) {
  return gp_plan_value_channels(plan) + plan->step_edge_count;
}
/* The edge of a channel of the model's edges, and the copy and device that make its values. */
static inline int32_t gp_plan_channel_edge(const gp_plan *plan, int32_t channel) {
  return channel % plan->edge_count;
}
static inline int32_t gp_plan_channel_copy(const gp_plan *plan, int32_t channel) {
  return channel / plan->edge_count;
}
static inline int32_t gp_plan_channel_maker(const gp_plan *plan, int32_t channel) {
  return gp_plan_maker(plan, gp_plan_channel_edge(plan, channel),
                       gp_plan_channel_copy(plan, channel));
}

/* ---- micro-batches (plan/edge/turns.c) ------------------------------------------------------- */

/* The copy of a stage that runs a micro-batch. */
static inline int32_t gp_plan_copy_of(const gp_plan *plan, int32_t stage, int64_t micro) {
  if (plan->turns) return plan->turns[(int64_t)stage * plan->micro_count + micro].copy;
  return gp_plan_replica_of(plan, micro);
}
/* The channel of an edge, of either kind, that a micro-batch's value goes through. */
static inline int32_t gp_plan_channel_at(const gp_plan *plan, int32_t edge, int64_t micro) {
  if (plan->copy_count == 1 || edge >= plan->edge_count) return gp_plan_channel(plan, edge, 0);
  const int32_t from = gp_plan_edge(plan, edge)->from;
  return gp_plan_channel(plan, edge, gp_plan_copy_of(plan, from, micro));
}
static inline const gp_channel *gp_plan_channel_of(const gp_plan *plan, int32_t edge,
                                                   int64_t micro) {
  return &plan->channels[gp_plan_channel_at(plan, edge, micro)];
}
/* Count the micro-batches with lower numbers that use the same channel of the edge: its turn. */
int64_t gp_plan_own_turn(const gp_plan *plan, int32_t edge, int64_t micro);
static inline int64_t gp_plan_turn(const gp_plan *plan, int32_t edge, int64_t micro) {
  const bool plain = !plan->shapes[1].own_edges && plan->copy_count == 1;
  return plain ? micro : gp_plan_own_turn(plan, edge, micro);
}
/* The micro-batch whose turn in the channel is so many earlier; -1: there is none. */
int64_t gp_plan_micro_before(const gp_plan *plan, int32_t edge, int64_t micro, int64_t turns);
/* List the stored micro-batches of a channel, ascending; returns how many. micros: room for
 * plan->micro_count, or NULL. */
int32_t gp_plan_channel_micros(const gp_plan *plan, int32_t channel, int32_t *micros);
/* Does that copy of a reading stage take values from the channel? */
bool gp_plan_channel_leads_to(const gp_plan *plan, int32_t channel, int32_t stage, int32_t copy);

#endif
