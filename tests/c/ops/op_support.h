/* tests/c/ops/op_support.h - what the tests of ops share: making tensors, applying ops, and running
 * a kernel whole and in pieces to see that the cut changes no bit. */
#ifndef GP_TESTS_OP_SUPPORT_H
#define GP_TESTS_OP_SUPPORT_H

#include "op_call.h"

static const gp_attrs no_attrs; /* all 0 */

/* Makes the attributes of reshape and of expand, which hold only a shape. */
static inline gp_attrs shape_attrs(gp_shape shape) { return (gp_attrs){.reshape = {shape}}; }

/* Draws uniformly in [low, high), then rounds to the dtype. */
static inline gp_tensor *uniform(gp_dtype dtype, gp_shape shape, double low, double high) {
  static uint64_t stream;
  gp_tensor *t = new_tensor(dtype, shape), *wide = new_tensor(GP_F64, shape);
  const gp_init init = {GP_INIT_UNIFORM, low, high};
  CHECK_STATUS(gp_tensor_fill(wide, &init, 11, stream++), GP_OK);
  CHECK_STATUS(gp_tensor_copy(t, wide), GP_OK);
  gp_tensor_free(wide);
  return t;
}

/* Makes a tensor of the given values, row-major. */
static inline gp_tensor *values(gp_dtype dtype, gp_shape shape, const double *from) {
  gp_tensor *t = new_tensor(dtype, shape);
  for (int64_t i = 0; i < gp_tensor_numel(t); i++) gp_tensor_set_double(t, i, from[i]);
  return t;
}

/* Applies an op that may fail. */
static inline gp_status try_op(gp_op op, const gp_attrs *attrs, gp_tensor *const *in, int n_in,
                               gp_tensor **out) {
  int n_out;
  return gp_eager_apply(op, attrs, in, n_in, out, &n_out);
}

/* Returns the first output of an op of up to three inputs; NULL ends them. The others are freed. */
static inline gp_tensor *apply(gp_op op, const gp_attrs *attrs, gp_tensor *a, gp_tensor *b,
                               gp_tensor *c) {
  gp_tensor *const in[] = {a, b, c};
  gp_tensor *out[GP_MAX_OUTPUTS] = {0};
  CHECK_STATUS(try_op(op, attrs, in, (a != NULL) + (b != NULL) + (c != NULL), out), GP_OK);
  for (int i = 1; i < GP_MAX_OUTPUTS; i++) gp_tensor_free(out[i]);
  return out[0];
}

/* Reverses the order of the dims: the result is a strided view of the same memory. */
static inline gp_tensor *reversed(gp_tensor *t) {
  int rank = gp_tensor_meta(t)->shape.rank;
  gp_attrs attrs = {.permute = {{.count = rank}}};
  for (int d = 0; d < rank; d++) attrs.permute.order.at[d] = rank - 1 - d;
  return apply(GP_OP_permute, &attrs, t, NULL, NULL);
}

/* Are dtype, shape and bytes equal? NaN equals itself here. Both are contiguous. */
static inline bool same_bits(const gp_tensor *a, const gp_tensor *b) {
  return gp_meta_equal(gp_tensor_meta(a), gp_tensor_meta(b)) &&
         (gp_tensor_numel(a) == 0 ||
          memcmp(gp_tensor_data(a), gp_tensor_data(b), gp_meta_bytes(gp_tensor_meta(a))) == 0);
}

/* Returns the outputs of an op that runs in pieces of the given size. */
static inline void apply_in_pieces(gp_op op, const gp_attrs *attrs, gp_tensor *const *in, int n_in,
                                   gp_tensor **out, int64_t piece) {
  static const gp_step_block step = {.seed = 5, .step = 3, .rows = 4, .first_row = 8};
  gp_sig sig = {.attr = attrs, .n_in = n_in};
  gp_call call = {.attr = attrs, .step = &step, .n_in = n_in};
  for (int i = 0; i < n_in; i++) sig.in[i] = gp_tensor_meta(in[i]);
  CHECK_STATUS(gp_op_infer(op, &sig), GP_OK);
  call.n_out = sig.n_out;
  for (int i = 0; i < sig.n_out; i++) out[i] = new_tensor(sig.out[i].dtype, sig.out[i].shape);
  bind_call(&call, in, out);
  CHECK_STATUS(run_pieces(&call, &gp_op_get(op)->cpu, piece), GP_OK);
}

/* Runs the op whole, unit by unit, and in pieces of 3 and 7 units: the bits must be the same. */
static inline void check_cut(gp_op op, const gp_attrs *attrs, gp_tensor *const *in, int n_in) {
  static const int64_t pieces[] = {1, 3, 7};
  gp_tensor *whole[GP_MAX_OUTPUTS] = {0};
  apply_in_pieces(op, attrs, in, n_in, whole, 0);
  for (int k = 0; k < 3; k++) {
    gp_tensor *cut[GP_MAX_OUTPUTS] = {0};
    apply_in_pieces(op, attrs, in, n_in, cut, pieces[k]);
    for (int i = 0; i < GP_MAX_OUTPUTS && whole[i]; i++) {
      if (!same_bits(whole[i], cut[i]))
        printf("%s in pieces of %d\n", gp_op_name(op), (int)pieces[k]);
      CHECK(same_bits(whole[i], cut[i]));
      gp_tensor_free(cut[i]);
    }
  }
  for (int i = 0; i < GP_MAX_OUTPUTS; i++) gp_tensor_free(whole[i]);
}

#endif
