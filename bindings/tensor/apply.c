/* bindings/tensor/apply.c - the one place where an op is applied: recorded while tracing, run
 * otherwise.
 *
 * Every method, operator and layer function ends here, so that a layer's forward means the same in
 * the REPL and in a pipeline. Outputs are boxed before the inputs are looked at, because a
 * finalizer may free an input while a box is made; then no Lua code runs until the outputs are in
 * their boxes. */
#include "binding.h"

/* ---- running ------------------------------------------------------------------------------- */

/* Take a reference: a parameter's value may move into a pipeline's arena meanwhile. */
static gp_status hold(gp_box *box, gp_tensor **tensor) {
  if (box->param) return gp_param_value(box->param, tensor);
  *tensor = gp_tensor_retain(box->tensor);
  return GP_OK;
}

static bool is_noted(const gp_lua_call *use, gp_box *const *in) {
  for (int i = 0; i < use->n_in; i++)
    if (gp_box_has_gradient(in[i])) return true;
  return false;
}

/* Make the outputs remember the inputs that they came from. */
static gp_status note(gp_applied *a, gp_box *const *in, gp_tensor *const *inputs, int n_out,
                      gp_box *const *out) {
  gp_history_input from[GP_MAX_INPUTS];
  gp_history *history;
  for (int i = 0; i < a->n_in; i++) {
    const bool ends = !in[i]->history && gp_box_has_gradient(in[i]);
    from[i] = (gp_history_input){.tensor = inputs[i],
                                 .leaf = !ends         ? NULL
                                         : in[i]->leaf ? in[i]->leaf
                                                       : in[i]->param,
                                 .history = in[i]->history,
                                 .output = in[i]->output};
  }
  a->inputs = from;
  gp_status status = gp_history_record(a, &history);
  for (int k = 0; !status && history && k < n_out && k < a->n_out; k++) {
    if (!gp_dtype_is_float(gp_tensor_meta(a->outputs[k])->dtype)) continue;
    out[k]->history = gp_history_retain(history);
    out[k]->output = k;
  }
  if (!status) gp_history_free(history);
  return status;
}

/* No Lua call may come between taking the first reference and releasing the last. */
static gp_status run_eager(const gp_lua_call *use, bool noted, gp_box *const *in,
                           gp_box *const *out) {
  gp_tensor *inputs[GP_MAX_INPUTS] = {0};
  gp_tensor *outputs[GP_MAX_OUTPUTS] = {0};
  gp_applied applied = {.op = use->op,
                        .attrs = &use->attrs,
                        .outputs = outputs,
                        .n_in = use->n_in,
                        .random = gp_eager_random()};
  gp_status status = GP_OK;
  for (int i = 0; i < use->n_in && status == GP_OK; i++) status = hold(in[i], &inputs[i]);
  if (status == GP_OK)
    status = gp_eager_apply(use->op, &use->attrs, inputs, use->n_in, outputs, &applied.n_out);
  if (status == GP_OK && noted && is_noted(use, in))
    status = note(&applied, in, inputs, use->n_out, out);
  for (int i = 0; i < applied.n_out; i++) {
    if (i < use->n_out && status == GP_OK)
      out[i]->tensor = outputs[i];
    else
      gp_tensor_free(outputs[i]);
  }
  for (int i = 0; i < use->n_in; i++) gp_tensor_free(inputs[i]);
  return status;
}

/* ---- recording ----------------------------------------------------------------------------- */

/* Record a copy of the tensor's contents as a constant: the script may write to the tensor
 * later. */
static gp_status record_constant(gp_trace *trace, gp_tensor *tensor, gp_ref *ref) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  gp_tensor *copy = NULL;
  gp_status status = gp_tensor_new(meta->dtype, &meta->shape, &copy);
  if (status == GP_OK) status = gp_tensor_copy(copy, tensor);
  if (status == GP_OK) status = gp_trace_constant(trace, copy, ref);
  gp_tensor_free(copy);
  return status;
}

/* Record an input. A parameter is recorded as itself, so that it gets a gradient. */
static gp_status record_input(gp_trace *trace, gp_box *box, gp_ref *ref) {
  if (box->param) return gp_trace_param(trace, box->param, ref);
  if (box->tensor) return record_constant(trace, box->tensor, ref);
  *ref = box->ref;
  return GP_OK;
}

static gp_status record(gp_trace *trace, const gp_lua_call *use, gp_box *const *in,
                        gp_box *const *out) {
  gp_ref inputs[GP_MAX_INPUTS], outputs[GP_MAX_OUTPUTS];
  int n_outputs = 0;
  gp_status status = GP_OK;
  for (int i = 0; i < use->n_in && status == GP_OK; i++)
    status = record_input(trace, in[i], &inputs[i]);
  if (status == GP_OK)
    status = gp_trace_apply(trace, use->op, &use->attrs, inputs, use->n_in, outputs, &n_outputs);
  for (int i = 0; i < n_outputs && i < use->n_out && status == GP_OK; i++) {
    out[i]->trace = gp_trace_retain(trace);
    out[i]->ref = outputs[i];
  }
  return status;
}

/* ---- apply --------------------------------------------------------------------------------- */

/* Must the op be recorded? Errors: a value of a trace that is not the current one. */
static bool is_recorded(lua_State *L, const gp_lua_call *use, gp_box *const *in,
                        const gp_trace *trace) {
  bool recorded = use->n_in == 0 && trace;
  for (int i = 0; i < use->n_in; i++) {
    if (in[i]->trace && in[i]->trace != trace)
      gp_lua_error(L,
                   "%s: a value of a trace that has ended was kept, expected values of this call "
                   "of forward (keep state in an nn.Buffer)",
                   gp_op_name(use->op));
    if (in[i]->trace || (in[i]->param && trace)) recorded = true;
  }
  return recorded;
}

