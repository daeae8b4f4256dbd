/* plan/memory/constants.c - constants that a stage reads: copies in the memory of its own device.
 *
 * Constants lie on the host. A stage whose device works in memory of its own gets copies when the
 * plan is bound (engine/bind/constants.c).
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "plan/memory/places.h"

/* Mark a value's memory as the stage's own. */
static void note(gp_shaper *s, gp_ref value) {
  gp_ref base = gp_graph_base(s->graph, value);
  if (!s->seen[base]) s->own[s->own_count++] = base;
  s->seen[base] = true;
}

static void note_node(gp_shaper *s, const gp_node *node) {
  for (int i = 0; i < node->n_in; i++) note(s, node->in[i]);
  for (int k = 0; k < node->n_out; k++) note(s, node->out + k);
}

static void note_nodes(gp_shaper *s, const gp_node_list *list) {
  for (int32_t i = 0; i < list->count; i++) note_node(s, &s->graph->nodes[list->nodes[i]]);
}

/* Note the values of the count, what the loss is divided by: it's a program of the last stage. */
static gp_status note_count(gp_shaper *s) {
  bool *needed;
  if (s->shape->count == GP_NONE) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)s->graph->node_count + 1, sizeof *needed, (void **)&needed));
  gp_status status = gp_graph_reach(s->graph, &s->shape->count, 1, needed);
  for (int32_t n = 0; !status && n < s->graph->node_count; n++)
    if (needed[n]) note_node(s, &s->graph->nodes[n]);
  gp_free(needed);
  return status;
}

static int ascending(const void *a, const void *b) {
  gp_ref x = *(const gp_ref *)a, y = *(const gp_ref *)b;
  return x < y ? -1 : x > y;
}

gp_status gp_shaper_enter(gp_shaper *s, int32_t stage) {
  const gp_stage_nodes *nodes = &s->shape->stages->stages[stage];
  s->own_count = 0;
  note_nodes(s, &nodes->prepare);
  note_nodes(s, &nodes->forward);
  note_nodes(s, &nodes->late);
  note_nodes(s, &nodes->recompute);
  note_nodes(s, &nodes->input);
  note_nodes(s, &nodes->weight);
  gp_status status = stage == s->env->stage_count - 1 ? note_count(s) : GP_OK;
  qsort(s->own, (size_t)s->own_count, sizeof *s->own, ascending);
  for (int32_t i = 0; i < s->own_count; i++) s->seen[s->own[i]] = false;
  return status;
}

/* Does any device of the stage work in memory of its own? Both copies run the same programs. */
static bool is_far(const gp_shaper *s, int32_t stage) {
  const gp_schedule *schedule = s->schedule;
  for (int32_t copy = 0; s->env->devices && copy < schedule->copy_count; copy++)
    if (s->env->devices[schedule->placement[stage * schedule->copy_count + copy]].space)
      return true;
  return false;
}

static gp_status add(gp_shaper *s, gp_stage_programs *out, gp_ref value) {
  size_t n = (size_t)out->constant_count, bytes;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_constant_copy), (void **)&out->constants));
  out->constants[out->constant_count++] = (gp_constant_copy){value, out->constant_bytes};
  /* strided constants bring their whole storage */
  const gp_tensor *constant = s->graph->constants[s->graph->values[value].index];
  GP_TRY(gp_size_align(gp_tensor_bytes(constant), GP_PLACE_ALIGNMENT, &bytes));
  return gp_size_add(out->constant_bytes, bytes, &out->constant_bytes);
}

gp_status gp_find_constants(gp_shaper *s, int32_t stage) {
  for (int32_t i = 0; i < s->own_count && is_far(s, stage); i++)
    if (s->graph->values[s->own[i]].kind == GP_VALUE_CONST)
      GP_TRY(add(s, &s->shape->programs[stage], s->own[i]));
  return GP_OK;
}

/* Place parameters and buffers where the stage finds them, then its copies of constants. */
void gp_place_constants(gp_shaper *s, int32_t stage) {
  const gp_stage_programs *own = &s->shape->programs[stage];
  for (int32_t i = 0; i < s->own_count; i++) {
    const gp_value *value = &s->graph->values[s->own[i]];
    if (value->kind == GP_VALUE_PARAM)
      s->places[s->own[i]] = gp_layout_value(s->env->layout, s->graph->params[value->index], stage);
  }
  for (int32_t i = 0; i < own->constant_count; i++)
    s->places[own->constants[i].value] =
        (gp_place){GP_BASE_CONSTANT_COPY, own->constants[i].offset};
}
