/* ops/convolution/conv2d_dw.c - the gradient of a convolution's weight, summed over all rows and
 * positions.
 *
 * dw is cut by its columns, which are taps times input channels. A piece walks all positions, block
 * by block in one order, and adds dy^T times what the block meets of the image to sums of its own.
 * If channels fill vectors of f32 it reads the image in place, else it gathers it. At the end the
 * piece adds its sums to dw, once, since dw lies in another order. */
#include <string.h>

#include "device/cpu/processor.h"
#include "device/cpu/scattered.h"
#include "ops/dense/dense.h"
#include "ops/convolution/walk/conv_walk.h"
#include "ops/convolution/infer_conv.h"

enum {
  BLOCK = 512,        /* positions: what they meet is a megabyte, and sums are read once for them */
  DIRECT_BLOCK = 512, /* of those that are read where they lie, at most */
  STRIP_BLOCK = 160,  /* of those that are copied to strips: 40 KiB, in the first-level cache */
  PAGE = 1024,        /* channels of 4 KiB */
  CHANNELS = 512,     /* of a piece, at most */
  COLUMNS = 256,      /* at least, where there are as many: fewer make slow products */
  OUTPUTS = 64,       /* of a piece, at least */
  TAP_PIECES = 4,     /* at least, of kernels with as many columns or outputs */
  MOST_TAPS = 9,      /* of a piece with all of them: its sums are a megabyte */
  PIECES = 2          /* in all, where there are as many outputs: teams are to be busy */
};

/* dy [N, O, OH, OW], x [N, I, H, W] -> dw [O, I / groups, kernel]. */
static gp_status infer(gp_sig *sig) {
  static const gp_shape image = {4, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  const gp_attr_conv2d_dw *a = &sig->attr->conv2d_dw;
  const gp_conv_attrs attrs = GP_CONV_ATTRS(*a);
  GP_TRY(gp_conv_check(attrs));
  GP_TRY(gp_image_list(&a->kernel, "kernel", 2, 1));
  if (a->kernel.count == 0) return gp_fail(GP_EINVAL, "kernel has 0 numbers, expected 2");
  for (int i = 0; i < 2; i++) GP_TRY(gp_operand_shape(sig, GP_OP_conv2d_dw, i, &image, -1));
  const gp_shape *dy = &sig->in[0]->shape, *x = &sig->in[1]->shape;
  gp_shape want = {4, {x->dim[0], GP_ANY_DIM}};
  for (int d = 0; d < 2; d++)
    GP_TRY(gp_conv_places(attrs, d, x->dim[2 + d], a->kernel.at[d], &want.dim[2 + d]));
  GP_TRY(gp_operand_shape(sig, GP_OP_conv2d_dw, 0, &want, 1));
  if (dy->dim[1] % a->groups != 0 || x->dim[1] % a->groups != 0)
    return gp_fail(GP_ESHAPE, "%lld and %lld channels in %lld groups, expected equal groups",
                   (long long)dy->dim[1], (long long)x->dim[1], (long long)a->groups);
  const gp_shape out = {4, {dy->dim[1], x->dim[1] / a->groups, a->kernel.at[0], a->kernel.at[1]}};
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &out);
}

