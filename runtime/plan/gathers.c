/* plan/gathers.c - see gathers.h. */
#include "plan/gathers.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "schedule/schedule.h"

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct numberer {
  gp_plan *plan;
  size_t room;
  int32_t *number; /* per node of the graph at hand: number + 1 */
  int32_t count;   /* of the stage at hand, so far */
  int32_t first;   /* number of the stage's first one */
} numberer;

/* Do other replicas take part? */
static bool is_gather(const gp_instr *instr) {
  return instr->op == GP_OP_replica_gather && instr->call.attr->replica_gather.replicas > 1;
}

/* What a replica hands to the others. */
static size_t bytes_of(const gp_instr *instr) {
  size_t bytes = 0;
  for (int i = 0; i < instr->call.n_in; i++) bytes += gp_meta_bytes(instr->call.in[i].meta);
  return bytes;
}

static gp_status refuse(int32_t stage) {
  return gp_fail(GP_EINVAL,
                 "sync_batch_norm: stage %d has other batch norms for other numbers of rows, "
                 "expected a model that does not branch on them",
                 (int)stage);
}

/* Note a gather of the larger micro-batches; those of the smaller ones have to be the same. */
static gp_status note(numberer *b, int k, int32_t stage, const gp_instr *instr) {
  gp_plan *plan = b->plan;
  const size_t bytes = bytes_of(instr);
  const int32_t j = b->first + b->count++;
  if (instr->call.attr->replica_gather.replicas != plan->replicas)
    return gp_fail(GP_EINVAL, "replica_gather: %lld replicas, expected those of the schedule, %d",
                   (long long)instr->call.attr->replica_gather.replicas, (int)plan->replicas);
  b->number[instr->node] = j + 1;
  if (k && plan->shapes[0].programs)
    return j < plan->gather_count && plan->gathers[j].stage == stage &&
                   plan->gathers[j].bytes == bytes
               ? GP_OK
               : refuse(stage);
  GP_TRY(gp_grow_array((size_t)plan->gather_count, &b->room, sizeof *plan->gathers,
                       (void **)&plan->gathers));
  plan->gathers[plan->gather_count++] = (gp_plan_gather){.stage = stage, .bytes = bytes};
  return GP_OK;
}

static gp_status note_all(numberer *b, int k, int32_t stage, const gp_program *program) {
  for (int32_t n = 0; program && n < program->instr_count; n++)
    if (is_gather(&program->instrs[n])) GP_TRY(note(b, k, stage, &program->instrs[n]));
  return GP_OK;
}

static void number_program(const numberer *b, gp_program *program) {
  for (int32_t n = 0; n < program->instr_count; n++) {
    gp_instr *instr = &program->instrs[n];
    if (!is_gather(instr)) continue;
    instr->gather = b->number[instr->node];
    program->gather_count++;
  }
}

/* The programs that keep everything have all gathers of a stage: nothing of them runs again. */
static gp_status number_stage(numberer *b, int k, int32_t stage) {
  const gp_stage_programs *own = &b->plan->shapes[k].programs[stage];
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  b->count = 0;
  GP_TRY(note_all(b, k, stage, own->forward[GP_KEEPS_ALL]));
  GP_TRY(note_all(b, k, stage, own->backward[GP_KEEPS_ALL]));
  const int count = gp_stage_programs_list(own, list);
  for (int i = 0; i < count; i++) number_program(b, list[i]);
  return GP_OK;
}

static gp_status number_shape(numberer *b, int k) {
  const gp_plan *plan = b->plan;
  int32_t first = 0;
  for (int32_t s = 0; s < plan->stage_count; s++) {
    b->first = first;
    GP_TRY(number_stage(b, k, s));
    first += b->count;
    if (k && first < plan->gather_count && plan->gathers[first].stage == s) return refuse(s);
  }
  return GP_OK;
}

