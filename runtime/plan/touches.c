/* plan/touches.c - see touches.h. */
#include "plan/touches.h"

#include "schedule/schedule.h"

const char *gp_touched_name(gp_touched buffer) {
#define TEXT(name, text) text,
  static const char *const names[] = {GP_TOUCHED_LIST(TEXT)};
#undef TEXT
  return names[buffer];
}

typedef struct lister {
  const gp_plan *plan;
  const gp_task *task;
  gp_touch *list;
  int32_t count;
} lister;

/* Note an access to a part, or join it with an earlier one to the same instance. */
static void note_part(lister *l, gp_touched buffer, int part, int32_t instance, unsigned modes) {
  for (int32_t i = 0; i < l->count; i++) {
    gp_touch *touch = &l->list[i];
    if (touch->buffer != buffer || touch->part != part || touch->instance != instance) continue;
    touch->modes |= modes;
    return;
  }
  l->list[l->count++] = (gp_touch){buffer, modes, instance, -1, part};
}

static void note(lister *l, gp_touched buffer, int32_t instance, unsigned modes) {
  note_part(l, buffer, 0, instance, modes);
}

/* ---- programs ------------------------------------------------------------------------------ */

static bool is_slot(int32_t base) {
  return base >= GP_BASE_SAVED && base < GP_BASE_SAVED + GP_SLOT_BASES;
}

/* What F keeps of a micro-batch that is recomputed lies in slots of its own. */
gp_touched gp_touched_slot(const gp_task *task, int32_t base) {
  switch (base - gp_base_part(base)) {
  case GP_BASE_SAVED: return task->kept ? GP_TOUCHED_SAVED : GP_TOUCHED_HELD;
  case GP_BASE_AWAY: return GP_TOUCHED_AWAY;
  case GP_BASE_RECOMPUTED: return GP_TOUCHED_RECOMPUTED;
  default: return GP_TOUCHED_CARRIED;
  }
}

static bool is_within(int32_t base, int32_t first) {
  return base >= first && base < first + GP_MAX_BATCH_TENSORS;
}

/* Name the family of a base. Outputs, gradients of inputs, and what the batch holds have one base
 * per tensor, and these follow each other. */
static gp_touched family_of(int32_t base) {
  if (is_within(base, GP_BASE_OUTPUT)) return GP_TOUCHED_OUTPUTS;
  return is_within(base, GP_BASE_INPUT_GRAD) ? GP_TOUCHED_INPUT_GRADIENTS : GP_TOUCHED_BATCH;
}

/* Note a parameter or buffer of the task's stage, or of another stage of this device. */
static void note_stage(lister *l, int32_t base, unsigned modes) {
  const int32_t stages = l->plan->stage_count, stage = (base - GP_BASE_VALUE) % stages;
  const int32_t version = l->plan->batch ? l->task->version : -1;
  if (stage != l->task->stage)
    note(l, GP_TOUCHED_NEIGHBOUR, stage, modes);
  else if (base >= GP_BASE_VALUE + stages)
    note(l, GP_TOUCHED_BUFFERS, -1, modes);
  else
    note(l, GP_TOUCHED_WEIGHTS, version, modes);
}

/* The buffer of a base that no stage owns. */
static gp_touched buffer_of(const gp_task *task, int32_t base) {
  if (is_slot(base)) return gp_touched_slot(task, base);
  switch (base) {
  case GP_BASE_TEMP: return GP_TOUCHED_TEMPORARY;
  case GP_BASE_INVARIANT: return GP_TOUCHED_PREPARED;
  case GP_BASE_PACKED: return GP_TOUCHED_PACKED;
  case GP_BASE_HALF: return GP_TOUCHED_HALVES;
  case GP_BASE_CONSTANT_COPY: return GP_TOUCHED_CONSTANTS;
  case GP_BASE_BUFFER: return GP_TOUCHED_BUFFERS;
  case GP_BASE_GRAD: return GP_TOUCHED_GRADIENTS;
  case GP_BASE_EXTRA: return GP_TOUCHED_EXTRAS;
  case GP_BASE_RECORD: return GP_TOUCHED_RECORDS;
  case GP_BASE_LOSS: return GP_TOUCHED_LOSS;
  case GP_BASE_COUNT: return GP_TOUCHED_COUNTED;
  default: return family_of(base);
  }
}

