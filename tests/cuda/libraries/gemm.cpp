/* tests/cuda/libraries/gemm.cpp - device/cuda/gemm/gemm.h without cuBLASLt: plain loops.
 *
 * Each element is one sum over k in order: in f64 for f64, else in f32. So its bits depend neither
 * on how many rows are computed at once nor on the transposes. */
#include "device/cuda/gemm/gemm.h"

#include <cmath>
#include <cstdio>
#include <new>
#include <vector>

#include "device/cuda/kernel/device.cuh"

namespace {

/* ---- products -------------------------------------------------------------------------------- */

/* op(X) [rows, columns], row after row, in the type that is computed in. */
template <typename T>
std::vector<gp_compute<T>> unpack(const T *x, bool transpose, int64_t ld, int64_t rows,
                                  int64_t columns) {
  std::vector<gp_compute<T>> to((size_t)(rows * columns));
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < columns; c++) {
      to[(size_t)(r * columns + c)] = gp_load(x[transpose ? c * ld + r : r * ld + c]);
    }
  }
  return to;
}

/* The tanh form: x times the sigmoid of 2 u, and its derivative. */
double gate(double x) {
  return 1 / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

double slope(double x) {
  const double s = gate(x);
  return s + x * s * (1 - s) * 2 * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/* Element `at` on its way out: as gp_gemm_epilogue says. */
template <typename D> gp_compute<D> finish(const gp_gpu_gemm &g, gp_compute<D> x, int64_t at) {
  typedef gp_compute<D> A;
  D *aux = (D *)g.aux;
  if (g.epilogue == GP_GEMM_GELU_DX) return (A)(x * slope(gp_load(aux[at])));
  if (g.epilogue != GP_GEMM_GELU) return x;
  if (g.keeps) aux[at] = gp_store<D>(x);
  return (A)(x * gate(x));
}

/* What is written: the sum, what was there, the bias, the epilogue. */
template <typename T, typename D>
void finish_row(const gp_gpu_gemm &g, const std::vector<gp_compute<T>> &sums, int64_t at, D *row) {
  const D *bias = (const D *)g.bias, *c = g.c ? (const D *)g.c + at : row;
  for (int64_t i = 0; i < g.n; i++) {
    gp_compute<D> x = sums[(size_t)i];
    if (g.accumulate) x = gp_load(c[i]) + x;
    if (g.biased) x = x + gp_load(bias[i]);
    row[i] = gp_store<D>(finish<D>(g, x, at + i));
  }
}

/* The sums of the left operand's rows, m x k. */
template <typename C, typename D>
void add_rows(const gp_gpu_gemm &g, const std::vector<C> &left, D *sums) {
  for (int64_t r = 0; r < g.m; r++) {
    C sum = 0;
    for (int64_t k = 0; k < g.k; k++) sum += left[(size_t)(r * g.k + k)];
    sums[r] = gp_store<D>(sum);
  }
}

template <typename T, typename D>
void multiply(const gp_gpu_gemm &g, const T *a, const T *b, D *d) {
  const auto left = unpack(a, g.transpose_a, g.lda, g.m, g.k);
  const auto right = unpack(b, g.transpose_b, g.ldb, g.k, g.n);
  for (int64_t r = 0; r < g.m; r++) {
    std::vector<gp_compute<T>> sums((size_t)g.n, 0);
    for (int64_t k = 0; k < g.k; k++) {
      const gp_compute<T> x = left[(size_t)(r * g.k + k)];
      for (int64_t c = 0; c < g.n; c++) sums[(size_t)c] += x * right[(size_t)(k * g.n + c)];
    }
    finish_row<T, D>(g, sums, r * g.ldd, d + r * g.ldd);
  }
  if (g.epilogue == GP_GEMM_ROW_SUMS) add_rows(g, left, (D *)g.aux);
}

template <typename T, typename D> void multiply_stack(const gp_gpu_gemm &g) {
  const int64_t batch = g.batch ? g.batch : 1;
  for (int64_t i = 0; i < batch; i++) {
    multiply<T, D>(g, (const T *)g.a + i * g.stride_a, (const T *)g.b + i * g.stride_b,
                   (D *)g.d + i * g.stride_d);
  }
}

/* ---- work of a stream
 * ------------------------------------------------------------------------- */

struct product : gp_host_work {
  gp_gpu_gemm gemm;
};

cudaError_t run_product(gp_host_work *work) {
  const gp_gpu_gemm &g = static_cast<product *>(work)->gemm;
  if (g.m == 0 || g.n == 0) return cudaSuccess;
  switch (g.type) {
  case GP_F64: multiply_stack<double, double>(g); break;
  case GP_F32: multiply_stack<float, float>(g); break;
  case GP_BF16:
    g.d_type == GP_F32 ? multiply_stack<gp_bf16, float>(g) : multiply_stack<gp_bf16, gp_bf16>(g);
    break;
  default:
    g.d_type == GP_F32 ? multiply_stack<gp_f16, float>(g) : multiply_stack<gp_f16, gp_f16>(g);
    break;
  }
  return cudaSuccess;
}

/* As the interface says, and as the library wants the layout. */
bool fits(const gp_gpu_gemm &g, bool half) {
  const bool sums = g.epilogue == GP_GEMM_ROW_SUMS;
  if (g.epilogue == GP_GEMM_PLAIN || g.m == 0 || g.n == 0) return true;
  return half && g.k > 0 && g.batch <= 1 && g.d_type == (sums ? GP_F32 : g.type) &&
         (sums || (g.ldd % 8 == 0 && !g.accumulate));
}

gp_status check(const gp_gpu_gemm &g) {
  const bool half = g.type == GP_BF16 || g.type == GP_F16,
             whole = g.type == GP_F32 || g.type == GP_F64;
  const bool output = g.d_type == g.type || (half && g.d_type == GP_F32);
  const bool bias = !g.biased || (g.type != GP_F64 && g.k > 0);
  if ((half || whole) && output && bias && fits(g, half)) return GP_OK;
  return gp_gpu_fail(GP_EUNSUPPORTED, "gemm: no product of dtype %d to %d%s, epilogue %d",
                     (int)g.type, (int)g.d_type, g.biased ? " with a bias" : "", (int)g.epilogue);
}

} // namespace

/* ---- what the plugin calls ------------------------------------------------------------------- */

gp_status gp_gemm_prepare(gp_gpu *, const gp_gpu_gemm *gemm) { return check(*gemm); }

gp_status gp_gemm_run(gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  GP_GPU_TRY(check(*gemm));
  product *made = new (std::nothrow) product{};
  if (made) {
    made->run = run_product;
    made->free = [](gp_host_work *self) { delete static_cast<product *>(self); };
    made->gemm = *gemm;
  }
  return gp_gpu_check(gpu, gp_host_submit(gpu->streams[GP_STREAM_COMPUTE], made), "multiplying");
}

void gp_gemm_describe(gp_gpu_library *library) {
  snprintf(library->name, sizeof library->name, "cuBLASLt");
  snprintf(library->why, sizeof library->why, "this is the host's form, for tests: plain loops");
}

gp_status gp_gemm_open(gp_gpu *) { return GP_OK; }

void gp_gemm_close(gp_gpu *) {}
