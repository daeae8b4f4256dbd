/* ops/convolution/walk/conv_walk.h - convolutions on CPUs as products of matrices: which positions
 * are made together, and how their sources are gathered.
 *
 * A lattice is a set of positions of the result that meet the same taps: all positions of a map, or
 * those positions of an image that have the same remainder by the stride. Its positions are made in
 * blocks of a fixed size. If the channels fill vectors of f32 (gp_scattered_fits) a block reads the
 * source in place (conv_direct.c); else it is one product for as many taps as fit: the gathered
 * source [positions, taps, channels] times the packed weight. Blocks depend on the shapes only, so
 * the bits do too. */
#ifndef GP_OPS_CONVOLUTION_WALK_CONV_WALK_H
#define GP_OPS_CONVOLUTION_WALK_CONV_WALK_H

#include "ops/convolution/conv.h"

enum {
  GP_CONV_BLOCK = 96,    /* positions made together: the weight is read once for them */
  GP_CONV_COLUMNS = 1024 /* gathered for a product at most, unless one tap has more: 512 KiB of f32,
                            well in L2 */
};

/* One axis of a lattice. Position i of it is `first + i * step` of the result, and meets
 * i * pace + at + j * apart of the source at its j-th tap, which is tap + j * tap_step of the
 * kernel. */
typedef struct gp_conv_line {
  int64_t first, step, count;
  int64_t source, pace, at, apart;
  int64_t tap, tap_step, taps;
} gp_conv_line;

typedef struct gp_conv_lattice {
  gp_conv_line h, w;
} gp_conv_lattice;

/* The one lattice of a result that is a map. */
gp_conv_lattice gp_conv_map_lattice(const gp_conv *c);
/* The lattices of a result that is an image, numbered 0 .. gp_conv_phases - 1. */
int64_t gp_conv_phases(const gp_conv *c);
gp_conv_lattice gp_conv_image_lattice(const gp_conv *c, int64_t number);
/* For a forward or a transposed result: how many lattices there are, and the one of that number. */
int64_t gp_conv_lattices(const gp_conv *c, bool transposed);
gp_conv_lattice gp_conv_lattice_at(const gp_conv *c, bool transposed, int64_t number);

static inline int64_t gp_conv_positions(const gp_conv *c, const gp_conv_lattice *l) {
  return c->rows * l->h.count * l->w.count;
}

/* What one gather reads: positions [first, last), taps [tap, tap + taps) and channels
 * [channel, channel + channels) of a source with `depth` channels. */
typedef struct gp_conv_part {
  int64_t first, last, tap, taps, channel, channels, depth;
  size_t item; /* bytes of an element */
} gp_conv_part;

/* Copy the part to [positions, taps, channels]; what lies outside of the source is zero. */
void gp_conv_gather(const gp_conv_lattice *l, gp_conv_part part, const void *source, void *to);
/* Find the addresses of channel part->channel of an f32 source where the positions of the part meet
 * tap part->tap; `outside` where they meet nothing. */
void gp_conv_point(const gp_conv_lattice *l, const gp_conv_part *part, const void *source,
                   const float *outside, const float **to);
/* Tell whether a gather copies whole rows of a source as they lie: one tap that meets
 * every position. */
bool gp_conv_is_plain(const gp_conv_lattice *l);
/* Return where position p of the lattice lies in a result of sizes height x width, in positions. */
int64_t gp_conv_place(const gp_conv_lattice *l, int64_t p, int64_t height, int64_t width);

/* ---- both products with a weight ------------------------------------------------------------ */

/* A result of a convolution, map or image, and what it is made of. */
typedef struct gp_conv_job {
  gp_conv c;
  gp_dtype dtype;
  bool transposed;             /* the result is the image */
  const void *source, *weight; /* weight: packed */
  const void *bias;            /* or NULL */
  void *result;
} gp_conv_job;

/* Blocks of all lattices. */
int64_t gp_conv_blocks(const gp_conv_job *job);
size_t gp_conv_scratch(const gp_conv_job *job);
gp_status gp_conv_run_block(const gp_conv_job *job, int64_t block, void *scratch);

/* One gathered block of one group. */
typedef struct gp_conv_block {
  const gp_conv_job *job;
  gp_conv_lattice lattice;
  int64_t first, last, group; /* positions */
  void *scratch;
} gp_conv_block;

/* Count the channels of a group of the source, and of the result. */
static inline int64_t gp_conv_read(const gp_conv_job *job) {
  return (job->transposed ? job->c.map_c : job->c.image_c) / job->c.groups;
}

static inline int64_t gp_conv_made(const gp_conv_job *job) {
  return (job->transposed ? job->c.image_c : job->c.map_c) / job->c.groups;
}

/* Return the number, in the kernel, of tap t of a lattice. */
static inline int64_t gp_conv_tap(const gp_conv_block *b, int64_t t) {
  const gp_conv_line *h = &b->lattice.h, *w = &b->lattice.w;
  return (h->tap + t / w->taps * h->tap_step) * b->job->c.w.kernel + w->tap +
         t % w->taps * w->tap_step;
}

/* Blocks that read the source in place. */
bool gp_conv_is_direct(const gp_conv_job *job);
int64_t gp_conv_direct_blocks(const gp_conv *c, bool transposed);
void gp_conv_run_direct(const gp_conv_job *job, int64_t block);

/* ---- the packed weight ---------------------------------------------------------------------- */

/* Pack O x I x KH x KW into panels of columns, each [KH KW, I, columns], of O; or of I, each [KH
 * KW, O, columns], if transposed. Packs rows [first, last) of all panels, counted in taps times
 * the middle dim. */
void gp_conv_pack(const gp_shape *weight, bool transposed, gp_dtype dtype, const void *from,
                  void *to, gp_span rows);

/* Where a product finds the weight of a group: for rows from `channel` of a tap of the
 * kernel on, and columns from `column` of the group on, as many as the panel still has. */
typedef struct gp_conv_weight_part {
  const void *data;
  int64_t columns, ld;
} gp_conv_weight_part;

gp_conv_weight_part gp_conv_weight_at(const gp_conv_job *job, int64_t group, int64_t tap,
                                      int64_t channel, int64_t column);

#endif
