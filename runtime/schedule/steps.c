/* schedule/steps.c - how many steps a schedule takes when every device does one action a step.
 *
 * Source: torch.distributed.pipelining, _simulate_comms_compute: in each step the devices try their
 * next action in turn; those that could not are tried once more, as a later one may have made what
 * they need. So a step is two sweeps, and a device that moved in the first one sits out the second.
 * Empty cells take no step.
 */
#include "base/memory.h"
#include "schedule/runner.h"
#include "schedule/verify/verify.h"

typedef struct stepper {
  const gp_verify *v;
  gp_runner runner;
  int32_t *stepped; /* per device: the last step in which it moved; -1: none */
  int32_t *step;    /* per action, or NULL */
  int32_t steps;
} stepper;

static int32_t now(const stepper *t) { return t->runner.turns.sweep / 2; }

static int32_t lacks(void *context, int32_t device, int32_t action) {
  const stepper *t = context;
  if (t->stepped[device] == now(t)) return GP_LACKS_SWEEP;
  return gp_verify_blocker(t->v, action);
}

static gp_status ran(void *context, int32_t device, int32_t begin, int32_t end) {
  stepper *t = context;
  for (int32_t a = begin; t->step && a < end; a++) t->step[a] = now(t);
  t->stepped[device] = now(t);
  t->steps = now(t) + 1;
  return GP_OK;
}

static gp_status count_steps(stepper *t, gp_verify *v) {
  const gp_schedule *s = v->s;
  size_t total = (size_t)s->first[s->device_count], devices = (size_t)s->device_count;
  GP_TRY(gp_verify_index(v));
  GP_TRY(gp_alloc_array(total + 1, sizeof(int32_t), (void **)&v->order));
  GP_TRY(gp_alloc_array(devices, sizeof(int32_t), (void **)&t->stepped));
  for (size_t d = 0; d < devices; d++) t->stepped[d] = -1;
  t->runner = (gp_runner){.actions = s->actions,
                          .first = s->first,
                          .device_count = s->device_count,
                          .rule = GP_TURNS_SWEEP,
                          .skip_empty = true,
                          .order = v->order,
                          .context = t,
                          .lacks = lacks,
                          .ran = ran};
  GP_TRY(gp_runner_new(&t->runner));
  return gp_runner_run(&t->runner, NULL);
}

gp_status gp_schedule_steps(const gp_schedule *s, int32_t *step, int *steps) {
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault};
  stepper t = {.v = &v, .step = step};
  gp_status status = count_steps(&t, &v);
  *steps = t.steps;
  gp_runner_free(&t.runner);
  gp_verify_free(&v);
  gp_free(v.order);
  gp_free(t.stepped);
  return status;
}
