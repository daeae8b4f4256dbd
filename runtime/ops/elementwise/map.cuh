/* ops/elementwise/map.cuh - one kernel for all elementwise ops; an op is what it does to one
 * element.
 *
 *   struct plus {
 *     template <typename C> __device__ C operator()(C a, C b) const { return a + b; }
 *   };
 *   const gp_gpu_kernel gp_gpu_add = {gp_map_number<2, plus>, NULL};
 *
 * A thread takes a unit of the walk: as many neighbouring elements as fill 16 bytes of the widest
 * operand, or one element, if operands are not aligned for that. One kernel does both. An element's
 * bits never depend on its unit, and each is read before it is written, so the output may be an
 * input's memory. Functors of all files share one namespace, so their names must differ. */
#ifndef GP_OPS_ELEMENTWISE_MAP_CUH
#define GP_OPS_ELEMENTWISE_MAP_CUH

#include <string.h>

#include <utility>

#include "ops/elementwise/walk.cuh"

/* Eight warps hide the latency of a unit's loads, and eight such blocks fill an SM. */
enum { GP_MAP_THREADS = 256 };

/* ---- lanes --------------------------------------------------------------------------------- */

/* Neighbouring elements that move at once. */
template <typename T, int LANES> struct alignas(LANES * sizeof(T)) gp_lanes { T at[LANES]; };

/* Read LANES elements that lie side by side (step 1), or one that stands for all (0). */
template <typename T, int LANES>
static __device__ inline gp_lanes<T, LANES> gp_read_lanes(const T *from, int64_t step) {
  if (step == 1) return *reinterpret_cast<const gp_lanes<T, LANES> *>(from);
  gp_lanes<T, LANES> x;
  const T first = *from;
#pragma unroll
  for (int i = 0; i < LANES; i++) x.at[i] = first;
  return x;
}

/* Write all lanes by one access. 16 bytes are stored as a uint4: for a struct of elements nvcc
 * sometimes makes smaller stores. */
template <typename T, int LANES>
static __device__ inline void gp_write_whole(T *to, const gp_lanes<T, LANES> &x) {
  if constexpr (sizeof x == sizeof(uint4)) {
    uint4 bits;
    memcpy(&bits, &x, sizeof bits);
    __stwb(reinterpret_cast<uint4 *>(to), bits);
  } else {
    *reinterpret_cast<gp_lanes<T, LANES> *>(to) = x;
  }
}

template <int LANES, typename Out, typename F, typename... In>
static __device__ inline gp_lanes<Out, LANES> gp_apply_lanes(const F &f,
                                                             const gp_lanes<In, LANES> &...x) {
  gp_lanes<Out, LANES> y;
#pragma unroll
  for (int i = 0; i < LANES; i++) y.at[i] = f(x.at[i]...);
  return y;
}

/* ---- the kernel ---------------------------------------------------------------------------- */

/* K counts the inputs: input k is operand k + 1. Single elements, and those of a unit that the end
 * of a row cuts short, go through one copy of f. */
template <int LANES, typename F, typename Out, typename... In, size_t... K>
static __device__ inline void gp_map_unit(const F &f, const gp_grid &grid, uint32_t unit,
                                          std::index_sequence<K...>) {
  int64_t at[1 + sizeof...(In)];
  const int count = gp_grid_locate(grid, unit, at);
  Out *to = static_cast<Out *>(grid.data[0]) + at[0];
  if (count == LANES) {
    gp_write_whole(
        to, gp_apply_lanes<LANES, Out>(
                f, gp_read_lanes<In, LANES>(static_cast<const In *>(grid.data[K + 1]) + at[K + 1],
                                            grid.step[K + 1])...));
    return;
  }
#pragma unroll 1
  for (int i = 0; i < count; i++)
    to[i * grid.step[0]] =
        f(static_cast<const In *>(grid.data[K + 1])[at[K + 1] + i * grid.step[K + 1]]...);
}

template <int LANES, typename F, typename Out, typename... In>
static __global__ void __launch_bounds__(GP_MAP_THREADS) gp_map_kernel(F f, gp_grid grid) {
  const uint32_t threads = gridDim.x * blockDim.x;
  for (uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x; unit < grid.units; unit += threads)
    gp_map_unit<LANES, F, Out, In...>(f, grid, unit, std::index_sequence_for<In...>());
}

