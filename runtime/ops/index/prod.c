/* ops/index/prod.c - products of lines, and their gradient.
 *
 * The gradient of an element is the product of the others: of those before it, made on the way up,
 * times those after it, made on the way down. Nothing is divided, so zeros are no special case. f32
 * is multiplied in f64, integers modulo 2^N. An empty product is 1. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/index/lines.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  const int64_t dim = sig->attr->prod.dim;
  GP_TRY(gp_infer_dim(&sig->in[0]->shape, dim));
  GP_TRY(gp_infer_reduced(&sig->in[0]->shape, INT64_C(1) << dim, sig->attr->prod.keep, &shape));
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

static gp_status vjp(gp_vjp *v) {
  gp_ref dy;
  gp_attrs attrs = {.prod_dx = {v->attr->prod.dim}};
  if (v->dout[0] == GP_NONE) return GP_OK;
  gp_shape shape = gp_vjp_meta(v, v->in[0])->shape;
  shape.dim[v->attr->prod.dim] = 1;
  GP_TRY(gp_vjp_reshape(v, v->dout[0], &shape, &dy));
  return gp_build(v->builder, GP_OP_prod_dx, &attrs, (gp_ref[]){dy, v->in[0]}, 2, &v->din[0]);
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut(const gp_call *call) {
  return gp_cut_lines(call->in[0].meta, call->attr->prod.dim);
}

/* A: the type of the product. */
#define PROD(name, T, A)                                                                           \
  static gp_status name(const gp_call *call, const gp_axis *axis, gp_lines lines) {                \
    const T *x = (const T *)call->in[0].data + gp_lines_offset(axis, &lines);                      \
    T *y = (T *)call->out[0].data + lines.outer * axis->inner + lines.column;                      \
    A product[GP_LINES];                                                                           \
    for (int64_t j = 0; j < lines.n; j++) product[j] = 1;                                          \
    for (int64_t i = 0; i < axis->size; i++)                                                       \
      for (int64_t j = 0; j < lines.n; j++) product[j] *= (A)x[i * axis->inner + j];               \
    for (int64_t j = 0; j < lines.n; j++) y[j] = (T)product[j];                                    \
    return GP_OK;                                                                                  \
  }

PROD(prod_f32, float, double)
PROD(prod_f64, double, double)
PROD(prod_i64, uint64_t, uint64_t)
PROD(prod_i32, uint32_t, uint32_t)

static gp_status run(const gp_call *call, gp_span span) {
  static const gp_lines_kernels by = {prod_f32, prod_f64, prod_i64, prod_i32};
  return gp_lines_run_by(call, gp_axis_of(&call->in[0].meta->shape, call->attr->prod.dim), span,
                         &by);
}

const gp_op_def gp_def_prod = {GP_OP_ROW(prod), .infer = infer, .vjp = vjp, .cost = cost,
                               .cpu = {.cut = cut, .run = run}};

/* ---- gradient ------------------------------------------------------------------------------- */

static gp_status infer_dx(gp_sig *sig) {
  gp_shape shape = sig->in[1]->shape;
  GP_TRY(gp_infer_dim(&shape, sig->attr->prod_dx.dim));
  shape.dim[sig->attr->prod_dx.dim] = 1;
  GP_TRY(gp_operand_shape(sig, GP_OP_prod_dx, 0, &shape, 1));
  return gp_infer_like(sig, 1);
}

static gp_cost cost_dx(const gp_sig *sig) { return gp_cost_elements(sig, 3); }

static gp_cut cut_dx(const gp_call *call) {
  return gp_cut_lines(call->out[0].meta, call->attr->prod_dx.dim);
}

#define PROD_DX(name, T)                                                                           \
  static gp_status name(const gp_call *call, const gp_axis *axis, gp_lines lines) {                \
    const int64_t first = gp_lines_offset(axis, &lines), inner = axis->inner;                      \
    const T *dy = (const T *)call->in[0].data + lines.outer * inner + lines.column;                \
    const T *x = (const T *)call->in[1].data + first;                                              \
    T *dx = (T *)call->out[0].data + first, others[GP_LINES];                                      \
    for (int64_t j = 0; j < lines.n; j++) others[j] = dy[j];                                       \
    for (int64_t i = 0; i < axis->size; i++)                                                       \
      for (int64_t j = 0; j < lines.n; j++) {                                                      \
        dx[i * inner + j] = others[j];                                                             \
        others[j] *= x[i * inner + j];                                                             \
      }                                                                                            \
    for (int64_t j = 0; j < lines.n; j++) others[j] = 1;                                           \
    for (int64_t i = axis->size; i-- > 0;)                                                         \
      for (int64_t j = 0; j < lines.n; j++) {                                                      \
        dx[i * inner + j] *= others[j];                                                            \
        others[j] *= x[i * inner + j];                                                             \
      }                                                                                            \
    return GP_OK;                                                                                  \
  }

PROD_DX(prod_dx_f32, float)
PROD_DX(prod_dx_f64, double)

static gp_status run_dx(const gp_call *call, gp_span span) {
  static const gp_lines_kernels by = {.f32 = prod_dx_f32, .f64 = prod_dx_f64};
  return gp_lines_run_by(call, gp_axis_of(&call->out[0].meta->shape, call->attr->prod_dx.dim), span,
                         &by);
}

const gp_op_def gp_def_prod_dx = {GP_OP_ROW(prod_dx), .infer = infer_dx, .cost = cost_dx,
                                  .cpu = {.cut = cut_dx, .run = run_dx}};
