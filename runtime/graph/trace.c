/* graph/trace.c - records one forward pass: Lua's symbolic tensors call this.
 *
 * Two rules keep the bits independent of where a model is cut. A value that another layer reads is
 * contiguous: a strided view gets one copy, owned by the layer that made the view. And a buffer is
 * read through a snapshot, so that recomputation sees what the first pass saw. */
#include <stdatomic.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"

gp_status gp_trace_new(bool training, gp_trace **trace) {
  gp_trace *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->references = 1;
  made->training = training;
  made->at = (gp_builder){.graph = &made->graph};
  gp_status status = gp_graph_label(&made->graph, "model", &made->at.label);
  if (status) return gp_trace_free(made), status;
  *trace = made;
  return GP_OK;
}

gp_trace *gp_trace_retain(gp_trace *trace) {
  atomic_fetch_add(&trace->references, 1);
  return trace;
}

void gp_trace_free(gp_trace *trace) {
  if (!trace || atomic_fetch_sub(&trace->references, 1) > 1) return;
  gp_graph_free(&trace->graph);
  gp_free(trace->param_refs);
  gp_free(trace->boundary);
  gp_free(trace);
}

bool gp_trace_is_training(const gp_trace *trace) { return trace->training; }

void gp_trace_set_half(gp_trace *trace, gp_dtype dtype) { trace->half = dtype; }

void gp_trace_set_scaled(gp_trace *trace) { trace->graph.scaled = true; }

void gp_trace_set_layer(gp_trace *trace, int layer) { trace->at.layer = layer; }

gp_status gp_trace_set_label(gp_trace *trace, const char *label) {
  return gp_graph_label(&trace->graph, label, &trace->at.label);
}

const gp_meta *gp_trace_meta(const gp_trace *trace, gp_ref ref) {
  return &gp_graph_at(&trace->graph, ref)->meta;
}

/* Inputs are contiguous, whatever layout the user's tensor has: the pipeline copies it if
 * needed. */
gp_status gp_trace_input(gp_trace *trace, gp_input_kind kind, const gp_meta *meta, gp_ref *ref) {
  bool batch = kind == GP_INPUT_BATCH;
  int32_t *count = batch ? &trace->input_count : &trace->target_count;
  gp_meta dense;
  GP_TRY(gp_meta_make(meta->dtype, &meta->shape, &dense));
  GP_TRY(
      gp_graph_value(&trace->graph, batch ? GP_VALUE_INPUT : GP_VALUE_TARGET, &dense, *count, ref));
  ++*count;
  return GP_OK;
}

/* A tensor that is captured twice is one constant. Constants lie on the host, and each stage copies
 * them to its device. A tensor on a GPU is fetched each time that it is used, so it is not
 * recognised. */
gp_status gp_trace_constant(gp_trace *trace, gp_tensor *tensor, gp_ref *ref) {
  gp_graph *graph = &trace->graph;
  gp_tensor *here;
  *ref = gp_graph_find(graph, GP_FOUND_CONSTANT, (uintptr_t)tensor, 0);
  if (*ref >= 0) return GP_OK;
  GP_TRY(gp_tensor_fetch(tensor, &here));
  bool held = here == tensor; /* its address stays unique while the graph lives */
  GP_TRY(gp_graph_constant(graph, here, ref));
  return held ? gp_graph_note(graph, GP_FOUND_CONSTANT, (uintptr_t)tensor, 0, *ref) : GP_OK;
}

/* ---- parameters and buffers ---------------------------------------------------------------- */

/* Grow a per-index table of refs filled with GP_NONE. */
static gp_status room_for(gp_ref **table, int32_t *room, int32_t count) {
  if (count <= *room) return GP_OK;
  int32_t more = count > 2 * *room ? count + 16 : 2 * *room;
  GP_TRY(gp_resize_array((size_t)*room, (size_t)more, sizeof(gp_ref), (void **)table));
  for (int32_t i = *room; i < more; i++) (*table)[i] = GP_NONE;
  *room = more;
  return GP_OK;
}

