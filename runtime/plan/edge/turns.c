/* plan/edge/turns.c - which micro-batches use a channel, and in which turns.
 *
 * With one copy of a stage in a replica the numbers of micro-batches say it. Where a replica has
 * two copies, the schedule deals the micro-batches to them as it likes, so a table is made.
 */
#include "base/memory.h"
#include "plan/channels.h"
#include "plan/make.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* Let the copies of a stage count their micro-batches. */
static void count_turns(const gp_plan *plan, gp_copy_turn *own, int32_t *next) {
  for (int32_t micro = 0; micro < plan->micro_count; micro++) {
    const bool again = plan->shapes[1].own_edges && micro == plan->shapes[0].micros;
    for (int32_t copy = 0; (!micro || again) && copy < plan->copy_count; copy++) next[copy] = 0;
    own[micro].turn = next[own[micro].copy]++;
  }
}

gp_status gp_plan_find_turns(gp_plan *plan, const gp_lowered *lowered) {
  size_t cells;
  int32_t *next;
  const size_t micros = (size_t)plan->micro_count;
  if (gp_plan_twins(plan) == 1) return GP_OK;
  GP_TRY(gp_size_mul((size_t)plan->stage_count, micros, &cells));
  GP_TRY(gp_alloc_array(cells, sizeof *plan->turns, (void **)&plan->turns));
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t i = lowered->first[d]; i < lowered->first[d + 1]; i++) {
      const gp_action *a = &lowered->actions[i];
      if (a->op == GP_ACT_F)
        plan->turns[(size_t)a->stage * micros + (size_t)a->micro].copy =
            gp_plan_copy_on(plan, a->stage, d);
    }
  GP_TRY(gp_alloc_array((size_t)plan->copy_count, sizeof *next, (void **)&next));
  for (int32_t s = 0; s < plan->stage_count; s++)
    count_turns(plan, &plan->turns[(size_t)s * micros], next);
  gp_free(next);
  return GP_OK;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Count the micro-batches of a mini-batch that use an edge; *first: the first of them. */
static int32_t users_of(const gp_plan *plan, int32_t edge, int32_t *first) {
  const bool small = gp_plan_edge_is_small(plan, edge);
  *first = small ? plan->shapes[0].micros : 0;
  if (!plan->shapes[1].own_edges) return plan->step_micros;
  return plan->shapes[small].micros;
}

/* The same of those that a replica runs. */
static int32_t own_users(const gp_plan *plan, int32_t edge, int32_t replica, int32_t *first) {
  const int32_t begin = replica * plan->replica_micros;
  const int32_t end = begin + gp_plan_micros_of(plan, replica);
  const int32_t users = users_of(plan, edge, first), behind = *first + users;
  if (*first < begin) *first = begin;
  const int32_t last = end < behind ? end : behind;
  return last > *first ? last - *first : 0;
}

/* Turns are counted over the micro-batches of the channel that use the edge. */
int64_t gp_plan_own_turn(const gp_plan *plan, int32_t edge, int64_t micro) {
  const int64_t stage = gp_plan_edge(plan, edge)->from;
  if (plan->turns) return plan->turns[stage * plan->micro_count + micro].turn;
  int32_t first, users = own_users(plan, edge, gp_plan_replica_of(plan, micro), &first);
  return micro / plan->step_micros * users + micro % plan->step_micros - first;
}

/* Does a micro-batch use the edge? */
static bool is_user(const gp_plan *plan, int32_t edge, int64_t micro) {
  return !plan->shapes[1].own_edges ||
         gp_plan_edge_is_small(plan, edge) == (gp_plan_shape_of(plan, micro) == 1);
}

int64_t gp_plan_micro_before(const gp_plan *plan, int32_t edge, int64_t micro, int64_t turns) {
  const int32_t channel = gp_plan_channel_at(plan, edge, micro);
  if (gp_plan_turn(plan, edge, micro) < turns) return -1;
  while (turns > 0)
    if (is_user(plan, edge, --micro) && gp_plan_channel_at(plan, edge, micro) == channel) turns--;
  return micro;
}

int32_t gp_plan_channel_micros(const gp_plan *plan, int32_t channel, int32_t *micros) {
  const int32_t edge = gp_plan_channel_edge(plan, channel);
  int32_t count = 0;
  for (int32_t micro = 0; micro < plan->micro_count; micro++) {
    if (!is_user(plan, edge, micro) || gp_plan_channel_at(plan, edge, micro) != channel) continue;
    if (micros) micros[count] = micro;
    count++;
  }
  return count;
}

/* ---- readers --------------------------------------------------------------------------------- */

/* The first micro-batch whose value goes through the channel to a copy of a stage, where the plan
 * has turns; -1: none does. */
static int32_t first_to(const gp_plan *plan, int32_t channel, int32_t stage, int32_t copy) {
  const int32_t maker = gp_plan_channel_copy(plan, channel);
  const int32_t from = gp_plan_edge(plan, gp_plan_channel_edge(plan, channel))->from;
  for (int32_t micro = 0; micro < plan->micro_count; micro++)
    if (gp_plan_copy_of(plan, from, micro) == maker && gp_plan_copy_of(plan, stage, micro) == copy)
      return micro;
  return -1;
}

/* A schedule may run the stages of a micro-batch in different copies. */
bool gp_plan_channel_leads_to(const gp_plan *plan, int32_t channel, int32_t stage, int32_t copy) {
  if (!plan->turns) return copy == gp_plan_channel_copy(plan, channel);
  return first_to(plan, channel, stage, copy) >= 0;
}

/* ---- what links can carry -------------------------------------------------------------------- */

/* Refuse two copies of a stage that share out the values of a channel, where they would have to be
 * sent. */
static gp_status check_reader(const gp_plan *plan, int32_t channel, int32_t stage) {
  const int32_t maker = gp_plan_channel_maker(plan, channel);
  int32_t micro = -1, device = -1;
  bool sends = false;
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    const int32_t reader = plan->placement[gp_plan_holder(plan, stage, copy)];
    const int32_t other = first_to(plan, channel, stage, copy);
    if (other < 0) continue;
    sends = sends || !gp_plan_shares(plan, maker, reader);
    if (micro >= 0 && sends)
      return gp_fail(GP_ESCHEDULE,
                     "plan: what stage %d makes on device %d goes to device %d for micro-batch %d "
                     "and to device %d for micro-batch %d, both for stage %d: expected one device "
                     "for all of them, because these devices do not share memory",
                     (int)gp_plan_edge(plan, gp_plan_channel_edge(plan, channel))->from, (int)maker,
                     (int)device, (int)micro, (int)reader, (int)other, (int)stage);
    micro = other;
    device = reader;
  }
  return GP_OK;
}

/* A link between two memories carries every value of its channel, in turn. Published schedules keep
 * to that, because their copies are pipelines of their own. */
gp_status gp_plan_check_turns(const gp_plan *plan) {
  for (int32_t c = 0; plan->turns && c < gp_plan_value_channels(plan); c++) {
    const gp_edge *edge = gp_plan_edge(plan, gp_plan_channel_edge(plan, c));
    for (int32_t i = 0; i < edge->to_count; i++) GP_TRY(check_reader(plan, c, edge->to[i]));
  }
  return GP_OK;
}
