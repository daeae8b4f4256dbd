/* plan/order.h - see order.c. */
#ifndef GPIPE_PLAN_ORDER_H
#define GPIPE_PLAN_ORDER_H

#include "plan/make.h"

/* blocks of tasks without an action of the schedule: before all of them, and behind */
enum { GP_BLOCK_HEAD = -1, GP_BLOCK_TAIL = -2 };

typedef struct gp_task_order {
  gp_plan *plan;
  const gp_schedule *schedule;
  const gp_lowered *lowered;
  const int32_t *block; /* per task: the schedule's action that it is numbered with, or a block */
  const int32_t *order; /* per action of the schedule: its place in the topological order */
  int32_t count, late;  /* tasks; those that write buffers behind all forward passes (records.h) */
} gp_task_order;

/* Number all tasks in the topological order of the actions that they come from; tasks of one action
 * get consecutive numbers. next: per action, first how many tasks it has, then the number of its
 * next one. action_at: the action at each place of that order. Both are scratch of the caller's. */
void gp_plan_number_tasks(const gp_task_order *order, int32_t *next, int32_t *action_at);

#endif
