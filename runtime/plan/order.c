/* plan/order.c - numbers the tasks of a plan, on all devices, in an order in which they can run.
 *
 * Failures are reported, and messages sent, in this order. It is that of the schedule's actions:
 * what an action has become gets consecutive numbers. What ends a mini-batch comes behind all of
 * them. A share has the numbers of the whole plan's outline: where it does not know how many tasks
 * another device has, it leaves room for the most.
 */
#include "plan/order.h"

#include "plan/edge/step_edges.h"

/* ---- the ends of mini-batches ---------------------------------------------------------------- */

enum { RECORDS_SENT = -1, LATE }; /* before the endings */

/* The ending that a task belongs to; SEND belongs to that of the task it sends for, the next
 * one. */
static int ending_of(const gp_task *task) {
  if (task->op == GP_ACT_S) return LATE;
  if (task->op != GP_ACT_SEND) return gp_act_ending(task->op);
  return task->sends == GP_STEP_AT_LATE ? RECORDS_SENT : gp_act_ending(task[1].op);
}

/* Give numbers to the tasks of a device that belong to an ending; returns the next number. */
static int32_t number_ending(const gp_task_order *l, int32_t device, int ending, int32_t number) {
  const gp_plan *plan = l->plan;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    if (l->block[t] == GP_BLOCK_TAIL && ending_of(&plan->tasks[t]) == ending)
      plan->tasks[t].order = number++;
  return number;
}

/* Number the tasks that end a mini-batch, op by op through all devices: the order in which their
 * waits make them run. A share does not know how many the others have, so that each device has the
 * same numbers for an ending. Returns a number above them. */
static int32_t number_ends(const gp_task_order *l, int32_t number) {
  const gp_plan *plan = l->plan;
  const int32_t room = 2 * plan->stage_count + 2 + l->late;
  for (int ending = RECORDS_SENT; ending <= GP_ACT_ENDINGS; ending++) {
    int32_t end = number;
    for (int32_t d = 0; d < plan->device_count; d++)
      if (plan->share)
        number_ending(l, d, ending, number);
      else
        end = number_ending(l, d, ending, end);
    number = plan->share ? number + room : end;
  }
  return number;
}

/* Count the most tasks that each action of a device becomes, as lower.c appends them: replicas
 * send behind an action; in a stream both Ps stand behind an update (with replicas, and behind
 * UNSHARD, before an F or a reduction), and the counts of a mini-batch before its first F. */
static void count_most(const gp_task_order *l, int32_t device, int32_t *counts) {
  const gp_plan *plan = l->plan;
  const gp_lowered *from = l->lowered;
  const bool counting = gp_schedule_holds(l->schedule, device, plan->stage_count - 1);
  int32_t step = 1;
  for (int32_t i = from->first[device]; i < from->first[device + 1]; i++) {
    const gp_action *action = &from->actions[i];
    const bool begins = action->op == GP_ACT_F && action->micro / plan->step_micros == step;
    step += begins;
    if (from->source[i] < 0) continue;
    counts[from->source[i]] += plan->replicas > 1 ? 2 : 1;
    if (plan->batch && action->op == GP_ACT_U) counts[from->source[i]] += 3;
    if (gp_plan_shares_updates(plan) && action->op == GP_ACT_F) counts[from->source[i]] += 3;
    if (begins && counting) counts[from->source[i]] += plan->step_micros;
  }
}

/* Count the tasks of each action on all devices, also on those that the plan does not hold, so that
 * the numbers of shares agree. */
static void count_tasks(const gp_task_order *l, int32_t *counts) {
  for (int32_t t = 0; !l->plan->share && t < l->count; t++)
    if (l->block[t] >= 0) counts[l->block[t]]++;
  for (int32_t d = 0; l->plan->share && d < l->plan->device_count; d++) count_most(l, d, counts);
}

/* ---- all of them --------------------------------------------------------------------------- */

static int32_t number_all(const gp_task_order *l, int32_t block, int32_t number) {
  for (int32_t t = 0; t < l->count; t++)
    if (l->block[t] == block) l->plan->tasks[t].order = number++;
  return number;
}

/* Number the tasks before all actions, and return the number after them. A share only knows how
 * many there are at most on all devices. */
static int32_t number_heads(const gp_task_order *l) {
  const gp_plan *plan = l->plan;
  int32_t own = number_all(l, GP_BLOCK_HEAD, 0);
  int32_t most = plan->copy_count * (3 * plan->stage_count + plan->step_micros);
  return plan->share ? most + 2 * plan->device_count : own;
}

/* Where tasks of replicas wait for each other (gathers.h), let the actions that are the same in all
 * replicas follow each other: what comes before one of them comes before all. */
static void interleave(const gp_task_order *l, int32_t *action_at) {
  const gp_plan *plan = l->plan;
  const gp_schedule *s = l->schedule;
  const int32_t replicas = plan->replicas, total = s->first[s->device_count];
  const int32_t own = s->first[s->device_count / replicas]; /* actions of a replica */
  int32_t count = 0;
  if (!plan->gather_count || own * replicas != total) return;
  for (int32_t k = 0; k < total; k++)
    if (action_at[k] < own) action_at[count++] = action_at[k];
  for (int32_t k = own - 1; k >= 0; k--)
    for (int32_t r = 0, a = action_at[k]; r < replicas; r++)
      action_at[k * replicas + r] = a + r * own;
}

void gp_plan_number_tasks(const gp_task_order *l, int32_t *next, int32_t *action_at) {
  const gp_schedule *s = l->schedule;
  int32_t number = number_heads(l), total = s->first[s->device_count];
  for (int32_t a = 0; a < total; a++) next[a] = 0, action_at[l->order[a]] = a;
  interleave(l, action_at);
  count_tasks(l, next);
  for (int32_t k = 0; k < total; k++) {
    int32_t *own = &next[action_at[k]], count = *own;
    *own = number;
    number += count;
  }
  for (int32_t t = 0; t < l->count; t++)
    if (l->block[t] >= 0) l->plan->tasks[t].order = next[l->block[t]]++;
  l->plan->order_end = number_ends(l, number);
}
