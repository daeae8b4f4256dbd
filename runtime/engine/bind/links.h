/* engine/bind/links.h - the links of a plan's edges, made when it is bound. */
#ifndef GP_ENGINE_LINKS_H
#define GP_ENGINE_LINKS_H

#include "engine/bind/binding.h"

gp_status gp_links_new(gp_binding *binding);
/* The link by which a device reads, or by which it made, an edge's values of a copy; NULL: it has
 * no part. */
gp_link *gp_links_find(const gp_binding *binding, int32_t edge, int32_t copy, int32_t device);
/* Look up again what tasks use of step edges, whose memory has moved. */
void gp_links_move(gp_binding *binding);
void gp_links_free(gp_binding *binding);
/* Before a run: nothing is published or released. */
void gp_links_begin(const gp_binding *binding);
/* Which slot a micro-batch takes on an edge, and how often it was used before. */
gp_link_turn gp_links_turn(const gp_plan *plan, int32_t edge, int64_t micro);
/* The same for a use of a task, which most often is known. */
static inline gp_link_turn gp_links_turn_of(const gp_plan *plan, const gp_task *task, int32_t u,
                                            const gp_bound_use *bound, int64_t micro) {
  return micro == task->micro ? bound->turn : gp_links_turn(plan, task->uses[u].edge, micro);
}
/* The edges of a task, as many as it uses. */
static inline const gp_bound_use *gp_links_uses(const gp_binding *b, const gp_task *task) {
  return b->uses + (task->uses - b->plan->uses);
}

#endif
