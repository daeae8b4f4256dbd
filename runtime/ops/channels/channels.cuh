/* ops/channels/channels.cuh - blocks of threads over the parts of an image (channels.h).
 *
 * A block takes a part and a tile of neighbouring channels; threads that stand behind one another
 * take every `deep`-th row of it, so that what belongs to a channel is worked out once for several
 * rows. */
#ifndef GP_OPS_CHANNELS_CHANNELS_CUH
#define GP_OPS_CHANNELS_CHANNELS_CUH

#include "ops/channels/channels.h"
#include "ops/reduce/columns.cuh"

/* The sets of an image, its parts as segments. count: channels of a thread. */
static inline gp_columns gp_channels_columns(const gp_channels &c, int count) {
  gp_columns p = {};
  p.outer = c.sets, p.rows = c.rows, p.width = c.channels, p.lists = 1;
  gp_columns_stand(&p, count, GP_WARP);
  p.segments = c.parts, p.per_segment = GP_CHANNEL_ROWS;
  return p;
}

/* The rows of a block's part, counted from the image's first, and the channels of a thread. */
struct gp_channel_place {
  int64_t set, part, first, end;
  gp_column_group group;
};

template <int COUNT>
static __device__ inline gp_channel_place gp_channel_place_of(const gp_columns &p) {
  /* no more tiles or segments than blocks, whose number has 32 bits */
  const uint32_t tiles = (uint32_t)p.tiles, segments = (uint32_t)p.segments;
  const uint32_t part = blockIdx.x / tiles, tile = blockIdx.x - part * tiles, set = part / segments;
  const int64_t at = (int64_t)(part - set * segments) * p.per_segment, rest = p.rows - at;
  const int64_t first = set * p.rows + at;
  return {set, part, first, first + (rest < p.per_segment ? rest : p.per_segment),
          gp_column_group_of<COUNT>(p, tile)};
}

/* Statistics [S, G] that have `each` channels in a group; their type is the one that T
 * is computed in. */
template <typename T> struct gp_channel_stats {
  const gp_compute<T> *mean, *variance;
  gp_compute<T> eps;
  int64_t groups, each;
};

template <typename T>
static gp_channel_stats<T> gp_channel_stats_of(const gp_arg *mean, double eps,
                                               const gp_channels &c) {
  typedef gp_compute<T> A;
  return {(const A *)mean[0].data, (const A *)mean[1].data, (A)eps, c.groups, c.each};
}

/* Read the mean and 1 / deviation of the thread's channels; 0 past the last one. */
template <typename T>
static __device__ inline void gp_channel_stats_read(const gp_channel_stats<T> &s,
                                                    const gp_channel_place &at, gp_compute<T> *mean,
                                                    gp_compute<T> *rstd) {
  typedef gp_compute<T> A;
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++) {
    const int64_t c = at.group.at(k);
    const bool there = c < at.group.width;
    const int64_t to =
        at.set * s.groups + (there ? s.each == 1 ? c : (uint32_t)c / (uint32_t)s.each : 0);
    mean[k] = there ? s.mean[to] : A(0);
    rstd[k] = there ? 1 / gp_sqrt(s.variance[to] + s.eps) : A(0);
  }
}

/* Launch a kernel for all parts of an image. */
#define GP_LAUNCH_PARTS(gpu, KERNEL, p, shared, ...)                                               \
  const int64_t blocks = (p).outer * (p).segments * (p).tiles;                                     \
  if (blocks == 0) return GP_OK;                                                                   \
  const dim3 grid((unsigned)blocks), block((p).wide, (p).deep);                                    \
  return GP_LAUNCH(gpu, KERNEL, grid, block, shared, __VA_ARGS__, p);

/* Write a thread's results to [.., C]. */
template <typename A, typename V>
static __device__ inline void gp_channels_put(A *to, const gp_column_group &group, const V *from,
                                              int count) {
  for (int k = 0; k < count; k++)
    if (group.at(k) < group.width) to[group.at(k)] = from[k];
}

#endif
