/* plan/channels.h - the channels of a plan: where the values of an edge pass, in one replica.
 *
 * Replicas share no values of the model's edges, so each has a channel of its own for every edge.
 * Channels of step edges come behind those of all replicas. */
#ifndef GP_PLAN_CHANNELS_H
#define GP_PLAN_CHANNELS_H

#include "plan/plan.h"

/* The number of a channel. Edges of both kinds have numbers: step edges behind those of the
 * model. */
static inline int32_t gp_plan_channel(const gp_plan *plan, int32_t edge, int32_t replica) {
  if (edge < plan->edge_count) return replica * plan->edge_count + edge;
  return (plan->replicas - 1) * plan->edge_count + edge;
}
/* Count the channels of the model's edges, and those of both kinds. */
static inline int32_t gp_plan_value_channels(const gp_plan *plan) {
  return plan->replicas * plan->edge_count;
}
static inline int32_t gp_plan_channel_count(const gp_plan *plan) {
  return gp_plan_value_channels(plan) + plan->step_edge_count;
}
/* The edge of a channel of the model's edges, and its replica. */
static inline int32_t gp_plan_channel_edge(const gp_plan *plan, int32_t channel) {
  return channel % plan->edge_count;
}
static inline int32_t gp_plan_channel_replica(const gp_plan *plan, int32_t channel) {
  return channel / plan->edge_count;
}
/* The channel of an edge that a micro-batch's value goes through. */
static inline const gp_channel *gp_plan_channel_of(const gp_plan *plan, int32_t edge,
                                                   int64_t micro) {
  return &plan->channels[gp_plan_channel(plan, edge, gp_plan_replica_of(plan, micro))];
}
/* The device that makes the values of a channel, whose replica has one copy of the stage or two. */
static inline int32_t gp_plan_channel_maker(const gp_plan *plan, int32_t channel, int32_t twin) {
  const int32_t first = gp_plan_channel_replica(plan, channel) * gp_plan_twins(plan);
  return gp_plan_maker(plan, gp_plan_channel_edge(plan, channel), first + twin);
}

#endif