/* The dtype in which a parameter is read. Buffers keep their own: layers write them, and halves
 * would lose precision. */
gp_dtype gp_trace_reads(const gp_trace *trace, const gp_param *param) {
  gp_dtype dtype = gp_param_meta(param)->dtype;
  return dtype == GP_F32 && !gp_param_is_buffer(param) ? trace->half : dtype;
}

/* The cast that this layer made before; GP_NONE if there is none. */
static gp_ref find_cast(const gp_trace *trace, gp_ref param) {
  return gp_graph_find(&trace->graph, GP_FOUND_CAST, (uint64_t)param, trace->at.layer);
}

/* Cast an f32 parameter to the dtype that the pipeline computes in. Each layer has its own cast, so
 * that none crosses a cut; it depends on the parameter only, so it is made once per step. */
static gp_status cast_master(gp_trace *trace, gp_ref *ref) {
  gp_attrs attrs = {.cast = {.dtype = trace->half}};
  gp_ref param = *ref;
  *ref = find_cast(trace, param);
  if (*ref != GP_NONE) return GP_OK;
  GP_TRY(gp_build(&trace->at, GP_OP_cast, &attrs, &param, 1, ref));
  trace->graph.nodes[trace->graph.node_count - 1].master = true;
  return gp_graph_note(&trace->graph, GP_FOUND_CAST, (uint64_t)param, trace->at.layer, *ref);
}

/* Make the copy of a buffer that later readers in this layer see. */
static gp_status take_snapshot(gp_trace *trace, int32_t index, gp_ref buffer) {
  GP_TRY(gp_build(&trace->at, GP_OP_copy, &(gp_attrs){0}, &buffer, 1, &trace->param_refs[index]));
  trace->graph.nodes[trace->graph.node_count - 1].snapshot = true;
  return GP_OK;
}

/* Read a parameter. A buffer is read through a snapshot; writing it ends the snapshot. */
gp_status gp_trace_param(gp_trace *trace, gp_param *param, gp_ref *ref) {
  int32_t index;
  gp_ref value;
  GP_TRY(gp_graph_param(&trace->graph, param, &index));
  GP_TRY(room_for(&trace->param_refs, &trace->param_refs_room, index + 1));
  if (trace->param_refs[index] == GP_NONE) {
    GP_TRY(gp_graph_param_value(&trace->graph, index, &value));
    trace->param_refs[index] = value;
    if (gp_param_is_buffer(param)) GP_TRY(take_snapshot(trace, index, value));
  }
  *ref = trace->param_refs[index];
  bool master = gp_trace_reads(trace, param) != gp_param_meta(param)->dtype;
  return master ? cast_master(trace, ref) : GP_OK;
}

/* The buffer behind a snapshot; GP_NONE for anything else. */
static gp_ref buffer_of(const gp_graph *graph, gp_ref ref) {
  const gp_value *value = gp_graph_at(graph, ref);
  if (value->node < 0 || !graph->nodes[value->node].snapshot) return GP_NONE;
  return graph->nodes[value->node].in[0];
}

/* Append an op that writes buffers. Later layers read what is written from a copy, never from the
 * buffer: it may lie in another stage, where the next micro-batch already writes it. */
static gp_status write(gp_trace *trace, gp_op op, const gp_attrs *attrs, gp_ref *in, int n,
                       gp_ref *output) {
  const int slots = gp_op_slots(op);
  for (int k = 0; k < slots && k < n; k++) {
    in[k] = buffer_of(&trace->graph, in[k]);
    if (in[k] == GP_NONE)
      return gp_fail(GP_EINVAL, "%s: only a Buffer may be written in forward",
                     op == GP_OP_assign ? "copy_" : gp_op_name(op));
  }
  GP_TRY(gp_build(&trace->at, op, attrs, in, n, output));
  for (int k = 0; k < slots; k++)
    GP_TRY(take_snapshot(trace, gp_graph_at(&trace->graph, in[k])->index, in[k]));
  return GP_OK;
}

