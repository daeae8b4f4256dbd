/* ops/channels/stretches.cuh - blocks of threads that change every element of an image by what
 * belongs to its channel.
 *
 * No sum crosses rows here, so a block takes as many rows as let it forget what its threads first
 * work out for their channels: a root, a quotient and several reads for each. A thread has several
 * rows under way. */
#ifndef GP_OPS_CHANNELS_STRETCHES_CUH
#define GP_OPS_CHANNELS_STRETCHES_CUH

#include "ops/channels/channels.cuh"

enum {
  GP_STRETCH_ROWS = 32, /* of a thread, where that leaves enough blocks */
  GP_STRETCH_LEAST = 4, /* of a thread, at least */
  GP_STRETCH_BLOCKS = 2048
};

/* The sets of an image, cut into stretches of rows. count: channels of a thread. */
static inline gp_columns gp_channels_stretches(const gp_channels &c, int count) {
  gp_columns p = gp_channels_columns(c, count);
  int64_t each = GP_STRETCH_ROWS;
  for (; each > GP_STRETCH_LEAST; each /= 2)
    if (p.outer * p.tiles * (p.rows / (each * p.deep)) >= GP_STRETCH_BLOCKS) break;
  p.per_segment = each * p.deep;
  p.segments = (p.rows + p.per_segment - 1) / p.per_segment;
  return p;
}

/* Read every deep-th row from `row` on, AHEAD of them; past the end, the last one again, so that no
 * read waits for a condition. */
template <bool PACKED, int AHEAD, typename T>
static __device__ inline void gp_read_ahead(const T *from, int64_t row, const gp_channel_place &at,
                                            const gp_columns &p, gp_pack<T> (&to)[AHEAD]) {
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const int64_t r = row + u * (int)blockDim.y;
    to[u] = gp_columns_load<PACKED>(from + (r < at.end ? r : at.end - 1) * p.width, at.group);
  }
}

template <bool PACKED, int AHEAD, typename T>
static __device__ inline void gp_write_ahead(T *to, int64_t row, const gp_channel_place &at,
                                             const gp_columns &p, const gp_pack<T> (&from)[AHEAD]) {
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const int64_t r = row + u * (int)blockDim.y;
    if (r < at.end) gp_columns_store<PACKED>(to + r * p.width, from[u], at.group);
  }
}

#endif
