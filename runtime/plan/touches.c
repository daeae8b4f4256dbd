/* plan/touches.c - see touches.h. */
#include "plan/touches.h"

#include "base/memory.h"
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
  size_t room;
} lister;

/* Note an access, or join it with an earlier one to the same instance. */
static gp_status note(lister *l, gp_touched buffer, int32_t instance, unsigned modes) {
  for (int32_t i = 0; i < l->count; i++) {
    gp_touch *touch = &l->list[i];
    if (touch->buffer != buffer || touch->instance != instance) continue;
    touch->modes |= modes;
    return GP_OK;
  }
  GP_TRY(gp_grow_array((size_t)l->count, &l->room, sizeof *l->list, (void **)&l->list));
  l->list[l->count++] = (gp_touch){buffer, modes, instance, -1};
  return GP_OK;
}

/* ---- programs ------------------------------------------------------------------------------ */

static int32_t slot_of(const gp_task *task, int32_t base) {
  switch (base) {
  case GP_BASE_SAVED: return task->slot[task->kept ? GP_SLOT_KEPT : GP_SLOT_DROPPED];
  case GP_BASE_RECOMPUTED: return task->slot[GP_SLOT_RECOMPUTED];
  default: return task->slot[GP_SLOT_CARRIED];
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
static gp_status note_stage(lister *l, int32_t base, unsigned modes) {
  const int32_t stages = l->plan->stage_count, stage = (base - GP_BASE_VALUE) % stages;
  const bool own = stage == l->task->stage;
  const int32_t version = l->plan->batch ? l->task->version : -1;
  if (!own) return note(l, GP_TOUCHED_NEIGHBOUR, stage, modes);
  if (base >= GP_BASE_VALUE + stages) return note(l, GP_TOUCHED_BUFFERS, -1, modes);
  return note(l, GP_TOUCHED_WEIGHTS, version, modes);
}

/* Note the memory of an operand. */
static gp_status note_place(lister *l, gp_place place, unsigned modes) {
  /* behind: edges, constants and crossings take turns; note_uses notes edges and crossings */
  const int32_t stages = l->plan->stage_count, behind = place.base - gp_base_of_edge(stages, 0);
  if (behind >= 0) return behind % 3 == 1 ? note(l, GP_TOUCHED_CONSTANTS, -1, modes) : GP_OK;
  if (place.base >= GP_BASE_VALUE) return note_stage(l, place.base, modes);
  switch (place.base) {
  case GP_BASE_TEMP: return note(l, GP_TOUCHED_TEMPORARY, -1, modes);
  case GP_BASE_SAVED: return note(l, GP_TOUCHED_SAVED, slot_of(l->task, place.base), modes);
  case GP_BASE_RECOMPUTED:
    return note(l, GP_TOUCHED_RECOMPUTED, slot_of(l->task, place.base), modes);
  case GP_BASE_CARRIED: return note(l, GP_TOUCHED_CARRIED, slot_of(l->task, place.base), modes);
  case GP_BASE_INVARIANT: return note(l, GP_TOUCHED_PREPARED, -1, modes);
  case GP_BASE_PACKED: return note(l, GP_TOUCHED_PACKED, -1, modes);
  case GP_BASE_HALF: return note(l, GP_TOUCHED_HALVES, -1, modes);
  case GP_BASE_REPLICA: return note(l, GP_TOUCHED_CONSTANTS, -1, modes);
  case GP_BASE_BUFFER: return note(l, GP_TOUCHED_BUFFERS, -1, modes);
  case GP_BASE_GRAD: return note(l, GP_TOUCHED_GRADIENTS, -1, modes);
  case GP_BASE_EXTRA: return note(l, GP_TOUCHED_EXTRAS, -1, modes);
  case GP_BASE_LOSS: return note(l, GP_TOUCHED_LOSS, -1, modes);
  case GP_BASE_COUNT: return note(l, GP_TOUCHED_COUNTED, -1, modes);
  default: return note(l, family_of(place.base), -1, modes);
  }
}

/* Note the operands of a program. A task that opens gradients writes all of them: zeros where its
 * program writes nothing. */
static gp_status note_program(lister *l, const gp_program *program) {
  const bool opens = l->task->opens;
  for (int32_t n = 0; n < program->instr_count; n++) {
    const gp_instr *instr = &program->instrs[n];
    unsigned out = instr->call.accumulate && !opens ? GP_TOUCH_ADD : GP_TOUCH_WRITE;
    for (int i = 0; i < instr->call.n_in; i++) GP_TRY(note_place(l, instr->in[i], GP_TOUCH_READ));
    for (int k = 0; k < instr->call.n_out; k++) GP_TRY(note_place(l, instr->out[k], out));
  }
  if (program->shared_bytes) GP_TRY(note(l, GP_TOUCHED_TEMPORARY, -1, GP_TOUCH_WRITE));
  if (!opens) return GP_OK;
  GP_TRY(note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_WRITE));
  return l->plan->extra_count ? note(l, GP_TOUCHED_EXTRAS, -1, GP_TOUCH_WRITE) : GP_OK;
}

/* ---- what ends a mini-batch ------------------------------------------------------------------ */

/* Note what U touches. In a stream a stage checks its own gradients and begins the next ones. */
static gp_status note_update(lister *l) {
  const bool streams = gp_plan_streams(l->plan);
  GP_TRY(note(l, GP_TOUCHED_WEIGHTS, -1, GP_TOUCH_READ | GP_TOUCH_WRITE));
  GP_TRY(
      note(l, GP_TOUCHED_GRADIENTS, -1, streams ? GP_TOUCH_READ | GP_TOUCH_WRITE : GP_TOUCH_READ));
  GP_TRY(note(l, GP_TOUCHED_MOMENTS, -1, GP_TOUCH_READ | GP_TOUCH_WRITE));
  if (l->plan->layout.stages && l->plan->layout.stages[l->task->stage].halves)
    GP_TRY(note(l, GP_TOUCHED_HALVES, -1, GP_TOUCH_WRITE));
  if (l->plan->extra_count && streams)
    GP_TRY(note(l, GP_TOUCHED_EXTRAS, -1, GP_TOUCH_READ | GP_TOUCH_WRITE));
  return l->task->stash ? note(l, GP_TOUCHED_VERSIONS, l->task->version, GP_TOUCH_WRITE) : GP_OK;
}

/* Note what a task that ends a mini-batch touches. */
static gp_status note_ending(lister *l) {
  if (l->task->op == GP_ACT_VOTE)
    return l->plan->joined ? note(l, GP_TOUCHED_NORMS, -1, GP_TOUCH_READ) : GP_OK;
  /* DECIDE touches no memory, and on second copies the others do nothing */
  if (l->task->op == GP_ACT_DECIDE || l->task->copy) return GP_OK;
  switch (l->task->op) {
  case GP_ACT_REDUCE:
    GP_TRY(note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_ADD));
    return l->plan->extra_count ? note(l, GP_TOUCHED_EXTRAS, -1, GP_TOUCH_ADD) : GP_OK;
  case GP_ACT_TIE:
    GP_TRY(note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_ADD));
    return note(l, GP_TOUCHED_EXTRAS, -1, GP_TOUCH_READ);
  case GP_ACT_NORM:
    GP_TRY(note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_READ));
    return note(l, GP_TOUCHED_NORMS, -1, GP_TOUCH_WRITE);
  case GP_ACT_CLIP: return note(l, GP_TOUCHED_GRADIENTS, -1, GP_TOUCH_READ | GP_TOUCH_WRITE);
  default: return note_update(l);
  }
}

/* ---- edges --------------------------------------------------------------------------------- */

/* Note edges: the task that publishes a value writes it; later tasks of its stage read it too. */
static gp_status note_uses(lister *l) {
  for (int32_t u = 0; u < l->task->use_count; u++) {
    const gp_edge_use *use = &l->task->uses[u];
    const bool once = use->edge >= l->plan->edge_count;
    GP_TRY(note(l, once ? GP_TOUCHED_STEP : GP_TOUCHED_EDGE, use->edge,
                use->publish ? GP_TOUCH_WRITE : GP_TOUCH_READ));
    l->list[l->count - 1].use = u;
  }
  return GP_OK;
}

static gp_status list_all(lister *l) {
  GP_TRY(note_uses(l));
  if (l->task->program) GP_TRY(note_program(l, l->task->program));
  return gp_act_ends(l->task->op) ? note_ending(l) : GP_OK;
}

gp_status gp_plan_touches(const gp_plan *plan, const gp_task *task, gp_touch **list,
                          int32_t *count) {
  lister l = {.plan = plan, .task = task};
  gp_status status = list_all(&l);
  if (status) return gp_free(l.list), status;
  *list = l.list;
  *count = l.count;
  return GP_OK;
}