static void place(gp_plan *plan) {
  size_t offset = 0;
  for (int32_t j = 0; j < plan->gather_count; j++) {
    if (j == 0 || plan->gathers[j].stage != plan->gathers[j - 1].stage) offset = 0;
    plan->gathers[j].offset = offset;
    offset += gp_plan_gather_bytes(&plan->gathers[j]);
  }
}

gp_status gp_plan_number_gathers(gp_plan *plan) {
  for (int k = 0; k < 2; k++) {
    numberer b = {.plan = plan, .room = (size_t)plan->gather_count};
    if (!plan->shapes[k].programs) continue;
    const size_t nodes = (size_t)plan->shapes[k].trace->graph.node_count;
    GP_TRY(gp_alloc_array(nodes + 1, sizeof *b.number, (void **)&b.number));
    const gp_status status = number_shape(&b, k);
    gp_free(b.number);
    GP_TRY(status);
  }
  place(plan);
  return GP_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool gathers(const gp_task *task) { return task->program && task->program->gather_count; }

/* Do two programs gather in the same order? */
static bool agree(const gp_program *a, const gp_program *b) {
  int32_t n = 0, m = 0;
  for (;; n++, m++) {
    while (n < a->instr_count && !a->instrs[n].gather) n++;
    while (m < b->instr_count && !b->instrs[m].gather) m++;
    if (n == a->instr_count || m == b->instr_count)
      return n == a->instr_count && m == b->instr_count;
    if (a->instrs[n].gather != b->instrs[m].gather) return false;
  }
}

/* Is b, of replica `replica`, the task for what a is in the first one? */
static bool match(const gp_plan *plan, const gp_task *a, const gp_task *b, int32_t replica) {
  return a->op == b->op && a->stage == b->stage &&
         gp_plan_micro_in(plan, a->micro, replica) == b->micro &&
         gp_plan_copy_in(plan, a->copy, replica) == b->copy && agree(a->program, b->program);
}

static const gp_task *next(const gp_plan *plan, int32_t device, int32_t *t) {
  while (*t < plan->first[device + 1] && !gathers(&plan->tasks[*t])) ++*t;
  return *t < plan->first[device + 1] ? &plan->tasks[(*t)++] : NULL;
}

static gp_status refuse_lists(const gp_plan *plan, const gp_task *a, const gp_task *b,
                              int32_t replica) {
  char own[GP_ACTION_TEXT] = "nothing", other[GP_ACTION_TEXT] = "nothing";
  const gp_action x = a ? gp_task_action(plan, a, a->micro) : (gp_action){0};
  const gp_action y = b ? gp_task_action(plan, b, b->micro) : (gp_action){0};
  if (a) gp_action_print(&x, own);
  if (b) gp_action_print(&y, other);
  return gp_fail(GP_ESCHEDULE,
                 "sync_batch_norm: replica %d runs %s where replica 0 runs %s: expected the same "
                 "actions in all replicas, in one order",
                 (int)replica, other, own);
}

static gp_status check_device(const gp_plan *plan, int32_t device, int32_t replica) {
  const int32_t other = device + replica * (plan->device_count / plan->replicas);
  int32_t t = plan->first[device], u = plan->first[other];
  for (;;) {
    const gp_task *a = next(plan, device, &t), *b = next(plan, other, &u);
    if (!a && !b) return GP_OK;
    if (!a || !b || !match(plan, a, b, replica)) return refuse_lists(plan, a, b, replica);
  }
}

gp_status gp_plan_check_gathers(const gp_plan *plan) {
  if (!plan->gather_count) return GP_OK;
  if (plan->step_micros != plan->replicas * plan->replica_micros)
    return gp_fail(GP_EINVAL,
                   "sync_batch_norm: the batch has rows for %d micro-batches, expected at least %d "
                   "rows: the %d replicas normalise together",
                   (int)plan->step_micros, (int)(plan->replicas * plan->replica_micros),
                   (int)plan->replicas);
  for (int32_t r = 1; r < plan->replicas && !plan->share; r++)
    for (int32_t d = 0; d < plan->device_count / plan->replicas; d++)
      GP_TRY(check_device(plan, d, r));
  return GP_OK;
}