/* A task that adds to a partial sum finds it at the bases of gradients. */
static bool is_partial(const gp_task *task, int32_t base) {
  return task->partial && (base == GP_BASE_GRAD || base == GP_BASE_EXTRA);
}

/* Accumulators are named by their stage, because TIE reads those of others; records by their
 * micro-batch. */
static int32_t instance_of(const gp_task *task, int32_t base) {
  if (base == GP_BASE_EXTRA) return task->stage;
  if (base == GP_BASE_RECORD) return task->micro;
  return is_slot(base) ? task->slot[base - GP_BASE_SAVED] : -1;
}

/* Note the memory of an operand. */
static void note_place(lister *l, gp_place place, unsigned modes) {
  /* behind: edges, constants and crossings take turns; note_uses notes edges and crossings */
  const int32_t stages = l->plan->stage_count, behind = place.base - gp_base_of_edge(stages, 0);
  if (behind >= 0 && behind % 3 != 1) return;
  if (behind >= 0)
    note(l, GP_TOUCHED_CONSTANTS, -1, modes);
  else if (place.base >= GP_BASE_VALUE)
    note_stage(l, place.base, modes);
  else if (is_partial(l->task, place.base))
    note(l, GP_TOUCHED_PARTIALS, l->task->partial, modes);
  else
    note_part(l, buffer_of(l->task, place.base),
              gp_base_is_kept(place.base) ? gp_base_part(place.base) : 0,
              instance_of(l->task, place.base), modes);
}

/* Note the gradients and accumulators of the task's stage, or one of their partial sums. */
static void note_sum(lister *l, int32_t partial, unsigned modes) {
  if (partial) {
    note(l, GP_TOUCHED_PARTIALS, partial, modes);
    return;
  }
  note(l, GP_TOUCHED_GRADIENTS, -1, modes);
  if (l->plan->asked[l->task->stage].extras) note(l, GP_TOUCHED_EXTRAS, l->task->stage, modes);
}

/* Does the plan have accumulators beside the main ones on the task's stage? */
static bool has_extras(const lister *l) { return l->plan->asked[l->task->stage].extras > 0; }

/* Note the operands of a program. A task that opens gradients writes all of them: zeros where its
 * program writes nothing. */
static void note_program(lister *l, const gp_program *program) {
  const bool opens = l->task->opens;
  for (int32_t n = 0; n < program->instr_count; n++) {
    const gp_instr *instr = &program->instrs[n];
    unsigned out = instr->call.accumulate && !opens ? GP_TOUCH_ADD : GP_TOUCH_WRITE;
    for (int i = 0; i < instr->call.n_in; i++) note_place(l, instr->in[i], GP_TOUCH_READ);
    for (int k = 0; k < instr->call.n_out; k++) note_place(l, instr->out[k], out);
    if (instr->gather)
      note(l, GP_TOUCHED_GATHER, instr->gather - 1, GP_TOUCH_READ | GP_TOUCH_WRITE);
  }
  if (program->shared_bytes) note(l, GP_TOUCHED_TEMPORARY, -1, GP_TOUCH_WRITE);
  if (opens) note_sum(l, l->task->partial, GP_TOUCH_WRITE);
  for (int32_t k = 0; k < l->task->merges; k++) {
    note_sum(l, l->task->partial - k, GP_TOUCH_READ);
    note_sum(l, l->task->partial - k - 1, GP_TOUCH_ADD);
  }
}

/* ---- what ends a mini-batch ------------------------------------------------------------------ */

/* Note the accumulators that TIE adds to gradients that its copy owns, as far as they lie with its
 * own device: the others come by step edges. */
static void note_tied(lister *l) {
  const gp_plan *plan = l->plan;
  const gp_task *task = l->task;
  const int32_t device = plan->placement[gp_plan_holder(plan, task->stage, task->copy)];
  for (int32_t x = 0; x < plan->extra_count; x++) {
    const gp_plan_extra *extra = &plan->extras[x];
    if (extra->owner == task->stage && extra->copy == task->copy &&
        plan->placement[gp_plan_holder(plan, extra->stage, extra->copy)] == device)
      note(l, GP_TOUCHED_EXTRAS, extra->stage, GP_TOUCH_READ);
  }
}

