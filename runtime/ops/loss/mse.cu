/* ops/loss/mse.cu - see mse.c: the sum of squared differences, and its gradient.
 *
 * The sum is the one of ops/reduce, over terms that are computed as they are read, so its order is
 * that of any sum: it depends on the number of elements alone. */
#include "ops/reduce/lines.cuh"

/* ---- forward ------------------------------------------------------------------------------- */

template <typename T> struct square_terms {
  typedef gp_compute<T> sum;
  const T *a, *b;
  /* Tell whether elements from `base` on can be read two at a time, from both operands. */
  __device__ bool paired(int64_t base) const {
    return (((uintptr_t)(a + base) | (uintptr_t)(b + base)) & (2 * sizeof(T) - 1)) == 0;
  }
  static __device__ sum square(T a, T b) {
    const sum off = gp_load(a) - gp_load(b);
    return off * off;
  }
  __device__ sum one(int64_t at) const { return square(a[at], b[at]); }
  __device__ gp_pair<sum> pair(int64_t at) const {
    const gp_pair<T> pa = *reinterpret_cast<const gp_pair<T> *>(a + at);
    const gp_pair<T> pb = *reinterpret_cast<const gp_pair<T> *>(b + at);
    return {{square(pa.at[0], pb.at[0]), square(pa.at[1], pb.at[1])}};
  }
};

template <typename T> static gp_status forward(gp_gpu *gpu, const gp_gpu_call *call) {
  const square_terms<T> source = {(const T *)call->op.in[0].data, (const T *)call->op.in[1].data};
  return gp_lines_run(gpu, source, gp_lines_flat(gp_numel_of(call->op.in[0].meta)),
                      gp_sink_of(&call->op, 0), call->scratch);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward<T>(gpu, call));
  return GP_OK;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  const gp_meta *a = call->in[0].meta;
  *scratch = gp_lines_scratch(1, gp_numel_of(a)) * gp_sum_bytes(a->dtype);
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_mse = {run, prepare};

/* ---- gradient ------------------------------------------------------------------------------ */

enum { DX_THREADS = 256 };

template <typename T> struct differences {
  const T *a, *b;
  const void *dsum;
  gp_dtype dtype; /* of dsum */
  T *da;
  int64_t n;
};

/* da = 2 dsum (a - b), by 16 bytes for the first `packs` groups, then one by one. da
 * may be a or b. */
template <typename T> static __global__ void differences_kernel(differences<T> d, int64_t packs) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const A scale = 2 * gp_get<A>(d.dsum, d.dtype, 0);
  const int64_t me = (int64_t)blockIdx.x * DX_THREADS + threadIdx.x;
  const int64_t all = (int64_t)gridDim.x * DX_THREADS;
  for (int64_t i = me; i < packs; i += all) {
    gp_pack<T> x = ((const gp_pack<T> *)d.a)[i];
    const gp_pack<T> y = ((const gp_pack<T> *)d.b)[i];
#pragma unroll
    for (int k = 0; k < count; k++)
      x.at[k] = gp_store<T>(scale * (gp_load(x.at[k]) - gp_load(y.at[k])));
    ((gp_pack<T> *)d.da)[i] = x;
  }
  for (int64_t i = packs * count + me; i < d.n; i += all)
    d.da[i] = gp_store<T>(scale * (gp_load(d.a[i]) - gp_load(d.b[i])));
}

/* Elements are independent here, so the alignment of the operands may choose how they are moved. */
template <typename T> static gp_status backward(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in;
  const differences<T> d = {
      (const T *)in[0].data, (const T *)in[1].data,     in[2].data,
      in[2].meta->dtype,     (T *)call->op.out[0].data, gp_numel_of(in[0].meta)};
  const bool packed = gp_is_packed(d.a) && gp_is_packed(d.b) && gp_is_packed(d.da);
  const int64_t packs = packed ? d.n / gp_pack<T>::count : 0;
  if (d.n == 0) return GP_OK;
  return GP_LAUNCH(gpu, differences_kernel<T>, gp_blocks(packed ? packs : d.n, DX_THREADS),
                   DX_THREADS, 0, d, packs);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return backward<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_mse_dx = {run_dx, NULL};