/* ---- ops ----------------------------------------------------------------------------------- */

/* Make a value from another layer contiguous: see the top of the file. */
static gp_status across_layers(gp_trace *trace, gp_ref in, gp_ref *out) {
  const gp_value *value = gp_graph_at(&trace->graph, in);
  *out = in;
  if (value->node < 0 || value->layer == trace->at.layer || gp_meta_is_contiguous(&value->meta))
    return GP_OK;
  GP_TRY(room_for(&trace->boundary, &trace->boundary_room, in + 1));
  if (trace->boundary[in] == GP_NONE) {
    gp_builder space = trace->at;
    space.layer = value->layer;
    GP_TRY(gp_build(&space, GP_OP_copy, &(gp_attrs){0}, &in, 1, &trace->boundary[in]));
  }
  *out = trace->boundary[in];
  return GP_OK;
}

/* Is it a constant, a buffer's snapshot, a tensor that forward drew, or a view of one? */
static bool is_kept_wide(const gp_graph *graph, gp_ref ref) {
  const gp_value *value = gp_graph_at(graph, ref);
  if (value->meta.dtype != GP_F32) return false;
  while (value->kind != GP_VALUE_CONST) {
    if (value->node < 0) return false;
    const gp_node *node = &graph->nodes[value->node];
    if (node->snapshot || node->n_in == 0) return true;
    if (!(gp_op_get(node->op)->flags & GP_OP_VIEW)) return false;
    value = gp_graph_at(graph, node->in[0]);
  }
  return true;
}

/* If an operand is a half, constants and buffers of f32 are cast to halves, as parameters are,
 * except where the op wants statistics. attention is excluded: its mask may be f32, because the
 * numbers that hide a key may exceed the range of f16. */
static gp_status narrow_beside_halves(gp_trace *trace, gp_op op, gp_ref *in, int n) {
  gp_attrs attrs = {.cast = {.dtype = trace->half}};
  bool half = false;
  const bool writes = gp_op_get(op)->flags & GP_OP_EFFECT;
  if (trace->half == GP_F32 || op == GP_OP_attention || writes) return GP_OK;
  for (int i = 0; i < n; i++) half |= gp_graph_at(&trace->graph, in[i])->meta.dtype == trace->half;
  for (int i = 0; half && i < n; i++)
    if (is_kept_wide(&trace->graph, in[i]) && !gp_op_takes_wide(op, i))
      GP_TRY(gp_build(&trace->at, GP_OP_cast, &attrs, &in[i], 1, &in[i]));
  return GP_OK;
}

gp_status gp_trace_apply(gp_trace *trace, gp_op op, const gp_attrs *attrs, const gp_ref *inputs,
                         int n_inputs, gp_ref *outputs, int *n_outputs) {
  gp_graph *graph = &trace->graph;
  gp_ref in[GP_MAX_INPUTS], out;
  gp_attrs own = *attrs;
  if (n_inputs > GP_MAX_INPUTS)
    return gp_fail(GP_EINVAL, "%s: %d inputs, expected at most %d", gp_op_name(op), n_inputs,
                   GP_MAX_INPUTS);
  if (gp_op_get(op)->flags & GP_OP_RANDOM) own.random = (uint32_t)graph->random_count++;
  for (int i = 0; i < n_inputs; i++) GP_TRY(across_layers(trace, inputs[i], &in[i]));
  GP_TRY(narrow_beside_halves(trace, op, in, n_inputs));
  if (gp_op_get(op)->flags & GP_OP_EFFECT)
    GP_TRY(write(trace, op, &own, in, n_inputs, &out));
  else
    GP_TRY(gp_build(&trace->at, op, &own, in, n_inputs, &out));
  *n_outputs = graph->nodes[gp_graph_at(graph, out)->node].n_out;
  for (int k = 0; k < *n_outputs; k++) outputs[k] = out + k;
  return GP_OK;
}
