/* schedule/repeat.c - the lists of one mini-batch as a stream of several.
 *
 * A stage is updated behind the last action that makes its gradients, and the next mini-batch reads
 * what that has made. So weights are never old: it is the synchronous schedule without a barrier.
 * The two actions of a pair stay together.
 */
#include "base/memory.h"
#include "schedule/schedule.h"

typedef struct repeater {
  gp_rows *rows;
  const gp_action *actions;
  int count, device;
  int32_t *last; /* per action: is it the last one that makes gradients of its stage? */
} repeater;

static bool is_backward(const gp_action *x) {
  return x->op == GP_ACT_B || x->op == GP_ACT_I || x->op == GP_ACT_W;
}

/* A device has few stages, so the end of each is searched from the end of the list. */
static void find_last(const repeater *r) {
  for (int i = 0; i < r->count; i++) {
    r->last[i] = is_backward(&r->actions[i]);
    for (int k = i + 1; r->last[i] && k < r->count; k++)
      if (is_backward(&r->actions[k]) && r->actions[k].stage == r->actions[i].stage)
        r->last[i] = false;
  }
}

/* Append an action of a mini-batch. Sends and receives are left out, as the verifier does not pair
 * those of several mini-batches. */
static gp_status append(const repeater *r, const gp_action *like, int32_t micros, int32_t step) {
  gp_action action = *like;
  if (action.op > GP_ACT_R) return GP_OK;
  action.micro += step * micros;
  action.version = step;
  return gp_rows_add(r->rows, r->device, &action);
}

static gp_status update(const repeater *r, int32_t stage, int32_t step) {
  const gp_action action = {.op = GP_ACT_U, .stage = stage, .micro = step, .version = -1};
  return gp_rows_add(r->rows, r->device, &action);
}

static gp_status run(const repeater *r, int32_t micros, int32_t step) {
  for (int i = 0; i < r->count; i++) {
    const bool paired = i > 0 && r->actions[i - 1].joined;
    GP_TRY(append(r, &r->actions[i], micros, step));
    if (paired && r->last[i - 1]) GP_TRY(update(r, r->actions[i - 1].stage, step));
    if (r->last[i] && !r->actions[i].joined) GP_TRY(update(r, r->actions[i].stage, step));
  }
  return GP_OK;
}

gp_status gp_rows_repeat(gp_rows *rows, const gp_rows *of, int micros, int steps) {
  for (int d = 0; d < gp_rows_device_count(of); d++) {
    repeater r = {.rows = rows, .device = d};
    r.actions = gp_rows_get(of, d, &r.count);
    GP_TRY(gp_alloc_array((size_t)r.count + 1, sizeof *r.last, (void **)&r.last));
    find_last(&r);
    gp_status status = GP_OK;
    for (int32_t step = 0; !status && step < steps; step++) status = run(&r, micros, step);
    gp_free(r.last);
    GP_TRY(status);
  }
  return GP_OK;
}
