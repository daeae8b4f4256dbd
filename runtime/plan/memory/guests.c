/* plan/memory/guests.c - values of elsewhere that a stage reads: copies in the memory of its own device.
 *
 * A parameter that two stages use lies with the first; a constant lies on the host. Where the device of a
 * stage cannot read it there, the stage gets a copy: of constants once, of parameters before every
 * mini-batch (engine/gpu/wiring.c).
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/places.h"

/* What the loss is divided by is a program of the last stage. */
static gp_status mark_count(const gp_shaper *s, bool *read) {
  bool *needed;
  if (s->shape->count == GP_NONE) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)s->graph->node_count + 1, sizeof *needed, (void **)&needed));
  gp_status status = gp_graph_reach(s->graph, &s->shape->count, 1, needed);
  for (int32_t n = 0; !status && n < s->graph->node_count; n++)
    for (int i = 0; needed[n] && i < s->graph->nodes[n].n_in; i++)
      read[gp_graph_base(s->graph, s->graph->nodes[n].in[i])] = true;
  gp_free(needed);
  return status;
}

static gp_status mark_reads(const gp_shaper *s, int32_t stage, bool *read) {
  const gp_stage_nodes *nodes = &s->shape->stages->stages[stage];
  gp_mark_reads(s->graph, &nodes->forward, read);
  gp_mark_reads(s->graph, &nodes->recompute, read);
  gp_mark_reads(s->graph, &nodes->input, read);
  gp_mark_reads(s->graph, &nodes->weight, read);
  gp_mark_reads(s->graph, &nodes->prepare, read);
  return stage == s->env->stage_count - 1 ? mark_count(s, read) : GP_OK;
}

/* Does any device of the stage work in memory of its own? Both run the same programs. */
static bool is_far(const gp_shaper *s, int32_t stage) {
  const gp_schedule *schedule = s->schedule;
  for (int32_t copy = 0; s->env->devices && copy < schedule->copy_count; copy++)
    if (s->env->devices[schedule->placement[stage * schedule->copy_count + copy]].space)
      return true;
  return false;
}

static bool is_guest(const gp_shaper *s, int32_t stage, gp_ref r) {
  const gp_value *value = &s->graph->values[r];
  if (value->kind == GP_VALUE_CONST) return is_far(s, stage);
  if (value->kind != GP_VALUE_PARAM) return false;
  return s->env->value(s->env->context, s->graph->params[value->index], stage).base ==
         GP_BASE_GUEST;
}

static gp_status add(gp_shaper *s, gp_stage_programs *out, gp_ref value) {
  size_t n = (size_t)out->guest_count, bytes;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_guest), (void **)&out->guests));
  out->guests[out->guest_count++] = (gp_guest){value, out->guest_bytes};
  /* strided constants bring their whole storage */
  const gp_value *v = &s->graph->values[value];
  size_t own = v->kind == GP_VALUE_CONST ? gp_tensor_bytes(s->graph->constants[v->index])
                                         : gp_meta_bytes(&v->meta);
  GP_TRY(gp_size_align(own, GP_PLACE_ALIGNMENT, &bytes));
  return gp_size_add(out->guest_bytes, bytes, &out->guest_bytes);
}

gp_status gp_find_guests(gp_shaper *s, int32_t stage) {
  bool *read;
  GP_TRY(gp_alloc_array((size_t)s->graph->value_count + 1, sizeof *read, (void **)&read));
  gp_status status = mark_reads(s, stage, read);
  for (gp_ref r = 0; !status && r < s->graph->value_count; r++)
    if (read[r] && is_guest(s, stage, r)) status = add(s, &s->shape->programs[stage], r);
  gp_free(read);
  return status;
}

/* Parameters and buffers as the stage sees them, then its guests. */
void gp_place_guests(gp_shaper *s, int32_t stage) {
  const gp_stage_programs *own = &s->shape->programs[stage];
  for (gp_ref r = 0; r < s->graph->value_count; r++) {
    const gp_value *value = &s->graph->values[r];
    if (value->kind == GP_VALUE_PARAM && value->base == r)
      s->places[r] = s->env->value(s->env->context, s->graph->params[value->index], stage);
  }
  for (int32_t i = 0; i < own->guest_count; i++)
    s->places[own->guests[i].value] = (gp_place){GP_BASE_GUEST, own->guests[i].offset};
}
