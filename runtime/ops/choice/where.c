/* ops/choice/where.c - c ? a : b, for a and b of any one dtype.
 *
 * It only moves bits, so the loops know sizes, not types. Both sides are read and one is
 * selected. */
#include "ops/elementwise/loops.h"

#define SELECT(ia, ib) GP_MAP_LOOP y[i] = c[i] ? a[ia] : b[ib];

/* The condition, a mask, is mostly as large as the result; a side is often a constant. */
#define WHERE(name, T)                                                                             \
  static void name(const gp_row_run *run) {                                                        \
    const uint8_t *c = run->in[0];                                                                 \
    const T *a = run->in[1], *b = run->in[2];                                                      \
    T *y = run->out;                                                                               \
    const int64_t sc = run->step[0], sa = run->step[1], sb = run->step[2];                         \
    const bool plain = run->out_step == 1 && sc == 1;                                              \
    if (plain && sa == 1 && sb == 1) {                                                             \
      SELECT(i, i)                                                                                 \
    } else if (plain && sa == 1 && sb == 0) {                                                      \
      SELECT(i, 0)                                                                                 \
    } else if (plain && sa == 0 && sb == 1) {                                                      \
      SELECT(0, i)                                                                                 \
    } else {                                                                                       \
      GP_MAP_LOOP y[i * run->out_step] = c[i * sc] ? a[i * sa] : b[i * sb];                        \
    }                                                                                              \
  }

/* A byte of the condition is 0 or not; elements are moved as bits. */
WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)

/* The condition and both sides broadcast together; the sides have one dtype. */
static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_infer_broadcast(sig, &shape));
  return gp_infer_out(sig, sig->in[1]->dtype, &shape);
}

/* Choose the loop by the size of an element. */
static gp_status run_where(const gp_call *call, gp_span span) {
  static const gp_loop loops[] = {[1] = where_1, [2] = where_2, [4] = where_4, [8] = where_8};
  return gp_map(call, span, loops[gp_dtype_size(call->out[0].meta->dtype)]);
}

/* The gradient goes to the side that was taken, 0 to the other. */
static gp_status vjp(gp_vjp *v) {
  const gp_attrs none = {0};
  gp_ref zero, g;
  GP_TRY(gp_build_constant(v->builder, gp_build_meta(v->builder, v->dout[0])->dtype, 0, &zero));
  const gp_ref sides[2][3] = {{v->in[0], v->dout[0], zero}, {v->in[0], zero, v->dout[0]}};
  for (int i = 0; i < 2; i++) {
    if (!v->need[1 + i]) continue;
    GP_TRY(gp_build(v->builder, GP_OP_where, &none, sides[i], 3, &g));
    GP_TRY(gp_vjp_set_broadcast(v, 1 + i, g));
  }
  return GP_OK;
}

const gp_op_def gp_def_where = {
    GP_OP_ROW(where),
    .row_inputs = 7,
    .infer = infer,
    .vjp = vjp,
    .cost = gp_map_cost_light,
    .cpu = {.cut = gp_cut_rows, .run = run_where, GP_MAP_STATE},
};
