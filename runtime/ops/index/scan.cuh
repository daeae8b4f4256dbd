/* ops/index/scan.cuh - what the elements of a long line make together up to each one: sums,
 * products.
 *
 * A line is cut into tiles, which blocks take: they make each tile's total, a thread for each line
 * combines the totals of the tiles before each one, and blocks go through their tiles again from
 * there. With many neighbouring lines a thread goes through each. The order depends on the shape
 * alone.
 *
 * F has
 *   - wide: the type of what is combined; first(), a value that changes nothing; combine(a, b);
 *   - load(base, i): the i-th element on the way through the line that begins at `base`;
 *   - emit(base, i, before, with): what the elements before it make, and with it. */
#ifndef GP_OPS_INDEX_SCAN_CUH
#define GP_OPS_INDEX_SCAN_CUH

#include "ops/index/number.cuh"

enum {
  GP_SCAN_LONG = 4096, /* lines of more elements are cut, or go other ways */
  GP_SCAN_ROUNDS = 8,  /* elements of a thread */
  GP_SCAN_TILE = GP_LINE_THREADS * GP_SCAN_ROUNDS
};

struct gp_scan_lines {
  gp_axis axis;
  int64_t tiles; /* of a line */
};

static __device__ inline int64_t gp_scan_base(const gp_axis &a, int64_t line) {
  return line / a.inner * a.size * a.inner + line % a.inner;
}

/* ---- in a block ------------------------------------------------------------------------------ */

/* Combine over the block in the order of its threads: *with receives what threads up to this one
 * make, and the result is what those before it make. All threads call it; *all: of the block. */
template <typename F>
static __device__ inline typename F::wide gp_scan_block(typename F::wide x, typename F::wide *with,
                                                        typename F::wide *all) {
  typedef typename F::wide wide;
  __shared__ wide part[GP_LINE_WARPS];
  const int lane = threadIdx.x % GP_WARP, warp = threadIdx.x / GP_WARP;
  for (int step = 1; step < GP_WARP; step *= 2) {
    const wide other = __shfl_up_sync(0xffffffffu, x, step);
    if (lane >= step) x = F::combine(other, x);
  }
  wide before = __shfl_up_sync(0xffffffffu, x, 1);
  if (lane == 0) before = F::first();
  __syncthreads(); /* threads may still read the parts of an earlier call */
  if (lane == GP_WARP - 1) part[warp] = x;
  __syncthreads();
  wide warps = F::first();
  *all = F::first();
  for (int w = 0; w < GP_LINE_WARPS; w++) {
    if (w == warp) warps = *all;
    *all = F::combine(*all, part[w]);
  }
  *with = F::combine(warps, x);
  return F::combine(warps, before);
}

/* ---- kernels --------------------------------------------------------------------------------- */

template <typename F>
static __global__ void __launch_bounds__(GP_LINE_THREADS)
    gp_scan_totals(F f, gp_scan_lines s, typename F::wide *totals) {
  typedef typename F::wide wide;
  const int64_t base = gp_scan_base(s.axis, blockIdx.x / s.tiles);
  const int64_t first = blockIdx.x % s.tiles * GP_SCAN_TILE;
  wide total = F::first(), with, all;
  for (int r = 0; r < GP_SCAN_ROUNDS; r++) {
    const int64_t i = first + r * GP_LINE_THREADS + threadIdx.x;
    gp_scan_block<F>(i < s.axis.size ? f.load(base, i) : F::first(), &with, &all);
    total = F::combine(total, all);
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

/* Let each total become what the tiles before it make. A thread takes a line. */
template <typename F>
static __global__ void gp_scan_carry(gp_scan_lines s, typename F::wide *totals) {
  typedef typename F::wide wide;
  const int64_t line = (int64_t)blockIdx.x * GP_LINE_THREADS + threadIdx.x;
  if (line >= s.axis.outer * s.axis.inner) return;
  wide before = F::first();
#pragma unroll 4
  for (int64_t t = line * s.tiles; t < (line + 1) * s.tiles; t++) {
    const wide own = totals[t];
    totals[t] = before;
    before = F::combine(before, own);
  }
}

template <typename F>
static __global__ void __launch_bounds__(GP_LINE_THREADS)
    gp_scan_emit(F f, gp_scan_lines s, const typename F::wide *totals) {
  typedef typename F::wide wide;
  const int64_t base = gp_scan_base(s.axis, blockIdx.x / s.tiles);
  const int64_t first = blockIdx.x % s.tiles * GP_SCAN_TILE;
  wide carry = totals[blockIdx.x], with, all;
  for (int r = 0; r < GP_SCAN_ROUNDS; r++) {
    const int64_t i = first + r * GP_LINE_THREADS + threadIdx.x;
    const wide x = i < s.axis.size ? f.load(base, i) : F::first();
    const wide before = gp_scan_block<F>(x, &with, &all);
    if (i < s.axis.size) f.emit(base, i, F::combine(carry, before), F::combine(carry, with));
    carry = F::combine(carry, all);
  }
}

template <typename F> static __global__ void gp_scan_alone(F f, gp_scan_lines s) {
  typedef typename F::wide wide;
  const int64_t line = (int64_t)blockIdx.x * GP_LINE_THREADS + threadIdx.x;
  if (line >= s.axis.outer * s.axis.inner) return;
  const int64_t base = gp_scan_base(s.axis, line);
  wide before = F::first();
  for (int64_t i = 0; i < s.axis.size; i++) {
    const wide with = F::combine(before, f.load(base, i));
    f.emit(base, i, before, with);
    before = with;
  }
}

/* ---- launching ------------------------------------------------------------------------------- */

static inline gp_scan_lines gp_scan_lines_of(const gp_axis &axis) {
  return {axis, (axis.size + GP_SCAN_TILE - 1) / GP_SCAN_TILE};
}

/* Return how many totals the scratch holds. */
static inline int64_t gp_scan_totals_of(const gp_axis &axis) {
  if (axis.inner >= GP_LINE_NEIGHBOURS) return 0;
  return axis.outer * axis.inner * gp_scan_lines_of(axis).tiles;
}

template <typename F>
static gp_status gp_scan_run(gp_gpu *gpu, const F &f, const gp_axis &axis,
                             typename F::wide *totals) {
  const gp_scan_lines s = gp_scan_lines_of(axis);
  const int64_t lines = axis.outer * axis.inner, blocks = lines * s.tiles;
  const dim3 across((unsigned)((lines + GP_LINE_THREADS - 1) / GP_LINE_THREADS));
  if (axis.inner >= GP_LINE_NEIGHBOURS)
    return GP_LAUNCH(gpu, gp_scan_alone<F>, across, GP_LINE_THREADS, 0, f, s);
  const dim3 grid((unsigned)blocks);
  GP_GPU_TRY(GP_LAUNCH(gpu, gp_scan_totals<F>, grid, GP_LINE_THREADS, 0, f, s, totals));
  GP_GPU_TRY(GP_LAUNCH(gpu, gp_scan_carry<F>, across, GP_LINE_THREADS, 0, s, totals));
  return GP_LAUNCH(gpu, gp_scan_emit<F>, grid, GP_LINE_THREADS, 0, f, s,
                   (const typename F::wide *)totals);
}

#endif
