/* tests/cuda/libraries/cublaslt.cpp - the few functions of cuBLASLt that the plugin calls, as plain
 * loops.
 * Each element is one sum over k in order: in f64 for f64, else in f32. So its bits depend neither
 * on how many rows are computed at once nor on the transposes, nor on the algorithm, of which there
 * are two: one with a workspace and one without. It is strict as the library is: it refuses sizes
 * that do not fit, layouts of epilogues, a workspace that is too small.
 *
 * GPIPE_TEST_CUDA_FAIL (cudart/error.c) lets any call fail with a status of the library. A code
 * from 100 on is CUDA's: the call then fails because the GPU failed (EXECUTION_FAILED), or because
 * it spoilt a capture (900 to 908). GPIPE_TEST_GEMM_ALIGNED=1: operands whose rows do not begin at
 * multiples of 16 bytes are refused. */
#include <cublasLt.h>

#include "device/cuda/gemm/gemm.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "../cudart/cudart.h"
#include "device/cuda/kernel/device.cuh"

namespace {

/* ---- products -------------------------------------------------------------------------------- */

/* Returns op(X) [rows, columns], row after row, in the type of the computation. */
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

/* Computes the tanh form of GELU: x times the sigmoid of 2 u, and its derivative. */
double gate(double x) {
  return 1 / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

double slope(double x) {
  const double s = gate(x);
  return s + x * s * (1 - s) * 2 * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/* Applies the epilogue to element `at`, as gp_gemm_epilogue says. */
template <typename D> gp_compute<D> finish(const gp_gpu_gemm &g, gp_compute<D> x, int64_t at) {
  typedef gp_compute<D> A;
  D *aux = (D *)g.aux;
  if (g.epilogue == GP_GEMM_GELU_DX) return (A)(x * slope(gp_load(aux[at])));
  if (g.epilogue != GP_GEMM_GELU) return x;
  if (g.keeps) aux[at] = gp_store<D>(x);
  return (A)(x * gate(x));
}

/* Writes a row: the sum, the old value, the bias, the epilogue. */
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

/* Adds up the products of the left operand's rows, m x k. */
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

/* ---- work of a stream ------------------------------------------------------------------------ */

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

cudaError_t submit(const gp_gpu_gemm &g, cudaStream_t stream) {
  product *made = new (std::nothrow) product{};
  if (made) {
    made->run = run_product;
    made->free = [](gp_host_work *self) { delete static_cast<product *>(self); };
    made->gemm = g;
  }
  return gp_host_submit(stream, made);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

struct product_desc {
  cublasComputeType_t compute;
  cublasOperation_t first, second;
  cublasLtEpilogue_t epilogue;
  const void *bias;
  void *aux;
  int64_t aux_ld;
};

struct layout {
  cudaDataType_t type;
  int64_t rows, columns, ld, stride;
  int32_t batch;
};

static_assert(sizeof(product_desc) <= sizeof(cublasLtMatmulDescOpaque_t), "");
static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "");

const product_desc &of(cublasLtMatmulDesc_t d) { return *(const product_desc *)d; }
const layout &of(cublasLtMatrixLayout_t l) { return *(const layout *)l; }

/* Returns the status that the environment asks for in this call. */
cublasStatus_t fails(const char *function) {
  const int code = gp_cudart_wanted(function);
  if (code < 100) return (cublasStatus_t)code;
  (void)gp_cudart_set((cudaError_t)code);
  const bool capture =
      code >= cudaErrorStreamCaptureUnsupported && code < cudaErrorStreamCaptureUnsupported + 9;
  if (capture && gp_cudart_is_capturing()) gp_cudart_spoil();
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

#define ENTER()                                                                                    \
  do {                                                                                             \
    const cublasStatus_t wanted = fails(__func__);                                                 \
    if (wanted != CUBLAS_STATUS_SUCCESS) return wanted;                                            \
  } while (0)

template <typename T> cublasStatus_t take(T *to, const void *value, size_t bytes) {
  if (bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T> cublasStatus_t make(T **to) {
  *to = new (std::nothrow) T{};
  return *to ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

/* ---- descriptions of a product --------------------------------------------------------------- */

gp_dtype dtype_of(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_64F: return GP_F64;
  case CUDA_R_16BF: return GP_BF16;
  case CUDA_R_16F: return GP_F16;
  default: return GP_F32;
  }
}

void set_epilogue(const product_desc &d, gp_gpu_gemm *g) {
  g->bias = d.bias, g->aux = d.aux;
  switch (d.epilogue) {
  case CUBLASLT_EPILOGUE_BIAS: g->biased = true; break;
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: g->keeps = true; /* fall through */
  case CUBLASLT_EPILOGUE_GELU_BIAS: g->biased = true, g->epilogue = GP_GEMM_GELU; break;
  case CUBLASLT_EPILOGUE_GELU_AUX: g->keeps = true; /* fall through */
  case CUBLASLT_EPILOGUE_GELU: g->epilogue = GP_GEMM_GELU; break;
  case CUBLASLT_EPILOGUE_DGELU: g->epilogue = GP_GEMM_GELU_DX; break;
  case CUBLASLT_EPILOGUE_BGRADB: g->epilogue = GP_GEMM_ROW_SUMS, g->aux = (void *)d.bias; break;
  default: break;
  }
}

/* Describes the product by rows: the library's first operand is our right one. */
gp_gpu_gemm describe(const product_desc &d, const layout &a, const layout &b, const layout &to) {
  gp_gpu_gemm g = {};
  g.type = dtype_of(a.type), g.d_type = dtype_of(to.type);
  g.transpose_a = d.second == CUBLAS_OP_T, g.transpose_b = d.first == CUBLAS_OP_T;
  g.m = to.columns, g.n = to.rows, g.k = g.transpose_b ? a.rows : a.columns;
  g.lda = b.ld, g.ldb = a.ld, g.ldd = to.ld;
  g.batch = to.batch, g.stride_a = b.stride, g.stride_b = a.stride, g.stride_d = to.stride;
  set_epilogue(d, &g);
  return g;
}

bool fits_sizes(const gp_gpu_gemm &g, const layout &a, const layout &b, const layout &to) {
  const bool left =
      b.columns == (g.transpose_a ? g.k : g.m) && b.rows == (g.transpose_a ? g.m : g.k);
  const bool right = a.columns == (g.transpose_b ? g.n : g.k);
  return g.m > 0 && g.n > 0 && g.k > 0 && left && right && a.ld >= a.rows && b.ld >= b.rows &&
         to.ld >= to.rows && a.batch == to.batch && b.batch == to.batch;
}

bool fits_epilogue(const gp_gpu_gemm &g, int64_t aux_ld) {
  const bool half = g.type == GP_BF16 || g.type == GP_F16, sums = g.epilogue == GP_GEMM_ROW_SUMS;
  if (g.biased && g.type == GP_F64) return false;
  if (g.epilogue == GP_GEMM_PLAIN) return true;
  const bool aux = g.epilogue == GP_GEMM_GELU_DX || g.keeps;
  return half && g.batch <= 1 && g.d_type == (sums ? GP_F32 : g.type) &&
         (!aux || (aux_ld == g.ldd && aux_ld % 8 == 0));
}

bool is_aligned(const layout &l) {
  const int64_t size = l.type == CUDA_R_64F ? 8 : l.type == CUDA_R_32F ? 4 : 2;
  return l.ld * size % 16 == 0;
}

cublasStatus_t check(cublasLtMatmulDesc_t product, const layout &a, const layout &b,
                     const layout &to) {
  const gp_gpu_gemm g = describe(of(product), a, b, to);
  const char *strict = getenv("GPIPE_TEST_GEMM_ALIGNED");
  if (!fits_sizes(g, a, b, to)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool half = g.type == GP_BF16 || g.type == GP_F16;
  if (a.type != b.type || (g.d_type != g.type && !(half && g.d_type == GP_F32)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (strict && *strict == '1' && !(is_aligned(a) && is_aligned(b) && is_aligned(to)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return fits_epilogue(g, of(product).aux_ld) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

} // namespace

/* ---- what the plugin calls ------------------------------------------------------------------- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  ENTER();
  static char one;
  *handle = (cublasLtHandle_t)&one;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_REFUSED";
}

const char *cublasLtGetStatusString(cublasStatus_t) { return "refused by the stand-in"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, cublasComputeType_t compute,
                                        cudaDataType_t) {
  ENTER();
  const cublasStatus_t status = make(to);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  *(product_desc *)*to = {compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL,
                          0};
  return status;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  ENTER();
  product_desc *d = (product_desc *)product;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA: return take(&d->first, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB: return take(&d->second, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(&d->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(&d->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(&d->aux, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(&d->aux_ld, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
  case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return CUBLAS_STATUS_SUCCESS;
  default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  ENTER();
  const cublasStatus_t status = make(to);
  if (status == CUBLAS_STATUS_SUCCESS)
    *(layout *)*to = {type, (int64_t)rows, (int64_t)columns, ld, 0, 1};
  return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete l;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
  ENTER();
  layout *to = (layout *)l;
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(&to->batch, value, bytes)
                                                         : take(&to->stride, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to) {
  ENTER();
  return make(to);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  ENTER();
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return take(&preference->data[0], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/* An algorithm has a mark, its number, and the workspace that it needs. */
enum { MARK = 0x6c74, SOME_WORKSPACE = 1 << 16 };

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *found, int *count) {
  ENTER();
  *count = 0;
  const cublasStatus_t status = check(product, of(a), of(b), of(d));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (uint64_t i = preference->data[0] >= SOME_WORKSPACE ? 0 : 1; i < 2 && *count < most; i++) {
    cublasLtMatmulHeuristicResult_t *to = &found[(*count)++];
    *to = {};
    to->workspaceSize = i == 0 ? SOME_WORKSPACE : 0;
    to->algo.data[0] = MARK, to->algo.data[1] = i, to->algo.data[2] = to->workspaceSize;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream) {
  ENTER();
  const cublasStatus_t status = check(product, of(la), of(lb), of(ld));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const uint64_t needed = algorithm->data[2];
  if (algorithm->data[0] != MARK || needed > bytes || (needed && !workspace))
    return CUBLAS_STATUS_INVALID_VALUE;
  gp_gpu_gemm g = describe(of(product), of(la), of(lb), of(ld));
  g.a = b, g.b = a, g.c = c, g.d = d;
  g.accumulate = g.type == GP_F64 ? *(const double *)beta != 0 : *(const float *)beta != 0;
  return submit(g, stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
