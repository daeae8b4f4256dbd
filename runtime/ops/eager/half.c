/* ops/eager/half.c - an op on bf16 or f16 tensors of the host: converted to f32, computed,
 * converted back.
 *
 * A GPU does the same: it loads halves, computes in f32 and rounds once. So a script may see the
 * same numbers without a GPU. Pipelines convert in another way, a few rows at a time (ops/half). */
#include "base/tensor.h"
#include "ops/eager/eager.h"

static bool is_half(const gp_tensor *tensor) {
  gp_dtype dtype = gp_tensor_meta(tensor)->dtype;
  return dtype == GP_BF16 || dtype == GP_F16;
}

bool gp_eager_is_half(const gp_application *a) {
  bool any = false;
  for (int i = 0; i < a->sig.n_in; i++) any |= is_half(a->in[i]);
  for (int k = 0; k < a->sig.n_out; k++) any |= is_half(a->out[k]);
  return any && !(a->def->flags & GP_OP_HALVES);
}

/* Make the same tensor in f32, row-major or, for ops that want images so, channels-last; anything
 * but halves is retained as it is. */
static gp_status widen(const gp_op_def *def, gp_tensor *from, bool with_values, gp_tensor **to) {
  if (!is_half(from)) return *to = gp_tensor_retain(from), GP_OK;
  gp_tensor *made;
  gp_meta meta;
  GP_TRY(gp_meta_make(GP_F32, &gp_tensor_meta(from)->shape, &meta));
  if (def->flags & GP_OP_CHANNELS_LAST && gp_meta_is_channels_last(gp_tensor_meta(from)))
    gp_meta_set_channels_last(&meta);
  GP_TRY(gp_eager_new(NULL, &meta, &made));
  gp_status status = with_values ? gp_tensor_copy(made, from) : GP_OK;
  if (status) return gp_tensor_free(made), status;
  *to = made;
  return GP_OK;
}

/* An op with an effect writes the memory of its slots. */
static gp_status widen_all(const gp_application *a, gp_application *wide) {
  for (int i = 0; i < a->sig.n_in; i++) {
    GP_TRY(widen(a->def, a->in[i], true, &wide->in[i]));
    wide->sig.in[i] = gp_tensor_meta(wide->in[i]);
  }
  for (int k = 0; k < a->sig.n_out; k++) {
    if (k < gp_op_slots(a->op))
      wide->out[k] = gp_tensor_retain(wide->in[k]);
    else
      GP_TRY(widen(a->def, a->out[k], false, &wide->out[k]));
  }
  return GP_OK;
}

static gp_status run(const gp_application *a, gp_application *wide, const gp_step_block *step) {
  GP_TRY(widen_all(a, wide));
  GP_TRY(gp_eager_run_host(wide, step));
  for (int k = 0; k < a->sig.n_out; k++)
    if (wide->out[k] != a->out[k]) GP_TRY(gp_tensor_copy(a->out[k], wide->out[k]));
  return GP_OK;
}

gp_status gp_eager_run_half(const gp_application *a, const gp_step_block *step) {
  gp_application wide = {.op = a->op, .def = a->def, .sig = a->sig};
  gp_status status = run(a, &wide, step);
  for (int i = 0; i < a->sig.n_in; i++) gp_tensor_free(wide.in[i]);
  for (int k = 0; k < a->sig.n_out; k++) gp_tensor_free(wide.out[k]);
  return status;
}
