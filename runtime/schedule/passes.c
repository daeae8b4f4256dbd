/* schedule/passes.c - see passes.h. One walk over each device's list adds everything.
 *
 * Weight gradients are added in ascending order of micro-batches, whatever the order of a
 * schedule's backward passes, so that the bits do not depend on the schedule. Where backward passes
 * do not ascend, B is split: I runs at once, W when its turn has come. W also waits for the updates
 * of all earlier mini-batches. Replicas of a stream add up their gradients right before each
 * update. Both come behind forward passes and recomputation that follow the update in the schedule
 * and do not need it, because gradients are under way meanwhile. Recomputation stands right before
 * the backward pass that needs it, so it runs before the device waits for the incoming gradient. I
 * and W that follow each other on the first stage become B: no gradient leaves that stage, so
 * splitting lets no device start earlier.
 */
#include "schedule/passes.h"

#include "base/memory.h"

typedef struct walker {
  const gp_schedule *s;
  const gp_lower_options *options;
  gp_lowered *out;
  int32_t device, count;
  bool with_sources;  /* the caller asks for out->source */
  bool trains;        /* there are backward passes */
  bool *kept, *again; /* per (stage, micro-batch): F keeps; the schedule names R itself */
  int32_t *due;       /* per (stage, micro-batch): the action that W is made of, + 1; 0: not yet */
  bool *apart;        /* per stage of this device: I and W are actions of their own */
  int32_t *where;     /* per (stage, micro-batch): its device */
  int32_t *next;      /* per stage: micro-batch of the next W on this device */
  int32_t *last;      /* per stage: its last backward action on this device */
  int32_t *updates;   /* per stage: updates on this device so far, in asynchronous schedules */
  int32_t *held;      /* per stage: the update that is still to be appended + 1; 0: none */
} walker;

static size_t cell(const walker *w, int32_t stage, int32_t micro) {
  return (size_t)stage * (size_t)w->s->micro_count + (size_t)micro;
}

static void append(walker *w, gp_act op, const gp_action *like, int32_t source) {
  if (w->out->source) w->out->source[w->count] = source;
  w->out->actions[w->count] = *like;
  w->out->actions[w->count].joined = false;
  w->out->actions[w->count++].op = (uint8_t)op;
}

/* ---- what a device's part of a stage needs --------------------------------------------------- */

static bool is_backward(const gp_action *x) {
  return x->op == GP_ACT_B || x->op == GP_ACT_I || x->op == GP_ACT_W;
}

/* Returns the next micro-batch, from `micro` on, that this device runs of a stage; micro_count if
 * there is none. */
static int32_t own_micro(const walker *w, int32_t stage, int32_t micro) {
  while (micro < w->s->micro_count && w->where[cell(w, stage, micro)] != w->device) micro++;
  return micro;
}

/* Were the updates of all earlier mini-batches made? */
static bool is_open(const walker *w, int32_t stage, int32_t micro) {
  return !w->s->batch || micro / w->s->batch <= w->updates[stage];
}

/* Begin to count the micro-batches and updates of the device's stages. */
static void begin_stages(walker *w) {
  const gp_stage_list held = gp_schedule_stages(w->s, w->device);
  for (int32_t i = 0; i < held.count; i++) {
    w->next[held.stages[i]] = own_micro(w, held.stages[i], 0);
    w->updates[held.stages[i]] = 0;
  }
}

/* Find the stages whose I and W must be actions of their own: because the schedule splits them, or
 * because it runs backward passes in an order in which weight gradients may not be added. */
static void find_apart(walker *w, int32_t begin, int32_t end) {
  const gp_stage_list held = gp_schedule_stages(w->s, w->device);
  for (int32_t i = 0; i < held.count; i++) w->apart[held.stages[i]] = false;
  begin_stages(w);
  for (int32_t a = begin; a < end; a++) {
    const gp_action *x = &w->s->actions[a];
    w->updates[x->stage] += x->op == GP_ACT_U;
    if (!is_backward(x)) continue;
    w->last[x->stage] = a;
    if (x->op != GP_ACT_B || x->micro != w->next[x->stage] || !is_open(w, x->stage, x->micro))
      w->apart[x->stage] = true;
    w->next[x->stage] = own_micro(w, x->stage, x->micro + 1);
  }
  begin_stages(w);
}

/* Is the next action of this stage the backward pass of forward pass a? */
static bool backward_follows(const gp_schedule *s, int32_t a, int32_t end) {
  for (int32_t b = a + 1; b < end; b++)
    if (s->actions[b].stage == s->actions[a].stage && s->actions[b].op <= GP_ACT_W)
      return s->actions[b].op != GP_ACT_F && s->actions[b].micro == s->actions[a].micro;
  return false;
}

