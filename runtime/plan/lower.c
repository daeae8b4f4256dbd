/* plan/lower.c - a lowered schedule becomes tasks: each action gets its program.
 *
 * C counts what the loss is divided by before a mini-batch's first forward pass, while the last
 * stage waits anyway. P prepares what depends on parameters only, first of all and again after each
 * update of an asynchronous schedule. S writes buffers behind all forward passes, where these
 * cannot (records.h), in a stream before the reduction of their stage. Tasks SEND, VOTE and DECIDE
 * stand where a device hands to others what they read once per step (edge/step_edges.h), UNSHARD
 * where it takes over values that other replicas own. In a stream that is right before the first F
 * that reads these values, or before they are stashed by the next update, so that they are under
 * way meanwhile.
 */
#include "base/memory.h"
#include "plan/edge/step_edges.h"
#include "plan/order.h"
#include "plan/records.h"

typedef struct lowerer {
  gp_plan *plan;
  const gp_schedule *schedule;
  const gp_lowered *lowered;
  int32_t *block;   /* per task: as gp_task_order has it */
  int32_t *forward; /* per (stage, micro-batch): the F whose backward pass is to come + 1 */
  int32_t *last;    /* per stage: its last backward action on the device at hand; -1: none */
  int32_t *copy;    /* per (stage, micro-batch): the copy that runs F */
  int32_t *news;    /* per stage: the update whose values are not taken over yet + 1; 0: none */
  int32_t *newest;  /* per stage: the newest version on the device at hand */
  int32_t device, count;
} lowerer;

