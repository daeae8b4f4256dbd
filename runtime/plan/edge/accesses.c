/* plan/edge/accesses.c - see accesses.h.
 *
 * F makes the values of a stage's edges, B or I makes their gradients; everything else that touches
 * them reads them, R too, because readers have had the value long since.
 */
#include "plan/edge/accesses.h"

#include "base/memory.h"

/* ---- buffers ------------------------------------------------------------------------------- */

typedef struct lister {
  const gp_plan *plan;
  int32_t stage;
  int32_t *buffer; /* per edge: its buffer + 1; 0: the stage does not touch it */
  gp_access_list *list;
} lister;

static gp_buffer buffer_of(const lister *l, int32_t edge) {
  const gp_edge *e = gp_plan_edge(l->plan, edge);
  const bool forward = e->phase == GP_FORWARD;
  return (gp_buffer){.class = forward ? GP_BUFFER_EDGE_VALUE : GP_BUFFER_EDGE_GRADIENT,
                     .stage = l->stage,
                     .edge = edge,
                     .made_here = e->from == l->stage};
}

/* One for each edge that the stage touches in micro-batches of either size. */
static gp_status number_buffers(lister *l, gp_buffer **buffers, int32_t *count) {
  size_t room = 0;
  for (int k = 0; k < 2; k++)
    for (int op = 0; l->plan->shapes[k].micros && op <= GP_ACT_R; op++) {
      const gp_edge_list *touched = gp_shape_touched(&l->plan->shapes[k], l->stage, (gp_act)op);
      for (int32_t i = 0; i < touched->count; i++) {
        const int32_t edge = touched->edges[i];
        if (l->buffer[edge]) continue;
        GP_TRY(gp_grow_array((size_t)*count, &room, sizeof(gp_buffer), (void **)buffers));
        (*buffers)[(*count)++] = buffer_of(l, edge);
        l->buffer[edge] = *count;
      }
    }
  return GP_OK;
}

/* ---- accesses ------------------------------------------------------------------------------ */

static bool makes(const gp_action *action, const gp_buffer *buffer) {
  if (!buffer->made_here) return false;
  if (buffer->class == GP_BUFFER_EDGE_VALUE) return action->op == GP_ACT_F;
  return action->op == GP_ACT_B || action->op == GP_ACT_I;
}

static gp_status touch(lister *l, const gp_action *action) {
  gp_access_list_begin(l->list, false);
  if (action->stage != l->stage) return GP_OK;
  const gp_edge_list *touched = gp_edge_touched(l->plan, action);
  for (int32_t i = 0; i < touched->count; i++) {
    const int32_t b = l->buffer[touched->edges[i]] - 1;
    const bool makes_it = makes(action, &l->list->buffers[b]);
    GP_TRY(
        gp_access_list_add(l->list, b, action->micro, makes_it ? GP_ACCESS_WRITE : GP_ACCESS_READ));
  }
  return GP_OK;
}

static gp_status list_accesses(lister *l, const gp_action *actions, int32_t count) {
  gp_buffer *buffers = NULL;
  int32_t buffer_count = 0;
  gp_status status = number_buffers(l, &buffers, &buffer_count);
  if (status) return gp_free(buffers), status;
  GP_TRY(gp_access_list_new(count, l->plan->micro_count, buffers, buffer_count, l->list));
  for (int32_t a = 0; a < count; a++) GP_TRY(touch(l, &actions[a]));
  return GP_OK;
}

gp_status gp_edge_lives_find(const gp_plan *plan, int32_t stage, const gp_action *actions,
                             int32_t count, int32_t *marks, gp_edge_lives *lives) {
  lister l = {.plan = plan, .stage = stage, .buffer = marks, .list = &lives->list};
  *lives = (gp_edge_lives){0};
  gp_status status = list_accesses(&l, actions, count);
  if (!status) status = gp_lifetimes_find(&lives->list, &lives->lifetimes);
  for (int32_t b = 0; b < lives->list.buffer_count; b++) marks[lives->list.buffers[b].edge] = 0;
  if (status) gp_edge_lives_free(lives);
  return status;
}

void gp_edge_lives_free(gp_edge_lives *lives) {
  gp_lifetimes_free(&lives->lifetimes);
  gp_access_list_free(&lives->list);
}