/* Name an operand by its role, if users know the role. */
static const char *push_operand_name(lua_State *L, const gp_lua_call *use, int i) {
  const gp_contract *row = gp_op_contract(use->op);
  const gp_operand *o = row->operands;
  for (int k = 0; k < i && o->role; k++) o++;
  if (o->role && o->role[1]) return lua_pushfstring(L, "%s: %s", row->name, o->role);
  return lua_pushfstring(L, "%s: input %d", row->name, i + 1);
}

/* Check an input of an op. Layers rarely pass a wrong one, scripts that call core may. */
static gp_box *check_input(lua_State *L, const gp_lua_call *use, int i) {
  gp_box *box = gp_lua_to_box(L, use->in[i]);
  if (!box) gp_lua_bad_value(L, use->in[i], push_operand_name(L, use, i), "a tensor");
  return gp_lua_check_live(L, box, gp_op_name(use->op));
}

/* Push empty boxes for the outputs. Inputs that the caller left out become nil, so that no output
 * takes their place. */
static void push_outputs(lua_State *L, const gp_lua_call *use, gp_box **out) {
  int top = lua_gettop(L);
  for (int i = 0; i < use->n_in; i++)
    if (use->in[i] > top) top = use->in[i];
  lua_settop(L, top);
  for (int i = 0; i < use->n_out; i++) out[i] = gp_lua_new_box(L);
}

/* Run or record the op on its inputs, checked now: no more objects are made in Lua. */
static gp_status apply_once(lua_State *L, const gp_lua_call *use, gp_trace *trace,
                            gp_box *const *out, bool *recorded) {
  gp_box *in[GP_MAX_INPUTS];
  for (int i = 0; i < use->n_in; i++) in[i] = check_input(L, use, i);
  *recorded = is_recorded(L, use, in, trace);
  const bool noted = !trace && !gp_lua_state(L)->no_grad;
  return *recorded ? record(trace, use, in, out) : run_eager(use, noted, in, out);
}

/* If memory is short, garbage may hold it: collect and try once more. */
void gp_lua_apply(lua_State *L, const gp_lua_call *asked) {
  gp_lua_call use = *asked;
  if (use.n_out == 0) use.n_out = 1;
  gp_box *out[GP_MAX_OUTPUTS];
  bool recorded = false;
  push_outputs(L, &use, out);
  gp_status status = GP_OK;
  gp_trace *trace = gp_lua_trace(L);
  if (trace) { /* it may collect garbage, and finalizers may do anything */
    status = gp_lua_note_label(L);
    trace = gp_lua_trace(L);
  }
  if (status == GP_OK) status = apply_once(L, &use, trace, out, &recorded);
  if (status == GP_ENOMEM && !recorded) {
    lua_gc(L, LUA_GCCOLLECT);
    status = apply_once(L, &use, gp_lua_trace(L), out, &recorded);
  }
  if (status != GP_OK) gp_lua_fail(L, status);
}

void gp_lua_apply1(lua_State *L, gp_op op, int a) {
  gp_lua_apply(L, &(gp_lua_call){.op = op, .n_in = 1, .in = {lua_absindex(L, a)}});
}

void gp_lua_apply2(lua_State *L, gp_op op, int a, int b) {
  gp_lua_apply(L,
               &(gp_lua_call){.op = op, .n_in = 2, .in = {lua_absindex(L, a), lua_absindex(L, b)}});
}

void gp_lua_reshape(lua_State *L, int index, const gp_shape *shape) {
  gp_meta meta = gp_lua_check_meta(L, index, "reshape");
  if (gp_meta_is_dense(&meta))
    lua_pushvalue(L, index);
  else
    gp_lua_apply1(L, GP_OP_copy, index);
  gp_lua_call use = {.op = GP_OP_reshape, .n_in = 1, .in = {lua_gettop(L)}};
  use.attrs.reshape.to = *shape;
  gp_lua_apply(L, &use);
  lua_remove(L, -2);
}

/* ---- operands ------------------------------------------------------------------------------ */

void gp_lua_promote(lua_State *L, int index, const char *who, gp_dtype dtype) {
  if (lua_type(L, index) != LUA_TNUMBER && lua_type(L, index) != LUA_TBOOLEAN) return;
  index = lua_absindex(L, index);
  gp_box *box = gp_lua_new_box(L);
  gp_status status = gp_tensor_new(dtype, &(gp_shape){0}, &box->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  gp_lua_store(L, index, who, box->tensor, 0);
  lua_replace(L, index);
}

void gp_lua_check_operands(lua_State *L, int a, int b, const char *who) {
  gp_box *left = gp_lua_to_box(L, a), *right = gp_lua_to_box(L, b);
  if (!left && lua_type(L, a) != LUA_TNUMBER)
    gp_lua_bad_value(L, a, lua_pushfstring(L, "%s: the left operand", who), "a tensor or a number");
  if (!right && lua_type(L, b) != LUA_TNUMBER)
    gp_lua_bad_value(L, b, lua_pushfstring(L, "%s: the right operand", who),
                     "a tensor or a number");
  if (left && right) return;
  int number = left ? b : a;
  gp_dtype dtype = gp_lua_dtype(L, gp_lua_check_box(L, left ? a : b, who));
  if (!gp_dtype_is_float(dtype) && dtype != GP_BOOL && !lua_isinteger(L, number))
    gp_lua_bad_value(L, number, lua_pushfstring(L, "%s: the number", who),
                     lua_pushfstring(L,
                                     "an integer as the tensor is %s (convert it with "
                                     "to(\"f32\"))",
                                     gp_dtype_name(dtype)));
  gp_lua_promote(L, number, who, dtype);
}
