/* ops/channels/channel_norm.c - y = (x - mean) / sqrt(variance + eps) w + b over the channels of an
 * image, and its gradients: what batch, instance and group norm are made of.
 *
 * The statistics are operands, so that running ones fit too. If they were computed from the input,
 * channel_norm_dx gives the whole gradient of the input, and none flows into them. The backward
 * pass makes its sums by parts (channel_norm_sums): the input's gradient reads the totals of all
 * parts, and the gradients of weight and bias are sums of them. Where the statistics are those of
 * the inputs of several replicas, the input's gradient reads the totals of all replicas, and the
 * gradients of weight and bias those of the own one. */
#include "base/loop.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/channels/norm.h"
#include "ops/gradient.h"

/* Channels whose statistics are held at once: as many as keep rows whole and the statistics in the
 * cache (COLUMNS); and as many as registers hold (FEW). */
enum { COLUMNS = 1024, FEW = 64 };

/* Loops are compiled for each form, whose conditions then cost nothing. */
#define INLINE inline __attribute__((always_inline))

#define GP_REAL_SOURCE "ops/channels/channel_norm.inc"
#include "ops/math/real.h"

/* ---- checks ---------------------------------------------------------------------------------- */

gp_status gp_channels_check(const gp_sig *sig, gp_op op, int image, int mean) {
  const gp_shape *x = &sig->in[image]->shape, *m = &sig->in[mean]->shape;
  GP_TRY(gp_channels_check_image(sig, op, image));
  const gp_shape stats = {2, {m->rank == 2 && m->dim[0] == x->dim[0] ? m->dim[0] : 1, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, op, mean, &stats, image));
  GP_TRY(gp_operand_shape(sig, op, mean + 1, m, mean));
  if (m->dim[1] == 0 ? x->dim[1] > 0 : x->dim[1] % m->dim[1])
    return gp_fail(GP_ESHAPE, "%lld channels in %lld groups, expected as many in each",
                   (long long)x->dim[1], (long long)m->dim[1]);
  return GP_OK;
}

gp_channels gp_channels_of_call(const gp_call *call, int image, int mean) {
  const gp_shape *m = &call->in[mean].meta->shape;
  return gp_channels_of(&call->in[image].meta->shape, m->dim[0], m->dim[1]);
}

gp_status gp_norm_check_columns(const gp_sig *sig, gp_op op, int image, int i) {
  const gp_shape column = {1, {sig->in[image]->shape.dim[1]}};
  for (; i < sig->n_in; i++) GP_TRY(gp_operand_shape(sig, op, i, &column, image));
  return GP_OK;
}

/* ---- kernels, for all ops of the family ------------------------------------------------------ */

static gp_channels channels_of(const gp_call *call, const gp_norm_form *form) {
  return gp_channels_of_call(call, form->image, form->mean);
}

gp_cut gp_norm_cut(const gp_call *call, int image) {
  /* the statistics follow the image in every op */
  const gp_channels c = gp_channels_of_call(call, image, image + 1);
  return gp_channels_cut(&c);
}

gp_status gp_norm_run(const gp_call *call, gp_span span, const gp_norm_form *form) {
  const gp_channels c = channels_of(call, form);
  GP_BY_REAL(call->in[0].meta->dtype, normalise)(call, span, &c, form);
  return GP_OK;
}

gp_status gp_norm_run_sums(const gp_call *call, gp_span span, const gp_norm_form *form) {
  const gp_channels c = channels_of(call, form);
  GP_BY_REAL(call->in[0].meta->dtype, part_sums)(call, span, &c, form);
  return GP_OK;
}

gp_status gp_norm_run_dx(const gp_call *call, gp_span span, const gp_norm_form *form) {
  const gp_channels c = channels_of(call, form);
  GP_BY_REAL(call->in[0].meta->dtype, input_gradient)(call, span, &c, form);
  return GP_OK;
}

static gp_cut cut(const gp_call *call) { return gp_norm_cut(call, 0); }
static gp_cut cut_back(const gp_call *call) { return gp_norm_cut(call, 1); }

/* ---- forward --------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_channels_check(sig, GP_OP_channel_norm, 0, 1));
  GP_TRY(gp_norm_check_columns(sig, GP_OP_channel_norm, 0, 3));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 3 * (double)gp_meta_numel(sig->in[0]));
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_norm_form form = {
      .eps = call->attr->channel_norm.eps, .mean = 1, .weight = 3, .bias = 4};
  return gp_norm_run(call, span, &form);
}

/* Add up the sums of all parts: [2, S P, C] -> [2, S, C]. */
static gp_status sum_parts(gp_vjp *v, gp_ref *sums) {
  const gp_attr_channel_norm *a = &v->attr->channel_norm;
  const gp_shape mean = gp_vjp_meta(v, v->in[1])->shape;
  const gp_channels c = gp_channels_of(&gp_vjp_meta(v, v->in[0])->shape, mean.dim[0], mean.dim[1]);
  const gp_shape apart = {4, {2, c.sets, c.parts, c.channels}};
  const gp_attrs attrs = {.channel_norm_sums = {.eps = a->eps}}, sum = {.sum = {.dims = 1 << 2}};
  const gp_ref in[4] = {v->dout[0], v->in[0], v->in[1], v->in[2]};
  gp_ref parts;
  GP_TRY(gp_build(v->builder, GP_OP_channel_norm_sums, &attrs, in, 4, &parts));
  GP_TRY(gp_vjp_reshape(v, parts, &apart, &parts));
  return gp_build(v->builder, GP_OP_sum, &sum, &parts, 1, sums);
}

