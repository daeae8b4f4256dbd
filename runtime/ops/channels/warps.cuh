/* ops/channels/warps.cuh - sums over the parts of an image, a part and a tile of channels a warp.
 *
 * A block of channels.cuh that takes a part has few rows for each of its threads where channels are
 * few (64 channels of halves: two), and folds them over a barrier for each step. Here a warp takes
 * the part: its lanes stand side by side over the channels, four a lane, and several rows deep, and
 * each adds up what many threads of such a block would. The sums are the same, bit by bit: a leaf
 * is what one of those threads adds, and the tree over the leaves is theirs. Its lower steps are
 * between a lane's own registers, the last ones between lanes. */
#ifndef GP_OPS_CHANNELS_WARPS_CUH
#define GP_OPS_CHANNELS_WARPS_CUH

#include "ops/channels/channels.cuh"

enum { GP_PART_WARPS = 4, GP_PART_BLOCKS = 5 }; /* of a block; and blocks of a multiprocessor */
/* Leaves of a lane's tree, and rows of them, that are written out at most. */
enum { GP_WARP_LEAVES = 4, GP_WARP_ROWS = 16 };

/* Neighbouring channels of a lane: one access. */
template <typename T> struct alignas(sizeof(T) == 2 ? 8 : 16) gp_few {
  static const int count = sizeof(T) == 8 ? 2 : 4;
  T at[count];
};

/* The parts of all sets as warps see them. Indices have 32 bits. */
struct gp_warps {
  uint32_t units, tiles, parts, width; /* units: parts of all sets times tiles; width: channels */
  int wide, slots;                     /* lanes side by side, and lanes one behind the other */
  int deep, leaves;                    /* threads of a block behind one another; leaves of a lane */
  int64_t rows;                        /* of a set */
};

/* p: the blocks of the same image (gp_channels_columns). With more threads behind one another than
 * rows in a part, those without a row add nothing. */
template <typename T> static inline gp_warps gp_warps_of(const gp_columns &p) {
  const int count = gp_few<T>::count;
  gp_warps w = {};
  for (w.wide = 1; w.wide < GP_WARP && (int64_t)w.wide * count < p.width;) w.wide *= 2;
  w.slots = GP_WARP / w.wide;
  w.deep = p.deep < (int)GP_CHANNEL_ROWS ? p.deep : (int)GP_CHANNEL_ROWS;
  w.leaves = w.deep / w.slots;
  w.tiles = (uint32_t)((p.width + w.wide * count - 1) / (w.wide * count));
  w.parts = (uint32_t)p.segments, w.width = (uint32_t)p.width, w.rows = p.rows;
  w.units = (uint32_t)(p.outer * p.segments) * w.tiles;
  return w;
}

/* Do warps take these parts? Rows must be read by packs, the leaves have code, and indices fit.
 * There is no code for f64, which blocks add up: it is rare, and slow in any case. */
template <typename T>
static inline bool gp_warps_fit(const gp_columns &p, const gp_warps &w, bool packed) {
  const int64_t units = p.outer * p.segments * w.tiles;
  return sizeof(T) < sizeof(double) && packed && !p.spread && (w.leaves == 8 || w.leaves == 16) &&
         units <= INT32_MAX && p.width <= INT32_MAX;
}

/* ---- in the kernel ------------------------------------------------------------------------- */

/* The rows of a warp's part, and the channels of a lane. */
struct gp_warp_place {
  int64_t set, part, first; /* part: of all sets; first: row of the image */
  int rows, slot;
  uint32_t channel; /* the lane's first; w.width or more: it has none */
};

template <typename T>
static __device__ inline gp_warp_place gp_warp_place_of(const gp_warps &w, uint32_t unit) {
  const uint32_t part = unit / w.tiles, tile = unit - part * w.tiles, set = part / w.parts;
  const int lane = threadIdx.x % GP_WARP;
  const int64_t at = (int64_t)(part - set * w.parts) * GP_CHANNEL_ROWS, rest = w.rows - at;
  gp_warp_place p;
  p.set = set, p.part = part, p.first = set * w.rows + at;
  p.rows = rest < (int64_t)GP_CHANNEL_ROWS ? (int)rest : (int)GP_CHANNEL_ROWS;
  p.slot = lane / w.wide;
  p.channel = (tile * w.wide + lane % w.wide) * gp_few<T>::count;
  return p;
}

/* A list of sums: `count` of each kind, of neighbouring channels. */
template <typename A, int SUMS> struct gp_sums { A at[SUMS]; };

template <typename A, int SUMS>
static __device__ inline gp_sums<A, SUMS> gp_sums_plus(const gp_sums<A, SUMS> &a,
                                                       const gp_sums<A, SUMS> &b) {
  gp_sums<A, SUMS> c;
#pragma unroll
  for (int k = 0; k < SUMS; k++) c.at[k] = gp_plus(a.at[k], b.at[k]);
  return c;
}