/* Note what U touches. In a stream a stage checks its own gradients and begins the next ones. */
static void note_update(lister *l) {
  const unsigned both = GP_TOUCH_READ | GP_TOUCH_WRITE;
  const bool streams = gp_plan_streams(l->plan);
  note(l, GP_TOUCHED_WEIGHTS, -1, both);
  note(l, GP_TOUCHED_GRADIENTS, -1, streams ? both : GP_TOUCH_READ);
  note(l, GP_TOUCHED_MOMENTS, -1, both);
  if (l->plan->asked[l->task->stage].halves) note(l, GP_TOUCHED_HALVES, -1, GP_TOUCH_WRITE);
  if (streams && has_extras(l)) note(l, GP_TOUCHED_EXTRAS, l->task->stage, both);
  if (l->task->stash) note(l, GP_TOUCHED_VERSIONS, l->task->version, GP_TOUCH_WRITE);
}

/* Does the copy of the task own gradients, or accumulators beside them? The first one may own
 * frozen values alone. */
static bool owns(const lister *l) {
  const gp_plan *plan = l->plan;
  const gp_task *task = l->task;
  if (!task->copy) return true;
  for (int32_t x = 0; x < plan->extra_count; x++)
    if (plan->extras[x].stage == task->stage && plan->extras[x].copy == task->copy) return true;
  return plan->owned[gp_plan_holder(plan, task->stage, task->copy)] > 0;
}

/* Note what a task that ends a mini-batch touches. DECIDE touches no memory but its step edges; a
 * copy that owns nothing has nothing to do. */
static void note_ending(lister *l) {
  if (l->task->op == GP_ACT_VOTE && l->plan->joined) note(l, GP_TOUCHED_NORMS, -1, GP_TOUCH_READ);
  if (gp_act_is_own(l->task->op) || !owns(l)) return;
  switch (l->task->op) {
  case GP_ACT_REDUCE:
    note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_ADD);
    if (has_extras(l)) note(l, GP_TOUCHED_EXTRAS, l->task->stage, GP_TOUCH_ADD);
    if (l->plan->batch) note_tied(l);
    break;
  case GP_ACT_TIE:
    note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_ADD);
    note_tied(l);
    break;
  case GP_ACT_NORM:
    note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_READ);
    note(l, GP_TOUCHED_NORMS, -1, GP_TOUCH_WRITE);
    break;
  case GP_ACT_CLIP: note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_READ | GP_TOUCH_WRITE); break;
  default: note_update(l);
  }
}

/* ---- edges --------------------------------------------------------------------------------- */

/* Note edges: the task that publishes a value writes it; later tasks of its stage read it too. */
static void note_uses(lister *l) {
  for (int32_t u = 0; u < l->task->use_count; u++) {
    const gp_edge_use *use = &l->task->uses[u];
    const bool once = use->edge >= l->plan->edge_count;
    note(l, once ? GP_TOUCHED_STEP : GP_TOUCHED_EDGE, use->edge,
         use->publish || (once && use->acquire) ? GP_TOUCH_WRITE : GP_TOUCH_READ);
    l->list[l->count - 1].use = u;
  }
}

int32_t gp_plan_touches_most(const gp_plan *plan, const gp_task *task) {
  const int32_t gathers = task->program ? task->program->gather_count : 0;
  return task->use_count + 2 * plan->stage_count + task->merges + gathers + GP_TOUCHED_COUNT +
         GP_SLOT_BASES;
}

int32_t gp_plan_touches(const gp_plan *plan, const gp_task *task, gp_touch *list) {
  lister l = {.plan = plan, .task = task, .list = list};
  note_uses(&l);
  if (task->program) note_program(&l, task->program);
  if (gp_act_ends(task->op)) note_ending(&l);
  if (task->op == GP_ACT_UNSHARD) note(&l, GP_TOUCHED_WEIGHTS, -1, GP_TOUCH_WRITE);
  return l.count;
}