static gp_cost cost(const gp_sig *sig) {
  return gp_conv_cost(sig, &sig->in[0]->shape, &sig->out[0].shape);
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* How a group's columns are cut: so many taps, or a part of the channels of one tap. */
typedef struct shares {
  gp_conv c;
  int64_t taps, channels, outputs;                /* of a group */
  int64_t tap_share, channel_share, output_share; /* of a piece */
  int64_t tap_pieces, channel_pieces, output_pieces;
  bool direct; /* the image is read where it lies */
} shares;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* Outputs of a piece that takes no more than so many operations: Ctrl-C waits for it. */
static int64_t most_outputs(const shares *s) {
  const gp_conv_lattice lattice = gp_conv_map_lattice(&s->c);
  const double columns = (double)(s->tap_share * s->channel_share);
  const double each = 2 * columns * (double)gp_conv_positions(&s->c, &lattice);
  const double most = each > 0 ? GP_MOST_OF_A_PIECE / each : (double)s->outputs;
  return most < (double)s->outputs ? (int64_t)most / OUTPUTS * OUTPUTS : s->outputs;
}

/* All taps where there are outputs enough to cut: dw has the taps of a channel side by side, and a
 * piece with a part of them would write a part of every cache line. */
static int64_t tap_share(const shares *s) {
  const int64_t enough = ceil_div(COLUMNS, s->channel_share), even = ceil_div(s->taps, TAP_PIECES);
  if (s->channels > CHANNELS) return 1;
  if (s->direct && s->outputs >= TAP_PIECES * OUTPUTS && s->taps <= MOST_TAPS) return s->taps;
  return at_most(s->taps, enough > even ? enough : even);
}

static shares shares_of(const gp_call *call) {
  shares s = {.c = gp_conv_dw(call)};
  s.taps = s.c.h.kernel * s.c.w.kernel;
  s.channels = s.c.image_c / s.c.groups, s.outputs = s.c.map_c / s.c.groups;
  s.channel_share = s.channels < CHANNELS ? s.channels : CHANNELS;
  if (s.channel_share < 1) s.channel_share = 1;
  s.direct = call->out[0].meta->dtype == GP_F32 && gp_scattered_fits(s.channels) &&
             gp_scattered_fits(s.channel_share); /* the last piece of channels may have fewer */
  s.tap_share = tap_share(&s);
  s.tap_pieces = ceil_div(s.taps, s.tap_share);
  s.channel_pieces = ceil_div(s.channels, s.channel_share);
  const int64_t pieces = s.c.groups * s.tap_pieces * s.channel_pieces;
  const int64_t least = s.taps > 1 && s.tap_share == s.taps ? TAP_PIECES : PIECES;
  const int64_t wanted = pieces > 0 ? ceil_div(least, pieces) : 1;
  s.output_share = ceil_div(ceil_div(s.outputs, wanted), OUTPUTS) * OUTPUTS;
  const int64_t most = most_outputs(&s);
  if (s.output_share > most) s.output_share = most > OUTPUTS ? most : OUTPUTS;
  if (s.output_share > s.outputs) s.output_share = s.outputs;
  if (s.output_share < 1) s.output_share = 1;
  s.output_pieces = ceil_div(s.outputs, s.output_share);
  return s;
}

static gp_cut cut(const gp_call *call) {
  const shares s = shares_of(call);
  return (gp_cut){s.c.groups * s.tap_pieces * s.channel_pieces * s.output_pieces, 1};
}

/* Do the rows of the image or those of the map lie whole pages apart? */
static bool is_paged(const shares *s) { return s->c.image_c % PAGE == 0 || s->c.map_c % PAGE == 0; }

/* Strips pay on Intel, whose second-level cache answers for few such rows at a time, and long
 * blocks do, which load and store the sums less often. They were not measured on others. */
static bool has_strips(const shares *s) {
  return s->direct && gp_processor_is_intel() && is_paged(s);
}

/* The blocks' sizes change no bit: each sum goes on where the block before ended. */
static int64_t direct_block(const shares *s) {
  if (!gp_processor_is_intel()) return DIRECT_BLOCK / 2;
  return has_strips(s) ? STRIP_BLOCK : DIRECT_BLOCK;
}

/* Behind the sums lies what a block gathers, or a strip. */
static size_t scratch(const gp_call *call) {
  const shares s = shares_of(call);
  const int64_t columns = s.tap_share * s.channel_share;
  const int64_t strip = has_strips(&s) ? STRIP_BLOCK * GP_SCATTERED_PANEL : 0;
  const int64_t behind = s.direct ? strip : BLOCK * columns;
  return (size_t)(behind + s.output_share * columns) * gp_dtype_size(call->out[0].meta->dtype);
}

/* One piece: its sums are [outputs, taps, channels] of scratch. */
typedef struct piece {
  const gp_call *call;
  const shares *s;
  gp_conv_lattice lattice;
  gp_conv_part part;
  int64_t group, output, outputs; /* the first one among all, how many */
  char *sums, *columns;
} piece;

static gp_status add_gathered(const piece *p, int64_t first, int64_t last) {
  const gp_arg *dy = &p->call->in[0], *x = &p->call->in[1];
  const int64_t n = p->part.taps * p->part.channels, depth = p->s->c.map_c;
  const bool plain = gp_conv_is_plain(&p->lattice);
  gp_conv_part part = p->part;
  part.first = first, part.last = last;
  if (!plain) gp_conv_gather(&p->lattice, part, x->data, p->columns);
  const void *b =
      plain ? gp_arg_at(x, first * part.depth + part.channel) : (const void *)p->columns;
  gp_gemm g = {.transpose_a = true,
               .m = p->outputs,
               .n = n,
               .k = last - first,
               .lda = depth,
               .ldb = plain ? part.depth : n,
               .ldc = n,
               .alpha = 1,
               .beta = first > 0 ? 1 : 0};
  return gp_multiply(dy->meta->dtype, g, gp_arg_at(dy, first * depth + p->output), b, p->sums);
}

/* The places of a tap: only positions that meet it count, in their order. */
static int64_t find_places(const piece *p, const gp_conv_part *part, const float **left,
                           const float **right) {
  const gp_arg *dy = &p->call->in[0];
  int64_t places = 0;
  gp_conv_point(&p->lattice, part, p->call->in[1].data, NULL, right);
  for (int64_t r = part->first; r < part->last; r++) {
    left[places] = (const float *)dy->data + r * p->s->c.map_c;
    right[places] = right[r - part->first];
    places += right[places] != NULL;
  }
  gp_scattered_look_ahead(left, places);
  gp_scattered_look_ahead(right, places);
  return places;
}

/* Reads both where they lie. */
static void add_direct(const piece *p, int64_t first, int64_t last) {
  enum { MOST = DIRECT_BLOCK + GP_SCATTERED_AHEAD };
  const float *left[MOST], *right[MOST];
  float *strip[STRIP_BLOCK + GP_SCATTERED_AHEAD];
  gp_scattered_outer sums = {.left = left,
                             .right = right,
                             .left_at = p->output,
                             .rows = p->outputs,
                             .columns = p->part.channels,
                             .ld = p->part.taps * p->part.channels,
                             .add = first > 0};
  gp_conv_part part = p->part;
  part.first = first, part.last = last;
  if (has_strips(p->s)) {
    for (int64_t r = 0; r < STRIP_BLOCK + GP_SCATTERED_AHEAD; r++)
      strip[r] = (float *)(void *)p->columns + r % STRIP_BLOCK * GP_SCATTERED_PANEL;
    sums.strip = strip;
  }
  for (int64_t t = 0; t < p->part.taps; t++, part.tap++) {
    sums.places = find_places(p, &part, left, right);
    gp_scattered_outer_multiply(&sums, (float *)(void *)p->sums + t * p->part.channels);
  }
}

/* Add the sums, whose taps are outermost, to dw, whose channels are. Where nothing accumulates they
 * are added to 0: the bits are those of a gradient that was zeroed. */
#define ADD_SUMS(name, T)                                                                          \
  static void name(const piece *p) {                                                               \
    const int64_t all = p->s->taps, taps = p->part.taps, channels = p->part.channels;              \
    const int64_t channel = p->part.channel - p->group * p->s->channels;                           \
    for (int64_t o = 0; o < p->outputs; o++) {                                                     \
      const T *sums = (const T *)(const void *)p->sums + o * taps * channels;                      \
      T *to = (T *)p->call->out[0].data + p->part.tap +                                            \
              ((p->output + o) * p->s->channels + channel) * all;                                  \
      for (int64_t c = 0; all == 1 && c < channels; c++) /* in vectors */                          \
        to[c] = (p->call->accumulate ? to[c] : 0) + sums[c];                                       \
      for (int64_t c = 0; all > 1 && c < channels; c++, to += all)                                 \
        for (int64_t t = 0; t < taps; t++)                                                         \
          to[t] = (p->call->accumulate ? to[t] : 0) + sums[t * channels + c];                      \
    }                                                                                              \
  }
ADD_SUMS(add_sums_f32, float)
ADD_SUMS(add_sums_f64, double)

static gp_status run_piece(const gp_call *call, const shares *s, int64_t unit, void *memory) {
  const size_t item = gp_dtype_size(call->out[0].meta->dtype);
  const int64_t output = unit % s->output_pieces * s->output_share;
  unit /= s->output_pieces;
  const int64_t tap = unit / s->channel_pieces % s->tap_pieces * s->tap_share;
  const int64_t channel = unit % s->channel_pieces * s->channel_share;
  piece p = {.call = call, .s = s, .lattice = gp_conv_map_lattice(&s->c)};
  p.group = unit / s->channel_pieces / s->tap_pieces;
  p.output = p.group * s->outputs + output;
  p.outputs = at_most(s->outputs - output, s->output_share);
  p.part = (gp_conv_part){.tap = tap,
                          .taps = at_most(s->taps - tap, s->tap_share),
                          .channel = p.group * s->channels + channel,
                          .channels = at_most(s->channels - channel, s->channel_share),
                          .depth = s->c.image_c,
                          .item = item};
  const int64_t columns = p.part.taps * p.part.channels;
  const int64_t positions = gp_conv_positions(&s->c, &p.lattice);
  const int64_t block = s->direct                      ? direct_block(s)
                        : gp_conv_is_plain(&p.lattice) ? positions
                                                       : BLOCK;
  p.sums = memory, p.columns = p.sums + (size_t)(p.outputs * columns) * item;
  if (positions == 0) memset(p.sums, 0, (size_t)(p.outputs * columns) * item);
  for (int64_t first = 0; first < positions; first += block) {
    const int64_t last = at_most(positions, first + block);
    if (s->direct)
      add_direct(&p, first, last);
    else
      GP_TRY(add_gathered(&p, first, last));
  }
  if (call->out[0].meta->dtype == GP_F32)
    add_sums_f32(&p);
  else
    add_sums_f64(&p);
  return GP_OK;
}

static gp_status run(const gp_call *call, gp_span span) {
  const shares s = shares_of(call);
  for (int64_t unit = span.first; unit < span.last; unit++)
    GP_TRY(run_piece(call, &s, unit, span.scratch));
  return GP_OK;
}

const gp_op_def gp_def_conv2d_dw = {GP_OP_ROW(conv2d_dw), .infer = infer, .cost = cost,
                                    .cpu = {.cut = cut, .run = run, .scratch = scratch}};
