/* schedule/steps.c - how many steps a schedule takes when every device does one action a step.
 *
 * Source: torch.distributed.pipelining, _simulate_comms_compute: in each step the devices try their
 * next action in turn; those that could not are tried once more, as a later one may have made what
 * they need.
 * Empty cells take no step.
 */
#include "base/memory.h"
#include "schedule/verify/verify.h"

typedef struct stepper {
  const gp_verify *v;
  int32_t *head, *stepped; /* per device: its next action; the last step in which it did one */
  int32_t *step;           /* per action, or NULL */
  int32_t now, left;       /* left: devices with actions */
} stepper;

static void skip_idle(stepper *t, int32_t device) {
  const gp_schedule *s = t->v->s;
  int32_t *head = &t->head[device];
  while (*head < s->first[device + 1] && s->actions[*head].op == GP_ACT_IDLE) ++*head;
  t->left -= *head == s->first[device + 1];
}

/* Does the next action of a device, or joined ones, run in this step? */
static bool try_device(stepper *t, int32_t device) {
  const gp_schedule *s = t->v->s;
  int32_t begin = t->head[device], end;
  if (begin == s->first[device + 1] || t->stepped[device] == t->now) return false;
  end = gp_schedule_group_end(s, begin);
  for (int32_t a = begin; a < end; a++)
    if (gp_verify_blocker(t->v, a) >= 0) return false;
  for (int32_t a = begin; a < end; a++) {
    t->v->order[a] = 0;
    if (t->step) t->step[a] = t->now;
  }
  t->stepped[device] = t->now;
  t->head[device] = end;
  skip_idle(t, device);
  return true;
}

static int32_t run(stepper *t) {
  const gp_schedule *s = t->v->s;
  t->left = s->device_count;
  for (int32_t a = 0; a < s->first[s->device_count]; a++) t->v->order[a] = -1;
  for (int32_t d = 0; d < s->device_count; d++) {
    t->head[d] = s->first[d];
    t->stepped[d] = -1;
    skip_idle(t, d);
  }
  for (t->now = 0; t->left > 0; t->now++)
    for (int pass = 0; pass < 2; pass++)
      for (int32_t d = 0; d < s->device_count; d++) try_device(t, d);
  return t->now;
}

static gp_status count_steps(stepper *t, gp_verify *v, int *steps) {
  size_t total = (size_t)v->s->first[v->s->device_count], devices = (size_t)v->s->device_count;
  GP_TRY(gp_verify_index(v));
  GP_TRY(gp_alloc_array(total + 1, sizeof(int32_t), (void **)&v->order));
  GP_TRY(gp_alloc_array(2 * devices, sizeof(int32_t), (void **)&t->head));
  t->stepped = t->head + devices;
  *steps = run(t);
  return GP_OK;
}

gp_status gp_schedule_steps(const gp_schedule *s, int32_t *step, int *steps) {
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault};
  stepper t = {.v = &v, .step = step};
  gp_status status = count_steps(&t, &v, steps);
  gp_verify_free(&v);
  gp_free(v.order);
  gp_free(t.head);
  return status;
}
