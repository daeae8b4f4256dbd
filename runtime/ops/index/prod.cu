/* ops/index/prod.cu - see prod.c: products of lines, and their gradient.
 *
 * Neighbouring lines have a thread each; a line without neighbours has a warp, whose lanes take
 * every 32nd element and then multiply what they have, in one order. An element of the gradient
 * has a thread, which multiplies all others, and no thread waits for another. That is quadratic in
 * the length of a line; on long lines the products of the elements before it and of those behind it
 * are made by scans (scan.cuh). */
#include "ops/index/scan.cuh"

template <typename T> struct product {
  const T *x;
  T *y;
  gp_axis axis;
};

template <typename T> static __global__ void prod_kernel(product<T> p) {
  const bool alone = p.axis.inner >= GP_LINE_NEIGHBOURS;
  const int64_t me = (int64_t)blockIdx.x * GP_LINE_THREADS + threadIdx.x;
  const int64_t line = alone ? me : me / GP_WARP;
  if (line >= p.axis.outer * p.axis.inner) return;
  const int64_t base = line / p.axis.inner * p.axis.size * p.axis.inner + line % p.axis.inner;
  const int lane = alone ? 0 : threadIdx.x % GP_WARP, lanes = alone ? 1 : GP_WARP;
  typename gp_number<T>::wide value = 1;
#pragma unroll 4
  for (int64_t i = lane; i < p.axis.size; i += lanes)
    value *= gp_number<T>::load(p.x[base + i * p.axis.inner]);
  if (!alone)
    for (int step = GP_WARP / 2; step > 0; step /= 2)
      value *= __shfl_xor_sync(0xffffffffu, value, step);
  if (lane == 0) p.y[line] = gp_number<T>::store(value);
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->prod.dim);
  const product<T> p = {(const T *)call->in[0].data, (T *)call->out[0].data, axis};
  if (gp_numel_of(call->out[0].meta) == 0) return GP_OK;
  return GP_LAUNCH(gpu, prod_kernel<T>, gp_line_blocks(&axis), dim3(GP_LINE_THREADS), 0, p);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_NUMBER(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_prod = {run, NULL};

/* ---- gradient ------------------------------------------------------------------------------- */

template <typename T> struct product_gradient {
  const T *dy, *x;
  T *dx;
  gp_axis axis;
};

template <typename T> static __global__ void prod_dx_kernel(product_gradient<T> g, int64_t n) {
  typedef gp_compute<T> A;
  const int64_t size = g.axis.size, inner = g.axis.inner;
  for (int64_t at = (int64_t)blockIdx.x * GP_LINE_THREADS + threadIdx.x; at < n;
       at += (int64_t)gridDim.x * GP_LINE_THREADS) {
    const int64_t outer = at / (size * inner), j = at % inner, i = at / inner % size;
    const T *x = g.x + outer * size * inner + j;
    A others = gp_load(g.dy[outer * inner + j]);
#pragma unroll 4
    for (int64_t k = 0; k < size; k++)
      if (k != i) others *= gp_load(x[k * inner]);
    g.dx[at] = gp_store<T>(others);
  }
}

/* The products before each element, times dy, go to scratch on the way up; on the way down they
 * meet the products of those behind it. */
template <typename T> struct products_before {
  typedef gp_compute<T> wide;
  product_gradient<T> g;
  wide *kept;

  static __device__ wide first(void) { return 1; }
  static __device__ wide combine(wide a, wide b) { return a * b; }
  __device__ wide load(int64_t base, int64_t i) const {
    return gp_load(g.x[base + i * g.axis.inner]);
  }
  __device__ void emit(int64_t base, int64_t i, wide before, wide) const {
    const int64_t inner = g.axis.inner, line = base / (g.axis.size * inner) * inner + base % inner;
    kept[base + i * inner] = gp_load(g.dy[line]) * before;
  }
};

template <typename T> struct products_behind {
  typedef gp_compute<T> wide;
  product_gradient<T> g;
  const wide *kept;

  static __device__ wide first(void) { return 1; }
  static __device__ wide combine(wide a, wide b) { return a * b; }
  __device__ int64_t at(int64_t base, int64_t i) const {
    return base + (g.axis.size - 1 - i) * g.axis.inner;
  }
  __device__ wide load(int64_t base, int64_t i) const { return gp_load(g.x[at(base, i)]); }
  __device__ void emit(int64_t base, int64_t i, wide behind, wide) const {
    g.dx[at(base, i)] = gp_store<T>(kept[at(base, i)] * behind);
  }
};

static gp_axis axis_of_dx(const gp_call *call) {
  return gp_axis_of(&call->out[0].meta->shape, call->attr->prod_dx.dim);
}

static gp_status prepare_dx(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_axis axis = axis_of_dx(call);
  const int64_t values = gp_numel_of(call->out[0].meta) + gp_scan_totals_of(axis);
  (void)gpu;
  *scratch = axis.size > GP_SCAN_LONG ? (size_t)values * sizeof(double) : 0;
  return GP_OK;
}

template <typename T>
static gp_status launch_long(gp_gpu *gpu, const product_gradient<T> &g, int64_t n, void *scratch) {
  gp_compute<T> *kept = (gp_compute<T> *)scratch, *totals = kept + n;
  GP_GPU_TRY(gp_scan_run(gpu, products_before<T>{g, kept}, g.axis, totals));
  return gp_scan_run(gpu, products_behind<T>{g, kept}, g.axis, totals);
}

template <typename T> static gp_status launch_dx(gp_gpu *gpu, const gp_call *call, void *scratch) {
  const int64_t n = gp_numel_of(call->out[0].meta);
  const product_gradient<T> g = {(const T *)call->in[0].data, (const T *)call->in[1].data,
                                 (T *)call->out[0].data, axis_of_dx(call)};
  if (n == 0) return GP_OK;
  if (g.axis.size > GP_SCAN_LONG) return launch_long(gpu, g, n, scratch);
  return GP_LAUNCH(gpu, prod_dx_kernel<T>, gp_blocks(n, GP_LINE_THREADS), GP_LINE_THREADS, 0, g, n);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch_dx<T>(gpu, &call->op, call->scratch));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_prod_dx = {run_dx, prepare_dx};
