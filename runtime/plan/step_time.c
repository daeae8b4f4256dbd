/* plan/step_time.c - how long a step takes by the cost model: the plan's own tasks, run with costs
 * instead of kernels.
 *
 * Policies of recomputation are compared by this one figure, so it has to see what makes them
 * differ: which variant of a program each micro-batch runs, what R does while its device waits for
 * a gradient, and copies to the host's memory, one at a time each way. Values cross from one device
 * to another at once. Tasks that join stages at the end of a step are not waited for. */
#include "base/memory.h"
#include "plan/offload.h"
#include "plan/refine/appraise.h"

typedef struct timer {
  const gp_plan *plan;
  double *published; /* per edge and micro-batch: when its value is there; below 0: not yet */
  double *costs;     /* per shape, stage and program of the stage, as they are listed */
  double *out, *in;  /* per offload: when its copy to the host, and back, is over */
  double *free;      /* per device: when it can run its next task */
  double *lanes[2];  /* per device: when its copies to the host, and back, are over */
  int32_t *next;     /* per device: its next task */
} timer;

/* ---- costs ----------------------------------------------------------------------------------- */

static gp_remat_rates rates_on(const gp_plan *plan, int32_t device) {
  return gp_remat_rates_of(!gp_plan_on_host(plan, device));
}

double gp_program_seconds(const gp_program *program, gp_remat_rates rates) {
  double seconds = 0;
  for (int32_t i = 0; program && i < program->instr_count; i++) {
    const gp_node *node = &program->graph->nodes[program->instrs[i].node];
    seconds += gp_remat_seconds(rates, gp_node_cost(program->graph, node));
  }
  return seconds;
}

/* The place of the cost of a stage's k-th program. */
static double *cost_at(const timer *t, int32_t shape, int32_t stage, int k) {
  return &t->costs[(shape * t->plan->stage_count + stage) * GP_STAGE_PROGRAM_KINDS + k];
}

static void find_costs(const timer *t) {
  const gp_plan *plan = t->plan;
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  for (int32_t shape = 0; shape < 2; shape++)
    for (int32_t s = 0; plan->shapes[shape].programs && s < plan->stage_count; s++) {
      const int32_t device = plan->placement[s * plan->copy_count];
      const int count = gp_stage_programs_list(&plan->shapes[shape].programs[s], list);
      for (int k = 0; k < count; k++)
        *cost_at(t, shape, s, k) = gp_program_seconds(list[k], rates_on(plan, device));
    }
}

static double seconds_of(const timer *t, const gp_task *task) {
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  if (!task->program) return 0;
  const int count =
      gp_stage_programs_list(&t->plan->shapes[task->shape].programs[task->stage], list);
  for (int k = 0; k < count; k++)
    if (list[k] == task->program) return *cost_at(t, task->shape, task->stage, k);
  return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static double *published_at(const timer *t, const gp_edge_use *use, const gp_task *task) {
  return &t->published[(size_t)use->edge * (size_t)t->plan->micro_count + (size_t)task->micro];
}

static bool is_of_model(const timer *t, const gp_edge_use *use) {
  return use->edge < t->plan->edge_count;
}

/* Find when the values that a task waits for are there. Returns false while one is not known. */
static bool find_arrival(const timer *t, const gp_task *task, double *arrival) {
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    if (!use->wait || !is_of_model(t, use)) continue;
    const double time = *published_at(t, use, task);
    if (time < 0) return false;
    if (time > *arrival) *arrival = time;
  }
  return true;
}

static double copy_time(const timer *t, int32_t device, int32_t offload) {
  const gp_host_link *link = &t->plan->devices[device].spec.host;
  if (link->bandwidth <= 0) return 0;
  return link->latency + (double)gp_offload_bytes(&t->plan->offloads[offload]) / link->bandwidth;
}

/* Begin a copy, or wait for one; returns when the device goes on. */
static double move(const timer *t, int32_t device, const gp_move *one, double now) {
  const bool back = one->kind == GP_MOVE_FETCH || one->kind == GP_MOVE_ARRIVE;
  double *over = &(back ? t->in : t->out)[one->offload], *lane = &t->lanes[back][device];
  if (one->kind == GP_MOVE_ARRIVE || one->kind == GP_MOVE_LEAVE) return *over > now ? *over : now;
  *over = (*lane > now ? *lane : now) + copy_time(t, device, one->offload);
  *lane = *over;
  return now;
}

static double move_some(const timer *t, int32_t device, const gp_task *task, bool behind,
                        double now) {
  for (int32_t i = 0; i < task->move_count; i++)
    if (behind == (task->moves[i].kind >= GP_MOVE_PUT)) now = move(t, device, &task->moves[i], now);
  return now;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void run_task(const timer *t, int32_t device, const gp_task *task, double begin) {
  double now = move_some(t, device, task, false, begin) + seconds_of(t, task);
  for (int32_t u = 0; u < task->use_count; u++)
    if (task->uses[u].publish && is_of_model(t, &task->uses[u]))
      *published_at(t, &task->uses[u], task) = now;
  t->free[device] = move_some(t, device, task, true, now);
}

/* Run a device's tasks as far as their values are known. Returns whether one ran. */
static bool advance(const timer *t, int32_t device) {
  bool ran = false;
  for (; t->next[device] < t->plan->first[device + 1]; ran = true) {
    const gp_task *task = &t->plan->tasks[t->next[device]];
    double begin = t->free[device];
    if (!find_arrival(t, task, &begin)) break;
    run_task(t, device, task, begin);
    t->next[device]++;
  }
  return ran;
}

/* A share of a plan waits for nothing: the other devices' tasks are not there. */
static double run(const timer *t) {
  const gp_plan *plan = t->plan;
  const size_t values = (size_t)plan->edge_count * (size_t)plan->micro_count;
  double end = 0;
  bool ran = true;
  for (size_t i = 0; i < values; i++) t->published[i] = plan->share ? 0 : -1;
  for (int32_t d = 0; d < plan->device_count; d++) t->next[d] = plan->first[d];
  while (ran) {
    ran = false;
    for (int32_t d = 0; d < plan->device_count; d++) ran |= advance(t, d);
  }
  for (int32_t d = 0; d < plan->device_count; d++)
    if (t->free[d] > end) end = t->free[d];
  return end;
}

static gp_status open_timer(timer *t) {
  const size_t devices = (size_t)t->plan->device_count, offloads = (size_t)t->plan->offload_count;
  const size_t values = (size_t)t->plan->edge_count * (size_t)t->plan->micro_count;
  const size_t programs = 2 * (size_t)t->plan->stage_count * GP_STAGE_PROGRAM_KINDS;
  const size_t all = values + programs + 2 * offloads + 3 * devices;
  GP_TRY(gp_alloc_array(all, sizeof *t->published, (void **)&t->published));
  t->costs = t->published + values;
  t->out = t->costs + programs;
  t->in = t->out + offloads;
  t->free = t->in + offloads;
  t->lanes[0] = t->free + devices;
  t->lanes[1] = t->lanes[0] + devices;
  return gp_alloc_array(devices, sizeof *t->next, (void **)&t->next);
}

gp_status gp_plan_step_time(const gp_plan *plan, double *seconds) {
  timer t = {.plan = plan};
  gp_status status = open_timer(&t);
  if (!status) {
    find_costs(&t);
    *seconds = run(&t);
  }
  gp_free(t.published);
  gp_free(t.next);
  return status;
}
