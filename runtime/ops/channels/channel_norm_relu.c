/* ops/channels/channel_norm_relu.c - the norm of channels with a ReLU behind it, or with a sum and
 * a ReLU, and the ways back.
 *
 * A graph has these ops where graph/gates.c found such neighbours; no script calls them. An element
 * goes through all of them while it is in a register, by the operations of the single ops and so
 * with their bits. Behind a norm alone the gradient computes the sign of y again from x, which it
 * reads anyway. Behind a sum it reads y, and writes what passes the ReLU down: the summand's
 * gradient is the same. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/channels/norm.h"

/* ---- forward --------------------------------------------------------------------------------- */

static gp_status infer_relu(gp_sig *sig) {
  GP_TRY(gp_channels_check(sig, GP_OP_channel_norm_relu, 0, 1));
  GP_TRY(gp_norm_check_columns(sig, GP_OP_channel_norm_relu, 0, 3));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

static gp_status infer_add_relu(gp_sig *sig) {
  GP_TRY(gp_channels_check(sig, GP_OP_channel_norm_add_relu, 0, 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_channel_norm_add_relu, 3, &sig->in[0]->shape, 0));
  GP_TRY(gp_norm_check_columns(sig, GP_OP_channel_norm_add_relu, 0, 4));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

static gp_cost cost_relu(const gp_sig *sig) {
  return gp_cost_of(sig, 4 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cost cost_add_relu(const gp_sig *sig) {
  return gp_cost_of(sig, 5 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut(const gp_call *call) { return gp_norm_cut(call, 0); }

static gp_status run_relu(const gp_call *call, gp_span span) {
  const gp_norm_form form = {
      .eps = call->attr->channel_norm_relu.eps, .relu = true, .mean = 1, .weight = 3, .bias = 4};
  return gp_norm_run(call, span, &form);
}

static gp_status run_add_relu(const gp_call *call, gp_span span) {
  const gp_norm_form form = {.eps = call->attr->channel_norm_add_relu.eps,
                             .relu = true,
                             .mean = 1,
                             .addend = 3,
                             .weight = 4,
                             .bias = 5};
  return gp_norm_run(call, span, &form);
}

const gp_op_def gp_def_channel_norm_relu = {GP_OP_ROW(channel_norm_relu), .infer = infer_relu,
                                            .cost = cost_relu,
                                            .cpu = {.cut = cut, .run = run_relu}};

const gp_op_def gp_def_channel_norm_add_relu = {GP_OP_ROW(channel_norm_add_relu),
                                                .infer = infer_add_relu, .cost = cost_add_relu,
                                                .cpu = {.cut = cut, .run = run_add_relu}};

/* ---- gradients behind a norm alone ----------------------------------------------------------- */

static gp_status infer_sums(gp_sig *sig) {
  GP_TRY(gp_norm_check_gradient(sig, GP_OP_channel_norm_relu_sums, 1));
  GP_TRY(gp_norm_check_columns(sig, GP_OP_channel_norm_relu_sums, 1, 4));
  const gp_shape parts = gp_norm_parts_shape(sig, 1);
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &parts);
}

static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(gp_norm_check_gradient(sig, GP_OP_channel_norm_relu_dx, 1));
  const gp_shape sums = {3, {2, sig->in[2]->shape.dim[0], sig->in[1]->shape.dim[1]}};
  GP_TRY(gp_operand_shape(sig, GP_OP_channel_norm_relu_dx, 4, &sums, 1));
  GP_TRY(gp_norm_check_columns(sig, GP_OP_channel_norm_relu_dx, 1, 5));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

static gp_cost cost_sums(const gp_sig *sig) {
  return gp_cost_of(sig, 8 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cost cost_dx(const gp_sig *sig) {
  return gp_cost_of(sig, 9 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut_back(const gp_call *call) { return gp_norm_cut(call, 1); }

static gp_status run_sums(const gp_call *call, gp_span span) {
  const gp_norm_form form = {.eps = call->attr->channel_norm_relu_sums.eps,
                             .relu = true,
                             .image = 1,
                             .mean = 2,
                             .weight = 4,
                             .bias = 5};
  return gp_norm_run_sums(call, span, &form);
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  const gp_attr_channel_norm_relu_dx *a = &call->attr->channel_norm_relu_dx;
  const gp_norm_form form = {.eps = a->eps,
                             .given = a->given,
                             .relu = true,
                             .image = 1,
                             .mean = 2,
                             .sums = 4,
                             .weight = 5,
                             .bias = 6};
  return gp_norm_run_dx(call, span, &form);
}

const gp_op_def gp_def_channel_norm_relu_sums = {GP_OP_ROW(channel_norm_relu_sums),
                                                 .infer = infer_sums, .cost = cost_sums,
                                                 .cpu = {.cut = cut_back, .run = run_sums}};

const gp_op_def gp_def_channel_norm_relu_dx = {GP_OP_ROW(channel_norm_relu_dx), .infer = infer_dx,
                                               .cost = cost_dx,
                                               .cpu = {.cut = cut_back, .run = run_dx}};

/* ---- sums of gradients that pass a gate ------------------------------------------------------ */

static gp_status infer_gate(gp_sig *sig) {
  const gp_op op = GP_OP_channel_norm_gate_sums;
  const gp_shape *image = &sig->in[0]->shape;
  GP_TRY(gp_norm_check_gradient(sig, op, 2));
  GP_TRY(gp_operand_shape(sig, op, 1, image, 0));
  if (sig->n_in > 5) GP_TRY(gp_operand_shape(sig, op, 5, image, 0));
  const gp_shape parts = gp_norm_parts_shape(sig, 2);
  GP_TRY(gp_infer_channels_last(sig, sig->in[0]->dtype, image));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &parts);
}

static gp_cost cost_gate(const gp_sig *sig) {
  return gp_cost_of(sig, 7 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut_gate(const gp_call *call) { return gp_norm_cut(call, 2); }

static gp_status run_gate(const gp_call *call, gp_span span) {
  const gp_norm_form form = {
      .eps = call->attr->channel_norm_gate_sums.eps, .image = 2, .mean = 3, .gate = 1, .second = 5};
  return gp_norm_run_sums(call, span, &form);
}

const gp_op_def gp_def_channel_norm_gate_sums = {GP_OP_ROW(channel_norm_gate_sums),
                                                 .infer = infer_gate, .cost = cost_gate,
                                                 .cpu = {.cut = cut_gate, .run = run_gate}};