/* Does F keep what backward needs? If not, R makes it again. */
static bool keeps(const walker *w, int32_t a, int32_t end) {
  const gp_action *x = &w->s->actions[a];
  if (w->again[cell(w, x->stage, x->micro)]) return false;
  switch (w->options->remat) {
  case GP_REMAT_NEVER: return true;
  case GP_REMAT_EXCEPT_LAST: return backward_follows(w->s, a, end);
  default: return false;
  }
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* Append the Ws whose turn has come with action a. */
static void add_due(walker *w, int32_t stage, int32_t a) {
  int32_t micro = w->next[stage];
  while (micro < w->s->micro_count && w->due[cell(w, stage, micro)] && is_open(w, stage, micro)) {
    append(w, GP_ACT_W, &w->s->actions[w->due[cell(w, stage, micro)] - 1], a);
    micro = own_micro(w, stage, micro + 1);
  }
  w->next[stage] = micro;
}

/* Append this W and those that waited for it, or nothing if an earlier one is missing. */
static void add_weights(walker *w, const gp_action *x, int32_t a) {
  w->due[cell(w, x->stage, x->micro)] = a + 1;
  add_due(w, x->stage, a);
}

/* ---- updates ------------------------------------------------------------------------------- */

/* Append an update of a stream, and ahead of it what its replicas do together. */
static void add_update(walker *w, const gp_action *x, int32_t a) {
  if (w->s->copy_count > 1) append(w, GP_ACT_REDUCE, x, a);
  if (w->s->copy_count > 1 && w->options->norm) append(w, GP_ACT_NORM, x, a);
  append(w, GP_ACT_U, x, a);
  w->updates[x->stage]++;
  add_due(w, x->stage, a);
}

/* Append the updates that replicas have put off, with action a. */
static void add_held(walker *w, int32_t a) {
  for (int32_t s = 0; s < w->s->stage_count; s++) {
    const int32_t held = w->held[s] - 1;
    w->held[s] = 0;
    if (held >= 0) add_update(w, &w->s->actions[held], a);
  }
}

/* Put an update of replicas off, or append it. */
static void hold_update(walker *w, int32_t a) {
  const gp_action *x = &w->s->actions[a];
  if (w->s->copy_count > 1)
    w->held[x->stage] = a + 1;
  else
    add_update(w, x, a);
}

/* Does the action read what an update has made that is put off? */
static bool needs_held(const walker *w, const gp_action *x) {
  return w->held[x->stage] && x->version > w->updates[x->stage];
}

/* ---- actions ------------------------------------------------------------------------------- */

/* Append B or I, and R before it if something may run again ahead of it. */
static void add_gradient(walker *w, gp_act op, const gp_action *x, int32_t a) {
  size_t at = cell(w, x->stage, x->micro);
  /* cheap values are made again within B, or I and W; with OFFLOAD nothing is */
  const bool within =
      w->options->remat == GP_REMAT_SELECTIVE || w->options->remat == GP_REMAT_OFFLOAD;
  if (!w->kept[at] && !w->again[at] && !within) append(w, GP_ACT_R, x, a);
  add_held(w, a);
  append(w, op, x, a);
}

/* Append B, or I and the Ws that may run after it. */
static void add_backward(walker *w, const gp_action *x, int32_t a) {
  if (x->op == GP_ACT_W) add_held(w, a);
  if (x->op != GP_ACT_W) add_gradient(w, w->apart[x->stage] ? GP_ACT_I : GP_ACT_B, x, a);
  if (w->apart[x->stage] && x->op != GP_ACT_I) add_weights(w, x, a);
}

/* Append B for I and W of the first stage, if W follows I and no earlier W is missing. */
static bool add_merged(walker *w, int32_t a, int32_t end) {
  const gp_action *x = &w->s->actions[a], *y = x + 1;
  if (x->op != GP_ACT_I || x->stage != 0 || a + 1 == end || y->op != GP_ACT_W || y->stage != 0 ||
      y->micro != x->micro || x->micro != w->next[0] || !is_open(w, 0, x->micro))
    return false;
  add_gradient(w, GP_ACT_B, x, a);
  w->next[0] = own_micro(w, 0, x->micro + 1);
  add_due(w, 0, a); /* the Ws that waited for this one */
  return true;
}

/* Append an op for each stage of the device. */
static void add_to_stages(walker *w, gp_act op, int32_t micro) {
  const gp_stage_list held = gp_schedule_stages(w->s, w->device);
  for (int32_t i = 0; i < held.count; i++) {
    gp_action x = {.stage = held.stages[i], .micro = micro, .version = -1};
    append(w, op, &x, -1);
  }
}

/* Append what joins the gradients of all stages, then updates, behind the last action of a
 * device. */
static void add_ends(walker *w) {
  const gp_lower_options *o = w->options;
  if (w->s->batch) return;
  if (w->s->copy_count > 1 && w->trains) add_to_stages(w, GP_ACT_REDUCE, -1);
  if (o->tied && w->trains) add_to_stages(w, GP_ACT_TIE, -1);
  if (o->norm && w->trains) add_to_stages(w, GP_ACT_NORM, -1);
  if (o->clip && w->trains) add_to_stages(w, GP_ACT_CLIP, -1);
  if (o->update == GP_UPDATE_BARRIER) add_to_stages(w, GP_ACT_U, 0);
}

/* Without a barrier, a stage is updated right after its last backward action. */
static bool is_last_of_stage(const walker *w, int32_t a) {
  const gp_action *x = &w->s->actions[a];
  return is_backward(x) && w->last[x->stage] == a;
}

static void walk_action(walker *w, int32_t a, int32_t end) {
  const gp_action *x = &w->s->actions[a];
  if ((x->op == GP_ACT_F && needs_held(w, x)) || x->op == GP_ACT_U) add_held(w, a);
  switch (x->op) {
  case GP_ACT_F:
    w->kept[cell(w, x->stage, x->micro)] = keeps(w, a, end);
    append(w, GP_ACT_F, x, a);
    break;
  case GP_ACT_R: append(w, GP_ACT_R, x, a); break;
  case GP_ACT_U:
    if (w->s->batch) hold_update(w, a);
    break;
  case GP_ACT_B:
  case GP_ACT_I:
  case GP_ACT_W: add_backward(w, x, a); break;
  default: break; /* sends and receives: a plan knows from the model what crosses a cut */
  }
}

static void walk_device(walker *w) {
  int32_t begin = w->s->first[w->device], end = w->s->first[w->device + 1];
  bool free_updates = w->options->update == GP_UPDATE_FREE && w->s->copy_count == 1 && !w->s->batch;
  find_apart(w, begin, end);
  for (int32_t a = begin; a < end; a++) {
    bool merged = add_merged(w, a, end);
    if (merged) a++;
    if (!merged) walk_action(w, a, end);
    if (!free_updates || !is_last_of_stage(w, a)) continue;
    gp_action update = {.stage = w->s->actions[a].stage, .version = -1};
    append(w, GP_ACT_U, &update, a);
  }
  add_held(w, end - 1);
  if (!free_updates) add_ends(w);
  w->out->first[w->device + 1] = w->count;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Note where each (stage, micro-batch) runs, and which R the schedule names itself. */
static void look_around(walker *w) {
  for (int32_t d = 0; d < w->s->device_count; d++)
    for (int32_t a = w->s->first[d]; a < w->s->first[d + 1]; a++) {
      const gp_action *x = &w->s->actions[a];
      if (x->op == GP_ACT_F) w->where[cell(w, x->stage, x->micro)] = d;
      w->trains |= is_backward(x);
      if (x->op == GP_ACT_R) w->again[cell(w, x->stage, x->micro)] = true;
    }
}

/* An action becomes three at most: R, I and W. */
static gp_status make_room(walker *w, int32_t **ints, bool **flags) {
  const gp_schedule *s = w->s;
  size_t stages = (size_t)s->stage_count, cells = stages * (size_t)s->micro_count;
  size_t ends = (size_t)s->copy_count * (GP_ACT_CLIP - GP_ACT_REDUCE + 2); /* of a stage */
  size_t room = 3 * (size_t)s->first[s->device_count] + ends * stages + 1;
  GP_TRY(gp_alloc_array(room, sizeof(gp_action), (void **)&w->out->actions));
  if (w->with_sources) GP_TRY(gp_alloc_array(room, sizeof(int32_t), (void **)&w->out->source));
  GP_TRY(gp_alloc_array((size_t)s->device_count + 1, sizeof(int32_t), (void **)&w->out->first));
  GP_TRY(gp_alloc_array(2 * cells + 4 * stages + 1, sizeof(int32_t), (void **)ints));
  GP_TRY(gp_alloc_array(2 * cells + stages + 1, sizeof(bool), (void **)flags));
  w->where = *ints;
  w->next = w->where + cells;
  w->updates = w->next + stages;
  w->last = w->updates + stages;
  w->held = w->last + stages;
  w->due = w->held + stages;
  w->kept = *flags;
  w->again = w->kept + cells;
  w->apart = w->again + cells;
  return GP_OK;
}

static gp_status lower(walker *w) {
  int32_t *ints = NULL;
  bool *flags = NULL;
  *w->out = (gp_lowered){.device_count = w->s->device_count};
  gp_status status = make_room(w, &ints, &flags);
  if (!status) look_around(w);
  for (; !status && w->device < w->s->device_count; w->device++) walk_device(w);
  gp_free(ints);
  gp_free(flags);
  if (status) gp_lowered_free(w->out);
  return status;
}

gp_status gp_schedule_lower(const gp_schedule *schedule, const gp_lower_options *options,
                            gp_lowered *lowered) {
  walker w = {.s = schedule, .options = options, .out = lowered, .with_sources = true};
  return lower(&w);
}

gp_status gp_schedule_lower_actions(const gp_schedule *schedule, const gp_lower_options *options,
                                    gp_lowered *lowered) {
  walker w = {.s = schedule, .options = options, .out = lowered};
  return lower(&w);
}

void gp_lowered_free(gp_lowered *lowered) {
  gp_free(lowered->actions);
  gp_free(lowered->source);
  gp_free(lowered->first);
  *lowered = (gp_lowered){0};
}
