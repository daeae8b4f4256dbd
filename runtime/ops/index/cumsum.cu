/* ops/index/cumsum.cu - see cumsum.c: sums of the elements of lines up to each one.
 *
 * Neighbouring lines have a thread each, which adds in order. A line without neighbours has a warp,
 * which takes 32 elements at a time: each lane adds those of the lanes before it by doubling steps,
 * and the sum so far. A long one is cut into tiles (scan.cuh). All orders depend on the shape
 * alone. */
#include "ops/index/scan.cuh"

template <typename T> struct scan {
  const T *x;
  T *y;
  gp_axis axis;
  bool reverse;
};

/* Return where the i-th element on the way lies. */
template <typename T>
static __device__ inline int64_t place(const scan<T> &s, int64_t base, int64_t i) {
  return base + (s.reverse ? s.axis.size - 1 - i : i) * s.axis.inner;
}

template <typename T> static __device__ void scan_alone(const scan<T> &s, int64_t base) {
  typename gp_number<T>::wide sum = 0;
  for (int64_t i = 0; i < s.axis.size; i++) {
    const int64_t at = place(s, base, i);
    sum += gp_number<T>::load(s.x[at]);
    s.y[at] = gp_number<T>::store(sum);
  }
}

template <typename T> static __device__ void scan_together(const scan<T> &s, int64_t base) {
  typedef typename gp_number<T>::wide wide;
  const int lane = threadIdx.x % GP_WARP;
  wide carry = 0;
  for (int64_t first = 0; first < s.axis.size; first += GP_WARP) {
    const int64_t i = first + lane, at = place(s, base, i);
    wide sum = i < s.axis.size ? gp_number<T>::load(s.x[at]) : (wide)0;
    for (int step = 1; step < GP_WARP; step *= 2) {
      const wide other = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += other;
    }
    sum += carry;
    if (i < s.axis.size) s.y[at] = gp_number<T>::store(sum);
    carry = __shfl_sync(0xffffffffu, sum, GP_WARP - 1);
  }
}

template <typename T> static __global__ void scan_kernel(scan<T> s) {
  const bool alone = s.axis.inner >= GP_LINE_NEIGHBOURS;
  const int64_t me = (int64_t)blockIdx.x * GP_LINE_THREADS + threadIdx.x;
  const int64_t line = alone ? me : me / GP_WARP;
  if (line >= s.axis.outer * s.axis.inner) return;
  const int64_t base = line / s.axis.inner * s.axis.size * s.axis.inner + line % s.axis.inner;
  if (alone)
    scan_alone(s, base);
  else
    scan_together(s, base);
}

/* ---- long lines ------------------------------------------------------------------------------ */

template <typename T> struct long_sums {
  typedef typename gp_number<T>::wide wide;
  scan<T> s;

  static __device__ wide first(void) { return 0; }
  static __device__ wide combine(wide a, wide b) { return a + b; }
  __device__ wide load(int64_t base, int64_t i) const {
    return gp_number<T>::load(s.x[place(s, base, i)]);
  }
  __device__ void emit(int64_t base, int64_t i, wide, wide with) const {
    s.y[place(s, base, i)] = gp_number<T>::store(with);
  }
};

static bool is_long(const gp_axis &axis) {
  return axis.inner < GP_LINE_NEIGHBOURS && axis.size > GP_SCAN_LONG;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->cumsum.dim);
  (void)gpu;
  *scratch = is_long(axis) ? (size_t)gp_scan_totals_of(axis) * sizeof(double) : 0;
  return GP_OK;
}

/* ---- launching ------------------------------------------------------------------------------- */

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call, void *scratch) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->cumsum.dim);
  const scan<T> s = {(const T *)call->in[0].data, (T *)call->out[0].data, axis,
                     call->attr->cumsum.reverse};
  if (gp_numel_of(call->in[0].meta) == 0) return GP_OK;
  if (is_long(axis))
    return gp_scan_run(gpu, long_sums<T>{s}, axis, (typename gp_number<T>::wide *)scratch);
  return GP_LAUNCH(gpu, scan_kernel<T>, gp_line_blocks(&axis), dim3(GP_LINE_THREADS), 0, s);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_NUMBER(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op, call->scratch));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_cumsum = {run, prepare};
