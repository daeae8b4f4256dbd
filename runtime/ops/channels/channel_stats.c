/* ops/channels/channel_stats.c - means and variances of the channels of an image.
 *
 * There are two ops: one makes statistics of parts, runs of neighbouring positions that threads
 * share out; the other merges those of all parts, in double and in the order of the parts. The mean
 * of a part is kept as a distance from the element that it is counted from: their sum would be
 * rounded like the large number that it may be. Source: Chan, Golub, LeVeque, "Algorithms for
 * computing the sample variance" (1983). */
#include "base/prefetch.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/channels/infer.h"

enum { UNITS = 16 }; /* statistics of one piece of work: a cache line of f32 in every part */

#define GP_REAL_SOURCE "ops/channels/channel_stats.inc"
#include "ops/math/real.h"

/* ---- of parts -------------------------------------------------------------------------------- */

static gp_channels channels_of(const gp_shape *image, bool samples) {
  return gp_channels_of(image, samples ? image->dim[0] : 1, image->dim[1]);
}

gp_shape gp_channels_parts_shape(const gp_channels *c, int64_t lists) {
  return (gp_shape){3, {lists, c->sets * c->parts, c->channels}};
}

static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_channels_check_image(sig, GP_OP_channel_stats, 0));
  const gp_channels c = channels_of(&sig->in[0]->shape, sig->attr->channel_stats.samples);
  const gp_shape parts = gp_channels_parts_shape(&c, 3);
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &parts);
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 4 * (double)gp_meta_numel(sig->in[0]));
}

static gp_channels of_call(const gp_call *call) {
  return channels_of(&call->in[0].meta->shape, call->attr->channel_stats.samples);
}

static gp_cut cut(const gp_call *call) {
  const gp_channels c = of_call(call);
  return gp_channels_cut(&c);
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_channels c = of_call(call);
  GP_BY_REAL(call->in[0].meta->dtype, part_stats)(call, span, &c);
  return GP_OK;
}

const gp_op_def gp_def_channel_stats = {GP_OP_ROW(channel_stats), .infer = infer, .cost = cost,
                                        .cpu = {.cut = cut, .run = run}};

/* ---- of sets --------------------------------------------------------------------------------- */

/* Both attributes must be sizes that an image can have; the channels come from the parts. */
static gp_status infer_join(gp_sig *sig) {
  const gp_attr_channel_stats_join *a = &sig->attr->channel_stats_join;
  const gp_shape *parts = &sig->in[0]->shape;
  int64_t count;
  if (a->sets < 0 || a->rows < 0 ||
      __builtin_mul_overflow(a->sets, gp_channel_parts(a->rows), &count))
    return gp_fail(GP_ERANGE, "%lld sets of %lld rows, expected none or more, below 2^63 in all",
                   (long long)a->sets, (long long)a->rows);
  const gp_shape expected = {3, {3, count, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, GP_OP_channel_stats_join, 0, &expected, -1));
  const int64_t channels = parts->dim[2], groups = a->groups ? a->groups : channels;
  if (groups < 0 || (groups > 0 && channels % groups))
    return gp_fail(GP_EINVAL, "%lld channels in %lld groups, expected as many in each",
                   (long long)channels, (long long)groups);
  const gp_shape out = {2, {a->sets, groups}};
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &out));
  return gp_infer_out(sig, sig->in[0]->dtype, &out);
}

static gp_cost cost_join(const gp_sig *sig) {
  return gp_cost_of(sig, 3 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut_join(const gp_call *call) {
  return (gp_cut){.units = gp_meta_numel(call->out[0].meta), .grain = UNITS};
}

static gp_status run_join(const gp_call *call, gp_span span) {
  const gp_attr_channel_stats_join *a = &call->attr->channel_stats_join;
  gp_channels c = {.sets = a->sets, .rows = a->rows, .parts = gp_channel_parts(a->rows)};
  c.channels = call->in[0].meta->shape.dim[2], c.groups = call->out[0].meta->shape.dim[1];
  c.each = c.channels / c.groups; /* a span has units, so there are groups */
  GP_BY_REAL(call->in[0].meta->dtype, join_stats)(call, span, &c);
  return GP_OK;
}

const gp_op_def gp_def_channel_stats_join = {GP_OP_ROW(channel_stats_join), .infer = infer_join,
                                             .cost = cost_join,
                                             .cpu = {.cut = cut_join, .run = run_join}};
