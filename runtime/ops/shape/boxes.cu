/* ops/shape/boxes.cu - the strided copy, as bits of an element's size; see boxes.cuh.
 *
 * If the source is contiguous along another dim than the result (a transposition), neighbours of
 * one side are far apart on the other: then tiles go through shared memory, so that both sides
 * access whole lines. Everything else is the walk of the elementwise ops. */
#include "ops/elementwise/map.cuh"
#include "ops/shape/boxes.cuh"

struct same {
  template <typename T> __device__ T operator()(T x) const { return x; }
};
template <typename T> struct zero {
  __device__ T operator()() const { return T(0); }
};

/* ---- transpositions ------------------------------------------------------------------------ */

enum { TILE_THREADS = 256 };

/* A tile is side x side elements, lines of 64 bytes or more on both sides. Its rows are one bank
 * longer than a power of two: a column then touches all banks. */
template <typename T> struct tile_of {
  static const int side = sizeof(T) >= 4 ? 32 : 64;
  static const int pitch = side + (sizeof(T) < 4 ? 4 / (int)sizeof(T) : 1);
};

/* The source's contiguous dim is `across`, the result's is `along`; the dims of `outer` are the
 * rest. */
typedef struct tiling {
  gp_grid outer;
  gp_divisor across, along;        /* tiles */
  int64_t across_size, along_size; /* elements */
  int64_t to_stride, from_stride;  /* of across in the result, of along in the source */
  uint32_t tiles;
} tiling;

/* Where a tile begins. */
typedef struct corner {
  int64_t to, from;      /* elements from the beginning of both sides */
  int64_t across, along; /* elements that are left of both dims there */
} corner;

template <int SIDE> static __device__ inline corner locate_tile(const tiling &t, uint32_t tile) {
  int64_t at[2];
  const uint32_t a = gp_divide(tile, t.along), outer = gp_divide(a, t.across);
  const int64_t along = (int64_t)(tile - a * t.along.by) * SIDE;
  const int64_t across = (int64_t)(a - outer * t.across.by) * SIDE;
  gp_grid_locate(t.outer, outer, at);
  return {at[0] + across * t.to_stride + along, at[1] + along * t.from_stride + across,
          t.across_size - across, t.along_size - along};
}

template <typename T>
static __global__ void __launch_bounds__(TILE_THREADS) transpose_kernel(tiling t) {
  constexpr int side = tile_of<T>::side;
  __shared__ T tile[side][tile_of<T>::pitch];
  for (uint32_t i = blockIdx.x; i < t.tiles; i += gridDim.x) {
    const corner c = locate_tile<side>(t, i);
    const T *from = static_cast<const T *>(t.outer.data[1]) + c.from;
    T *to = static_cast<T *>(t.outer.data[0]) + c.to;
#pragma unroll
    for (int e = threadIdx.x; e < side * side; e += TILE_THREADS) {
      const int row = e / side, column = e % side; /* of the source: along, across */
      if (row < c.along && column < c.across)
        tile[row][column] = from[row * t.from_stride + column];
    }
    __syncthreads();
#pragma unroll
    for (int e = threadIdx.x; e < side * side; e += TILE_THREADS) {
      const int row = e / side, column = e % side; /* of the result: across, along */
      if (row < c.across && column < c.along) to[row * t.to_stride + column] = tile[column][row];
    }
    __syncthreads();
  }
}

/* Return the dim along which the source is contiguous while the result is so along the last one; -1
 * if this is no transposition, or one so narrow that tiles would be mostly empty. */
static int transposed_dim(const gp_walk *w) {
  const int last = w->rank - 1;
  if (w->stride[last][0] != 1 || w->stride[last][1] <= 1 || w->dim[last] < 8) return -1;
  for (int d = 0; d < last; d++)
    if (w->stride[d][1] == 1 && w->dim[d] >= 8) return d;
  return -1;
}

/* Return the walk without two of its dims. */
static gp_walk without(const gp_walk *w, int a, int b) {
  gp_walk rest = *w;
  rest.rank = 0;
  rest.lanes = 1;
  for (int d = 0; d < w->rank; d++) {
    if (d == a || d == b) continue;
    rest.dim[rest.rank] = w->dim[d];
    for (int k = 0; k < 2; k++) rest.stride[rest.rank][k] = w->stride[d][k];
    rest.rank++;
  }
  if (rest.rank == 0) rest.dim[rest.rank++] = 1;
  return rest;
}

/* Plan the tiles; return false if they cannot be counted in 31 bits. */
static bool plan_tiles(const gp_walk *w, int across, int side, tiling *t) {
  const int last = w->rank - 1;
  const gp_walk outer = without(w, across, last);
  const int64_t tiles_across = (w->dim[across] + side - 1) / side;
  const int64_t tiles_along = (w->dim[last] + side - 1) / side;
  const int64_t tiles = gp_walk_units(&outer) * tiles_across * tiles_along;
  if (tiles > GP_WALK_MOST) return false;
  t->outer = gp_grid_make(&outer);
  t->across = gp_divisor_make((uint32_t)tiles_across);
  t->along = gp_divisor_make((uint32_t)tiles_along);
  t->across_size = w->dim[across];
  t->along_size = w->dim[last];
  t->to_stride = w->stride[across][0];
  t->from_stride = w->stride[last][1];
  t->tiles = (uint32_t)tiles;
  return true;
}

/* ---- what ops call ------------------------------------------------------------------------- */

template <typename T> static gp_status move_as(gp_gpu *gpu, const gp_arg *to, const gp_arg *from) {
  constexpr int side = tile_of<T>::side;
  const gp_arg *args[] = {to, from};
  const int sizes[] = {sizeof(T), sizeof(T)};
  const gp_walk walk = gp_walk_make(args, sizes, 2, 1);
  const int across = transposed_dim(&walk);
  tiling t;
  if (gp_walk_units(&walk) == 0) return GP_OK;
  if (across < 0 || !plan_tiles(&walk, across, side, &t))
    return gp_map<T, T>(gpu, same(), to, from);
  return GP_LAUNCH(gpu, transpose_kernel<T>, gp_blocks(t.tiles, 1), TILE_THREADS, 0, t);
}

gp_status gp_move(gp_gpu *gpu, const gp_arg *to, const gp_arg *from) {
  GP_BY_SIZE(to->meta->dtype, return move_as<T>(gpu, to, from))
  return GP_OK;
}

gp_status gp_clear(gp_gpu *gpu, const gp_arg *to) {
  GP_BY_SIZE(to->meta->dtype, return gp_map<T>(gpu, zero<T>(), to, NULL))
  return GP_OK;
}

gp_meta gp_rows_meta(gp_dtype dtype, int64_t rows, int64_t width, int64_t stride) {
  gp_meta meta = {};
  meta.dtype = dtype;
  meta.shape.rank = 2;
  meta.shape.dim[0] = rows;
  meta.shape.dim[1] = width;
  meta.stride[0] = stride;
  meta.stride[1] = 1;
  return meta;
}