/* Add up list `which` of the sums over all sets: [C]. */
static gp_status sum_sets(gp_vjp *v, gp_ref sums, int which, gp_ref *out) {
  const gp_attrs one = {.narrow = {.dim = 0, .start = which, .length = 1}};
  const gp_shape from = gp_vjp_meta(v, sums)->shape, rows = {2, {from.dim[1], from.dim[2]}};
  gp_ref list;
  GP_TRY(gp_build(v->builder, GP_OP_narrow, &one, &sums, 1, &list));
  GP_TRY(gp_vjp_reshape(v, list, &rows, &list));
  return gp_vjp_op1(v, GP_OP_sum_rows_dw, list, out);
}

/* Join the totals of all replicas, as if each were the sum over the rows of this one. */
static gp_status join_replicas(gp_vjp *v, gp_ref *sums) {
  const int64_t replicas = v->attr->channel_norm.replicas;
  const int64_t rows = gp_vjp_meta(v, v->in[0])->shape.dim[0];
  const gp_attrs gather = {.replica_gather = {.replicas = replicas, .rows = rows}};
  const gp_attrs join = {.replica_sums = {.rows = rows}};
  gp_ref in[2];
  if (replicas < 2 || v->attr->channel_norm.given) return GP_OK;
  GP_TRY(gp_build(v->builder, GP_OP_replica_gather, &gather, sums, 1, &in[0]));
  in[1] = in[0] + 1;
  return gp_build(v->builder, GP_OP_replica_sums, &join, in, 2, sums);
}

static gp_status vjp(gp_vjp *v) {
  const gp_attr_channel_norm *a = &v->attr->channel_norm;
  const gp_attrs dx = {.channel_norm_dx = {.eps = a->eps, .given = a->given}};
  const bool weight = v->n_in > 3 && v->need[3], bias = v->n_in > 4 && v->need[4];
  gp_ref sums, joined;
  if (v->dout[0] == GP_NONE || !(v->need[0] || weight || bias)) return GP_OK;
  GP_TRY(sum_parts(v, &sums));
  joined = sums;
  if (v->need[0]) GP_TRY(join_replicas(v, &joined));
  const gp_ref in[6] = {v->dout[0], v->in[0], v->in[1],
                        v->in[2],   joined,   v->n_in > 3 ? v->in[3] : GP_NONE};
  if (v->need[0])
    GP_TRY(gp_build(v->builder, GP_OP_channel_norm_dx, &dx, in, v->n_in > 3 ? 6 : 5, &v->din[0]));
  if (weight) GP_TRY(sum_sets(v, sums, 1, &v->din[3]));
  return bias ? sum_sets(v, sums, 0, &v->din[4]) : GP_OK;
}

const gp_op_def gp_def_channel_norm = {GP_OP_ROW(channel_norm), .infer = infer, .vjp = vjp,
                                       .cost = cost, .cpu = {.cut = cut, .run = run}};

/* ---- sums of the backward pass --------------------------------------------------------------- */

gp_status gp_norm_check_gradient(const gp_sig *sig, gp_op op, int image) {
  GP_TRY(gp_channels_check_image(sig, op, 0));
  GP_TRY(gp_operand_shape(sig, op, image, &sig->in[0]->shape, 0));
  return gp_channels_check(sig, op, image, image + 1);
}

gp_shape gp_norm_parts_shape(const gp_sig *sig, int image) {
  const gp_shape *mean = &sig->in[image + 1]->shape;
  const gp_channels c = gp_channels_of(&sig->in[image]->shape, mean->dim[0], mean->dim[1]);
  return gp_channels_parts_shape(&c, 2);
}

static gp_status infer_sums(gp_sig *sig) {
  GP_TRY(gp_norm_check_gradient(sig, GP_OP_channel_norm_sums, 1));
  const gp_shape parts = gp_norm_parts_shape(sig, 1);
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &parts);
}

static gp_cost cost_sums(const gp_sig *sig) {
  return gp_cost_of(sig, 5 * (double)gp_meta_numel(sig->in[0]));
}

static gp_status run_sums(const gp_call *call, gp_span span) {
  const gp_norm_form form = {.eps = call->attr->channel_norm_sums.eps, .image = 1, .mean = 2};
  return gp_norm_run_sums(call, span, &form);
}

const gp_op_def gp_def_channel_norm_sums = {GP_OP_ROW(channel_norm_sums), .infer = infer_sums,
                                            .cost = cost_sums,
                                            .cpu = {.cut = cut_back, .run = run_sums}};

/* ---- gradient of the input ------------------------------------------------------------------- */

static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(gp_norm_check_gradient(sig, GP_OP_channel_norm_dx, 1));
  const gp_shape sums = {3, {2, sig->in[2]->shape.dim[0], sig->in[1]->shape.dim[1]}};
  GP_TRY(gp_operand_shape(sig, GP_OP_channel_norm_dx, 4, &sums, 1));
  GP_TRY(gp_norm_check_columns(sig, GP_OP_channel_norm_dx, 1, 5));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

static gp_cost cost_dx(const gp_sig *sig) {
  return gp_cost_of(sig, 6 * (double)gp_meta_numel(sig->in[0]));
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  const gp_attr_channel_norm_dx *a = &call->attr->channel_norm_dx;
  const gp_norm_form form = {
      .eps = a->eps, .given = a->given, .image = 1, .mean = 2, .sums = 4, .weight = 5};
  return gp_norm_run_dx(call, span, &form);
}

const gp_op_def gp_def_channel_norm_dx = {GP_OP_ROW(channel_norm_dx), .infer = infer_dx,
                                          .cost = cost_dx, .cpu = {.cut = cut_back, .run = run_dx}};
