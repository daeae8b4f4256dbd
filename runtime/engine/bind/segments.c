/* engine/bind/segments.c - see segments.h.
 *
 * A segment ends where the host has something to do before it can enqueue the next task, or has to
 * tell another device what a task made. So it ends
 *
 *   before   a task that waits for another device: the host must see that its input is published
 *   behind   a task that another device waits for, which should not wait for later ones as well
 *   around   a task that ends a mini-batch: the host decides what becomes of the gradients
 *   around   a task that publishes while its program runs (plan/edge/buckets.h)
 *   around   a task that waits for other replicas in its middle (plan/gathers.h)
 *   before   the first S of several ranks, which writes buffers that may be on their way
 *   around   P, in plans that leave it out while the weights are unchanged
 *   before   a task ahead of which values come back from the host's memory (plan/offload.h)
 *   behind   a task behind which values go there
 *   before   a task whose rows take the host long to bring: it brings them while the device works
 *   behind   a task that leaves rows which take long to copy back
 *
 * Within a segment no event joins two queues: links record and wait for theirs between graphs. */
#include "engine/bind/segments.h"

#include "base/memory.h"
#include "engine/bind/bind.h"
#include "engine/state/pipeline.h"
#include "plan/offload.h"
#include "schedule/schedule.h"

/* Bytes of rows that a segment brings before it is launched, beyond those of its first task. The
 * device waits while the host copies them, which takes about 0.1 ms. */
enum { ROWS_AT_ONCE = 1 << 20 };

/* ---- where segments end ---------------------------------------------------------------------- */

/* A walk through a device's tasks. */
typedef struct cutter {
  const gp_binding *binding;
  int32_t device;
  size_t row_bytes, result_bytes; /* of a micro-batch: what the host brings, and takes away */
  int32_t micro;                  /* the last micro-batch whose rows were brought so far */
  size_t brought;                 /* bytes of rows that the open segment brings at once */
} cutter;

/* Does a task of the open segment, which has come to task t, release a value of the edge? */
static bool is_released(const cutter *c, int32_t edge, int32_t t) {
  const gp_bound_device *device = &c->binding->devices[c->device];
  const gp_task *tasks = c->binding->plan->tasks;
  for (int32_t k = device->segments[device->segment_count - 1].first; k < t; k++)
    for (int32_t u = 0; u < tasks[k].use_count; u++)
      if (tasks[k].uses[u].release && tasks[k].uses[u].edge == edge) return true;
  return false;
}

/* Does the edge stay within the device, so that the order of the queue is enough? */
static bool is_inside(const gp_bound_use *bound) {
  return bound->plain && !(bound->link && bound->link->spec.host);
}

/* Does task t wait for another device? In training, slots are counted so that no maker waits for
 * one (plan/edge/capacity.c): a segment asks for all its slots before it is launched, but not for
 * one that it releases itself. */
static bool waits(const cutter *c, int32_t t) {
  const gp_task *task = &c->binding->plan->tasks[t];
  const gp_bound_use *bound = gp_binding_uses(c->binding, task);
  const bool counted = gp_plan_trains(c->binding->plan->kind);
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    if (is_inside(&bound[u])) continue;
    if (use->wait || (use->acquire && (!counted || is_released(c, use->edge, t)))) return true;
  }
  return false;
}

/* Does another device wait for what the task makes? A release may come later, when the segment is
 * enqueued: no task of the same segment waits, and slots are counted so that makers need not. */
static bool publishes(const cutter *c, const gp_task *task) {
  const gp_bound_use *bound = gp_binding_uses(c->binding, task);
  for (int32_t u = 0; u < task->use_count; u++)
    if (task->uses[u].publish && !is_inside(&bound[u])) return true;
  return false;
}

/* Does the task leave rows that the script is given: outputs, or gradients of inputs? */
static bool leaves_rows(const cutter *c, const gp_task *task) {
  if (task->op == GP_ACT_F) return task->stage == c->binding->plan->stage_count - 1;
  return (task->op == GP_ACT_B || task->op == GP_ACT_I) && task->stage == 0;
}

static bool is_optional(const cutter *c, const gp_task *task) {
  return task->op == GP_ACT_P && c->binding->plan->update == GP_UPDATE_NONE;
}

/* Is it the first S in a job? The buffers that it writes may still be on their way to another rank,
 * for which the worker waits. */
static bool begins_late(const cutter *c, const gp_task *task) {
  return c->binding->pipeline->spread && task->op == GP_ACT_S && task[-1].op != GP_ACT_S;
}

static bool is_first_of_half(const cutter *c, int32_t t) {
  const gp_plan *plan = c->binding->plan;
  return plan->kind == GP_PLAN_SPLIT && t == plan->devices[c->device].half;
}

/* Do copies to or from the host's memory begin or end ahead of the task, or behind it? */
static bool moves(const gp_task *task, bool behind) {
  for (int32_t i = 0; i < task->move_count; i++)
    if (behind == (task->moves[i].kind >= GP_MOVE_PUT)) return true;
  return false;
}