/* Add up leaves v, v + STEP, .. of LEAVES: F makes one, of F::rows rows. The levels above some
 * leaves are loops over their two branches: a tree that is written out whole takes the compiler a
 * minute, and more registers. */
template <int LEAVES, int STEP, typename F>
static __device__ inline typename F::sums gp_warp_tree(const F &f, int v) {
  if constexpr (STEP == LEAVES) {
    return f.leaf(v);
  } else if constexpr (LEAVES / STEP > GP_WARP_LEAVES || LEAVES / STEP * F::rows > GP_WARP_ROWS) {
    typename F::sums s;
#pragma unroll 1
    for (int branch = 0; branch < 2; branch++) {
      const typename F::sums b = gp_warp_tree<LEAVES, 2 * STEP>(f, v + STEP * branch);
      s = branch == 0 ? b : gp_sums_plus(s, b);
    }
    return s;
  } else {
    const typename F::sums a = gp_warp_tree<LEAVES, 2 * STEP>(f, v);
    return gp_sums_plus(a, gp_warp_tree<LEAVES, 2 * STEP>(f, v + STEP));
  }
}

/* Add over the lanes that stand behind one another; all get the sums. */
template <typename A, int SUMS>
static __device__ inline void gp_warp_fold(gp_sums<A, SUMS> *s, const gp_warps &w) {
  for (int deep = w.slots / 2; deep > 0; deep /= 2)
#pragma unroll
    for (int k = 0; k < SUMS; k++)
      s->at[k] = gp_plus(s->at[k], __shfl_xor_sync(0xffffffffu, s->at[k], deep * w.wide));
}

/* The rows of leaf v: slot + slots v, and every deep-th from there; ROWS of them in a whole part.
 * A Source has add(sums, row): what it reads of a row, counted from the part's first. */
template <int ROWS, typename Source> struct gp_warp_leaves {
  typedef typename Source::sums sums;
  static const int rows = ROWS;
  const Source &source;
  int slot, slots, deep, there; /* there: rows of the part, 0 in a lane without channels */

  __device__ sums leaf(int v) const {
    sums s = {};
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
      const int row = slot + slots * v + deep * k;
      if (row < there) source.add(&s, row);
    }
    return s;
  }
};

/* Return the sums of a warp's part; lanes without channels return zeros. */
template <int LEAVES, int ROWS, typename Source>
static __device__ inline typename Source::sums gp_warp_sums(const Source &source, const gp_warps &w,
                                                            const gp_warp_place &at) {
  const bool there = at.channel < w.width;
  const gp_warp_leaves<ROWS, Source> leaves = {source, at.slot, w.slots, w.deep,
                                               there ? at.rows : 0};
  typename Source::sums s = gp_warp_tree<LEAVES, 1>(leaves, 0);
  gp_warp_fold(&s, w);
  return s;
}

template <typename T> static __device__ inline gp_few<T> gp_few_load(const T *from) {
  return *reinterpret_cast<const gp_few<T> *>(from);
}

/* Write neighbouring results of a lane: 16 bytes. */
template <typename A, int COUNT> static __device__ inline void gp_few_put(A *to, const A *from) {
  struct alignas(COUNT * sizeof(A)) all {
    A at[COUNT];
  } x;
#pragma unroll
  for (int k = 0; k < COUNT; k++) x.at[k] = from[k];
  *reinterpret_cast<all *>(to) = x;
}

/* Launch KERNEL<T, LEAVES, ROWS>. Two-byte elements have twice as many leaves, except where a block
 * is eight threads deep. */
#define GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, LEAVES, ROWS, ...)                                      \
  GP_LAUNCH(gpu, (KERNEL<T, LEAVES, ROWS>), dim3((w.units + GP_PART_WARPS - 1) / GP_PART_WARPS),   \
            GP_PART_WARPS *GP_WARP, 0, __VA_ARGS__, w)
#define GP_LAUNCH_WARPS(gpu, KERNEL, w, ...)                                                       \
  const int rows = GP_CHANNEL_ROWS / w.deep;                                                       \
  if constexpr (sizeof(T) == 2) {                                                                  \
    if (rows == 8) return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 8, 8, __VA_ARGS__);                   \
    if (rows == 4) return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 16, 4, __VA_ARGS__);                  \
    if (rows == 2) return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 16, 2, __VA_ARGS__);                  \
    return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 16, 1, __VA_ARGS__);                                 \
  } else if constexpr (sizeof(T) == 4) {                                                           \
    if (rows == 8) return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 8, 8, __VA_ARGS__);                   \
    if (rows == 4) return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 8, 4, __VA_ARGS__);                   \
    if (rows == 2) return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 8, 2, __VA_ARGS__);                   \
    return GP_LAUNCH_WARPS_AS(gpu, KERNEL, w, 8, 1, __VA_ARGS__);                                  \
  } else { /* gp_warps_fit says so */                                                              \
    return gp_gpu_fail(GP_EDTYPE, "channels: f64, expected f32 or halves");                        \
  }

#endif