/* ---- launching ----------------------------------------------------------------------------- */

template <int LANES, typename F, typename Out, typename... In>
static gp_status gp_map_walk(gp_gpu *gpu, F f, gp_walk walk) {
  const int64_t units = gp_walk_units(&walk);
  if (units == 0) return GP_OK;
  if (units > GP_WALK_MOST) {
    const gp_walk rest = gp_walk_halve(&walk);
    GP_GPU_TRY((gp_map_walk<LANES, F, Out, In...>(gpu, f, walk)));
    return gp_map_walk<LANES, F, Out, In...>(gpu, f, rest);
  }
  return GP_LAUNCH(gpu, (gp_map_kernel<LANES, F, Out, In...>), gp_blocks(units, GP_MAP_THREADS),
                   GP_MAP_THREADS, 0, f, gp_grid_make(&walk));
}

constexpr int gp_most(int a) { return a; }
template <typename... More> constexpr int gp_most(int a, int b, More... more) {
  return gp_most(a > b ? a : b, more...);
}

/* Compute out = f(in[0], in[1], ..) for elements of these types, at most three inputs. */
template <typename Out, typename... In, typename F>
static gp_status gp_map(gp_gpu *gpu, F f, const gp_arg *out, const gp_arg *in) {
  constexpr int count = sizeof...(In), lanes = 16 / gp_most(sizeof(Out), sizeof(In)...);
  const int sizes[] = {sizeof(Out), sizeof(In)...};
  const gp_arg *args[1 + GP_WALK_OPERANDS] = {out};
  static_assert(count < GP_WALK_OPERANDS, "a walk has room for three inputs");
  for (int k = 0; k < count; k++) args[1 + k] = &in[k];
  static_assert(lanes > 1, "single elements go another way than units");
  return gp_map_walk<lanes, F, Out, In...>(gpu, f, gp_walk_make(args, sizes, 1 + count, lanes));
}

/* ---- ops whose N inputs and output have one type ------------------------------------------- */

/* Compute f on stored floats: in f32 if they are halves. */
template <typename F> struct gp_computed {
  F f;
  template <typename T, typename... More> __device__ T operator()(T a, More... b) const {
    return gp_store<T>(f(gp_load(a), gp_load(b)...));
  }
};

template <int N, typename T, typename F>
static gp_status gp_map_same(gp_gpu *gpu, F f, const gp_gpu_call *call) {
  const gp_arg *out = &call->op.out[0], *in = call->op.in;
  if constexpr (N == 1) return gp_map<T, T>(gpu, f, out, in);
  if constexpr (N == 2) return gp_map<T, T, T>(gpu, f, out, in);
  if constexpr (N == 3) return gp_map<T, T, T, T>(gpu, f, out, in);
}

/* Run an op with attributes, which f holds, on f32, f64, bf16 and f16. */
template <int N, typename F>
static gp_status gp_map_float_with(gp_gpu *gpu, F f, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return (gp_map_same<N, T>(gpu, gp_computed<F>{f}, call)))
  return GP_OK;
}

/* Run an op without attributes. */
template <int N, typename F> static gp_status gp_map_float(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_map_float_with<N>(gpu, F(), call);
}

/* Run one on i64 and i32 too: as unsigned ones, which wrap around instead of being undefined. */
template <int N, typename F> static gp_status gp_map_number(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_dtype dtype = call->op.out[0].meta->dtype;
  if (dtype == GP_I64) return gp_map_same<N, uint64_t>(gpu, F(), call);
  if (dtype == GP_I32) return gp_map_same<N, uint32_t>(gpu, F(), call);
  return gp_map_float<N, F>(gpu, call);
}

/* The same for ops in which the sign counts, with attributes or without. */
template <int N, typename F>
static gp_status gp_map_signed_with(gp_gpu *gpu, F f, const gp_gpu_call *call) {
  const gp_dtype dtype = call->op.out[0].meta->dtype;
  if (dtype == GP_I64) return gp_map_same<N, int64_t>(gpu, f, call);
  if (dtype == GP_I32) return gp_map_same<N, int32_t>(gpu, f, call);
  return gp_map_float_with<N>(gpu, f, call);
}
template <int N, typename F> static gp_status gp_map_signed(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_map_signed_with<N>(gpu, F(), call);
}

#endif