static bool ends_before(const cutter *c, int32_t t) {
  const gp_task *task = &c->binding->plan->tasks[t];
  if (waits(c, t) || is_first_of_half(c, t) || moves(task, false)) return true;
  if (is_optional(c, task) != is_optional(c, task - 1)) return true;
  if (begins_late(c, task)) return true;
  return task->micro > c->micro && c->brought + c->row_bytes > ROWS_AT_ONCE;
}

static bool ends_behind(const cutter *c, const gp_task *task) {
  return publishes(c, task) || moves(task, true) ||
         (c->result_bytes > ROWS_AT_ONCE && leaves_rows(c, task));
}

/* Does the host run the task itself, or publish or wait while its program runs, so that no segment
 * may hold it? */
static bool is_outside(const gp_task *task) {
  const bool is_early = gp_task_first_early(task) < task->use_count;
  const bool gathers = task->program && task->program->gather_count;
  return gp_act_ends(task->op) || gp_act_is_own(task->op) || is_early || gathers;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void open_segment(gp_bound_device *device, int32_t t) {
  device->segments[device->segment_count++] = (gp_segment){.first = t, .end = t, .rows = t};
}

/* Append task t to the last segment. */
static void add_task(cutter *c, gp_segment *last, int32_t t) {
  const gp_task *tasks = c->binding->plan->tasks;
  last->end = t + 1;
  last->opens |= tasks[t].opens;
  if (tasks[t].micro > tasks[last->rows].micro) last->rows = t;
  if (tasks[t].micro <= c->micro) return;
  if (t > last->first) c->brought += c->row_bytes;
  c->micro = tasks[t].micro;
}

static void cut(cutter *c, gp_bound_device *device) {
  const gp_plan *plan = c->binding->plan;
  bool open = false;
  for (int32_t t = plan->first[c->device]; t < plan->first[c->device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (is_first_of_half(c, t)) c->micro = -1;
    if (open && (is_outside(task) || ends_before(c, t))) open = false;
    if (is_outside(task)) continue;
    if (!open) {
      open_segment(device, t);
      c->brought = 0;
    }
    add_task(c, &device->segments[device->segment_count - 1], t);
    open = !ends_behind(c, task);
  }
}

gp_status gp_segments_new(gp_binding *b, int32_t d) {
  const gp_plan *plan = b->plan;
  const gp_staging *staging = &plan->devices[d].staging;
  gp_bound_device *device = &b->devices[d];
  size_t tasks = (size_t)(plan->first[d + 1] - plan->first[d]), micros = (size_t)plan->step_micros;
  if (gp_device_lane(b->pipeline, d)->facts->at_once || gp_plan_streams(plan)) return GP_OK;
  cutter c = {.binding = b,
              .device = d,
              .row_bytes = (staging->fault - staging->blocks) / micros,
              .result_bytes = (staging->bytes - staging->results) / micros,
              .micro = -1};
  GP_TRY(gp_alloc_array(tasks + 1, sizeof(gp_segment), (void **)&device->segments));
  cut(&c, device);
  return GP_OK;
}

/* ---- later ----------------------------------------------------------------------------------- */

gp_segment *gp_segment_of(const gp_binding *b, int32_t d, int32_t t) {
  const gp_bound_device *device = &b->devices[d];
  int32_t low = 0, high = device->segment_count;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (device->segments[middle].end <= t)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < device->segment_count && device->segments[low].first <= t;
  return found ? &device->segments[low] : NULL;
}

gp_graph_counts gp_segments_count(const gp_binding *b, int32_t d) {
  gp_graph_counts counts = {0};
  for (int32_t k = 0; k < b->devices[d].segment_count; k++) {
    const gp_segment *segment = &b->devices[d].segments[k];
    int before = counts.tasks;
    for (int32_t t = segment->first; t < segment->end; t++)
      counts.tasks += b->plan->tasks[t].program != NULL;
    counts.graphs += counts.tasks > before;
  }
  return counts;
}

void gp_segments_forget(gp_binding *b, int32_t d) {
  gp_bound_device *device = &b->devices[d];
  const gp_lane *lane = gp_device_lane(b->pipeline, d);
  for (int32_t k = 0; k < 2 * device->segment_count; k++) {
    gp_segment_graph *one = &device->segments[k / 2].graphs[k % 2];
    if (one->graph) lane->graphs->free(one->graph);
    *one = (gp_segment_graph){0};
  }
}

void gp_segments_free(gp_binding *b, int32_t d) {
  gp_segments_forget(b, d);
  gp_free(b->devices[d].segments);
}

gp_graph_counts gp_pipeline_graphs(const gp_pipeline *p, int device) {
  const gp_binding *binding = p->last_plan ? gp_pipeline_binding(p, p->last_plan) : NULL;
  if (!binding && p->binding_count) binding = p->bindings[p->binding_count - 1];
  if (!binding || device >= binding->plan->device_count) return (gp_graph_counts){0};
  return gp_segments_count(binding, device);
}