static gp_task *append(lowerer *l, const gp_action *action, int32_t block) {
  gp_task *task = &l->plan->tasks[l->count];
  l->block[l->count++] = block;
  *task = (gp_task){.op = (gp_act)action->op,
                    .stage = action->stage,
                    .copy = gp_plan_copy_on(l->plan, action->stage, l->device),
                    .micro = action->micro < 0 ? 0 : action->micro,
                    .version = action->version};
  task->shape = gp_plan_shape_of(l->plan, task->micro);
  for (int slot = 0; slot < GP_SLOT_BASES; slot++) task->slot[slot] = -1;
  return task;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Choose the program of a task among those of its stage. */
static gp_program *program_of(const gp_plan *plan, const gp_task *task) {
  const gp_stage_programs *p = &plan->shapes[task->shape].programs[task->stage];
  return gp_stage_program_of(p, (gp_act)task->op, task->kept);
}

/* Does the stage run anything again ahead of its backward pass? */
static bool recomputes(const gp_plan *plan, const gp_action *action) {
  const int32_t shape = gp_plan_shape_of(plan, action->micro);
  return plan->shapes[shape].programs[action->stage].recompute != NULL;
}

/* Append P for both numbers of rows; it reads the version that is newest at this place. */
static void append_prepare(lowerer *l, int32_t stage, const gp_action *after, int32_t block) {
  const gp_plan *plan = l->plan;
  if (!plan->active[gp_plan_holder(plan, stage, gp_plan_copy_on(plan, stage, l->device))]) return;
  for (int32_t k = 0; k < 2; k++) {
    const gp_stage_programs *programs = l->plan->shapes[k].programs;
    if (!programs || !programs[stage].prepare) continue;
    gp_action action = *after;
    action.op = GP_ACT_P;
    gp_task *task = append(l, &action, block);
    task->shape = k;
    task->program = program_of(l->plan, task);
  }
}

/* Append C for each micro-batch of a mini-batch. */
static void append_counts(lowerer *l, int32_t step, int32_t block) {
  gp_action action = {.op = GP_ACT_C, .stage = l->plan->stage_count - 1, .version = -1};
  if (!gp_schedule_holds(l->schedule, l->device, action.stage)) return;
  for (int32_t i = 0; i < l->plan->step_micros; i++) {
    action.micro = step * l->plan->step_micros + i;
    gp_task *task = append(l, &action, block);
    task->program = program_of(l->plan, task);
    if (!task->program) l->count--;
  }
}

/* Mark the micro-batches that keep their values: all but those for which the device runs R, and
 * none if the mode says what to keep stage by stage. All tasks of a micro-batch in a stage read the
 * version of the weights that its F read. */
static void mark_kept(const lowerer *l, int32_t begin) {
  gp_plan *plan = l->plan;
  for (int32_t t = begin; gp_plan_trains(plan->kind) && t < l->count; t++) {
    gp_task *task = &plan->tasks[t], *forward;
    int32_t *at =
        &l->forward[(size_t)task->stage * (size_t)plan->micro_count + (size_t)task->micro];
    if (task->op > GP_ACT_R) continue;
    if (task->op == GP_ACT_F) {
      *at = t + 1;
      task->kept = !plan->by_stage;
    } else if (*at) {
      forward = &plan->tasks[*at - 1];
      if (task->op == GP_ACT_R) forward->kept = false;
      task->kept = forward->kept;
      task->version = forward->version;
      if (task->op == GP_ACT_W || task->op == GP_ACT_B) *at = 0;
    }
  }
}

/* ---- devices ------------------------------------------------------------------------------- */

/* Give an action that ends a batch the micro-batch that the batch ends with: the action is done
 * when that one is. */
static void set_update_micro(const gp_plan *plan, gp_action *action) {
  int32_t batch = plan->batch ? plan->batch : plan->micro_count;
  if (gp_act_ends((gp_act)action->op))
    action->micro = (action->micro < 0 ? 1 : action->micro + 1) * batch - 1;
}

/* Append a task of the device itself; it is named after a stage that the device holds. */
static gp_task *append_own(lowerer *l, gp_act op, const gp_action *like, int32_t block) {
  gp_action action = *like;
  action.op = (uint8_t)op;
  return append(l, &action, block);
}

/* Append SEND if the device publishes anything at that point. */
static void append_send(lowerer *l, gp_step_phase phase, const gp_action *like, int32_t block) {
  if (gp_plan_sends(l->plan, l->device, phase, like->stage))
    append_own(l, GP_ACT_SEND, like, block)->sends = (int32_t)phase;
}

/* Append UNSHARD if the device takes over values of the stage, and P, which reads them. */
static void append_news(lowerer *l, int32_t stage, const gp_action *after, int32_t block) {
  if (gp_plan_takes(l->plan, l->device, stage)) {
    gp_action action = *after;
    action.op = GP_ACT_UNSHARD;
    append(l, &action, block);
  }
  append_prepare(l, stage, after, block);
}

/* Note an update of a stream, whose new values are taken over before they are needed. */
static void note_news(lowerer *l, const gp_action *update, int32_t i) {
  l->newest[update->stage]++;
  l->news[update->stage] = i + 1;
}

/* Take over the values of the last update if the action is the first to need them. */
static void append_due_news(lowerer *l, const gp_action *action, int32_t block) {
  const int32_t stage = action->stage, update = l->news[stage] - 1;
  const bool reads = action->op == GP_ACT_F && action->version == l->newest[stage];
  if (update < 0 || (!reads && action->op != GP_ACT_REDUCE)) return;
  gp_action after = l->lowered->actions[update];
  set_update_micro(l->plan, &after);
  append_news(l, stage, &after, block);
  l->news[stage] = 0;
}

/* Find the copies that run the forward passes; only S has to know them. */
static void find_copies(const lowerer *l) {
  const gp_lowered *from = l->lowered;
  for (int32_t d = 0; d < from->device_count; d++)
    for (int32_t i = from->first[d]; i < from->first[d + 1]; i++) {
      const gp_action *x = &from->actions[i];
      if (x->op == GP_ACT_F && gp_plan_is_late(l->plan, x->stage))
        l->copy[(size_t)x->stage * (size_t)l->plan->micro_count + (size_t)x->micro] =
            gp_plan_copy_on(l->plan, x->stage, d);
    }
}

/* Append S for each micro-batch of a mini-batch, in order, if the device keeps the buffers of the
 * stage. */
static void append_late_stage(lowerer *l, int32_t stage, int32_t step, int32_t block) {
  const gp_plan *plan = l->plan;
  const int32_t keeper = plan->placement[gp_plan_holder(plan, stage, 0)];
  if (keeper != l->device || !gp_plan_is_late(plan, stage)) return;
  for (int32_t i = step * plan->step_micros; i < (step + 1) * plan->step_micros; i++) {
    const gp_action action = {.op = GP_ACT_S, .stage = stage, .micro = i, .version = -1};
    gp_task *task = append(l, &action, block);
    task->from = l->copy[(size_t)stage * (size_t)plan->micro_count + (size_t)i];
    if (!program_of(plan, task)) l->count--;
  }
}

/* Append what comes behind the forward passes: SEND for what they have recorded, and S where the
 * device keeps the buffers of a stage. */
static void append_late(lowerer *l) {
  const gp_plan *plan = l->plan;
  bool first_held = true;
  for (int32_t s = 0; s < plan->stage_count; s++) {
    const gp_action first = {.stage = s, .version = -1};
    if (!gp_schedule_holds(l->schedule, l->device, s)) continue;
    if (first_held) append_send(l, GP_STEP_AT_LATE, &first, GP_BLOCK_TAIL);
    first_held = false;
  }
  for (int32_t s = 0; s < plan->stage_count; s++) append_late_stage(l, s, 0, GP_BLOCK_TAIL);
}

/* Find the last actions of each stage that add to its gradients, and forget the device before. */
static void find_last(lowerer *l) {
  const gp_lowered *from = l->lowered;
  for (int32_t s = 0; s < l->plan->stage_count; s++) {
    l->last[s] = -1;
    l->news[s] = l->newest[s] = 0;
  }
  for (int32_t i = from->first[l->device]; i < from->first[l->device + 1]; i++)
    if (from->actions[i].op == GP_ACT_B || from->actions[i].op == GP_ACT_W)
      l->last[from->actions[i].stage] = i;
}

/* Is it the last action that adds to the gradients of its stage in its mini-batch? In a stream a
 * reduction follows. */
static bool is_last(const lowerer *l, int32_t i) {
  const gp_lowered *from = l->lowered;
  const int32_t stage = from->actions[i].stage;
  if (!l->plan->batch) return l->last[stage] == i;
  if (from->actions[i].op != GP_ACT_B && from->actions[i].op != GP_ACT_W) return false;
  for (int32_t k = i + 1; k < from->first[l->device + 1]; k++) {
    const gp_action *next = &from->actions[k];
    if (next->stage == stage && next->op == GP_ACT_REDUCE) return true;
    if (next->stage == stage && (next->op == GP_ACT_B || next->op == GP_ACT_W)) return false;
  }
  return false;
}

/* Append what a device does before the first action of a kind: hand out gradients before others add
 * them up; vote and decide before the first scale or update. */
static void append_before(lowerer *l, const gp_action *action, gp_act before) {
  const gp_plan *plan = l->plan;
  const gp_act op = (gp_act)action->op;
  if (op == before) return;
  if (op == GP_ACT_REDUCE && plan->replicas == 1)
    append_send(l, GP_STEP_AT_REDUCE, action, GP_BLOCK_TAIL);
  if (op == GP_ACT_TIE) append_send(l, GP_STEP_AT_TIE, action, GP_BLOCK_TAIL);
  if (!plan->decides || before == GP_ACT_CLIP || (op != GP_ACT_CLIP && op != GP_ACT_U)) return;
  append_own(l, GP_ACT_VOTE, action, GP_BLOCK_TAIL);
  if (l->device == gp_plan_decider(plan)) append_own(l, GP_ACT_DECIDE, action, GP_BLOCK_TAIL);
}

/* Append what comes before everything else: SEND for the parameters that other devices read, SEND
 * once those are there that the device brings for others, UNSHARD and P. */
static void append_head(lowerer *l) {
  const gp_plan *plan = l->plan;
  bool first_held = true;
  for (int32_t s = 0; s < plan->stage_count; s++) {
    if (!gp_schedule_holds(l->schedule, l->device, s)) continue;
    const gp_action first = {.stage = s, .version = -1};
    if (first_held) append_send(l, GP_STEP_AT_BEGIN, &first, GP_BLOCK_HEAD);
    if (first_held) append_send(l, GP_STEP_AT_BROUGHT, &first, GP_BLOCK_HEAD);
    first_held = false;
    append_news(l, s, &first, GP_BLOCK_HEAD);
  }
}

/* Do late tasks come before an action? They end the forward half of a split plan, and come behind
 * all passes of any other. */
static bool is_behind(const lowerer *l, const gp_action *action, int32_t block) {
  return l->plan->kind == GP_PLAN_SPLIT ? action->op != GP_ACT_F : block == GP_BLOCK_TAIL;
}

static void lower_device(lowerer *l) {
  gp_plan *plan = l->plan;
  const gp_lowered *from = l->lowered;
  int32_t begin = l->count, step = 0;
  const bool shares = gp_plan_shares_updates(plan);
  bool late = !gp_plan_trains(plan->kind) || shares; /* no late tasks are to come behind all */
  gp_act before = GP_ACT_F;
  find_last(l);
  append_head(l);
  plan->devices[l->device].half = -1;
  append_counts(l, step++, GP_BLOCK_HEAD);
  for (int32_t i = from->first[l->device]; i < from->first[l->device + 1]; i++) {
    gp_action action = from->actions[i];
    int32_t block = from->source[i] < 0 ? GP_BLOCK_TAIL : from->source[i];
    if (!late && is_behind(l, &action, block)) {
      append_late(l);
      late = true;
    }
    if (action.op != GP_ACT_F && plan->devices[l->device].half < 0)
      plan->devices[l->device].half = l->count;
    if (action.op == GP_ACT_F && action.micro / plan->step_micros == step)
      append_counts(l, step++, block);
    set_update_micro(plan, &action);
    if (block == GP_BLOCK_TAIL) append_before(l, &action, before);
    before = (gp_act)action.op;
    if (plan->by_stage && action.op == GP_ACT_R && !recomputes(plan, &action)) continue;
    if (shares) append_due_news(l, &action, block);
    if (shares && action.op == GP_ACT_REDUCE)
      append_late_stage(l, action.stage, action.micro / plan->step_micros, block);
    append(l, &action, block);
    /* replicas: while the device goes on with other stages, gradients are under way */
    if (plan->replicas > 1 && is_last(l, i)) append_send(l, GP_STEP_OF_STAGE, &action, block);
    if (action.op != GP_ACT_U || !plan->batch) continue;
    if (shares)
      note_news(l, &from->actions[i], i);
    else
      append_prepare(l, action.stage, &action, block);
  }
  if (!late) append_late(l);
  if (plan->devices[l->device].half < 0) plan->devices[l->device].half = l->count;
  mark_kept(l, begin);
  for (int32_t t = begin; t < l->count; t++)
    if (plan->tasks[t].op != GP_ACT_P) plan->tasks[t].program = program_of(plan, &plan->tasks[t]);
}

/* Count the tasks S at most. */
static size_t late_count(const gp_plan *plan) {
  size_t count = 0;
  for (int32_t s = 0; s < plan->stage_count; s++)
    if (gp_plan_is_late(plan, s)) count += (size_t)plan->micro_count;
  return count;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Count the lowered actions of the devices that the plan holds. */
static size_t lowered_count(const gp_plan *plan, const gp_lowered *lowered) {
  size_t count = 0;
  for (int32_t d = 0; d < plan->device_count; d++)
    if (gp_plan_has(plan, d)) count += (size_t)(lowered->first[d + 1] - lowered->first[d]);
  return count;
}

/* Number the tasks. A schedule that lowering made does not know the order of its actions. */
static gp_status number_tasks(const lowerer *l, int32_t *next, int32_t *action_at) {
  const gp_schedule *s = l->schedule;
  gp_task_order order = {
      l->plan, s, l->lowered, l->block, s->order, l->count, (int32_t)late_count(l->plan)};
  int32_t *own = NULL;
  gp_status status = GP_OK;
  if (!s->order) {
    GP_TRY(gp_alloc_array((size_t)s->first[s->device_count] + 1, sizeof *own, (void **)&own));
    status = gp_schedule_find_order(s, own);
    order.order = own;
  }
  if (!status) gp_plan_number_tasks(&order, next, action_at);
  gp_free(own);
  return status;
}

gp_status gp_plan_add_tasks(gp_plan *plan, const gp_schedule *schedule, const gp_lowered *lowered) {
  lowerer l = {.plan = plan, .schedule = schedule, .lowered = lowered};
  size_t devices = (size_t)plan->device_count, actions = (size_t)schedule->first[devices];
  size_t stages = (size_t)plan->stage_count, cells = stages * (size_t)plan->micro_count;
  /* the lowered actions, P and C; P again after each update; S; SEND, UNSHARD, VOTE and DECIDE */
  size_t room = 3 * lowered_count(plan, lowered) +
                2 * (size_t)(plan->copy_count * (plan->micro_count + 2 * plan->stage_count)) +
                2 * (size_t)(plan->copy_count * plan->stage_count) + 7 * devices +
                late_count(plan) + 1;
  size_t copies = late_count(plan) ? cells : 0;
  int32_t *notes;
  GP_TRY(gp_alloc_array(room, sizeof(gp_task), (void **)&plan->tasks));
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&plan->first));
  GP_TRY(gp_alloc_array(room + 2 * actions + 2 + cells + copies + 3 * stages, sizeof(int32_t),
                        (void **)&notes));
  l.block = notes;
  l.forward = notes + room + 2 * actions + 2;
  l.copy = l.forward + cells;
  l.last = l.copy + copies;
  l.news = l.last + stages;
  l.newest = l.news + stages;
  if (copies) find_copies(&l);
  for (; l.device < plan->device_count; l.device++) {
    if (gp_plan_has(plan, l.device)) lower_device(&l);
    plan->first[l.device + 1] = l.count;
  }
  const gp_status status = number_tasks(&l, notes + room, notes + room + actions + 1);
  gp_free(notes);
  return status;
}
