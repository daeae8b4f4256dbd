/* ops/shape/cast.cu - x -> the same values in another dtype, on a GPU; all pairs.
 *
 * The rules are those of base/numbers/convert.c, and so is the way: an element is read into one of
 * three wide types that hold it exactly (float, double, int64) and written from there, rounded once
 * to nearest even. */
#include <type_traits>

#include "ops/elementwise/map.cuh"
#include "ops/shape/boxes.cuh"

/* A bool: one byte, true unless it is 0. */
struct truth {
  uint8_t byte;
};

/* ---- rounding once ------------------------------------------------------------------------- */

/* Round to odd: a later rounding to fewer bits then gives what one rounding would have given. */
static __device__ inline float odd_float(double value) {
  const float near = (float)value;
  if ((double)near == value || value != value) return near;
  unsigned bits = __float_as_uint(near);
  if (fabs((double)near) > fabs(value)) bits--; /* towards zero */
  return __uint_as_float(bits | 1u);
}

/* An int64 as a double whose last bit is sticky, for the same reason. */
static __device__ inline double odd_double(int64_t value) {
  const uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
  const double magnitude =
      size >> 53 ? (double)(size >> 11 | ((size & 0x7ff) != 0)) * 2048.0 : (double)size;
  return value < 0 ? -magnitude : magnitude;
}

/* Return the float from which a half is rounded. */
static __device__ inline float before_half(float value) { return value; }
static __device__ inline float before_half(double value) { return odd_float(value); }
static __device__ inline float before_half(int64_t value) { return odd_float(odd_double(value)); }

/* ---- truncation ---------------------------------------------------------------------------- */

/* Convert to an integer of type T: saturated, NaN gives 0. `above` is the first value beyond T;
 * `below` is the last one that is too low. */
template <typename T, typename W>
static __device__ inline T truncated(W value, W below, W above, T low, T high) {
  if (value >= above) return high;
  if (value > below) return (T)value;
  return value != value ? T(0) : low;
}

static __device__ inline int64_t whole64(float v) {
  return truncated<int64_t>(v, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX);
}
static __device__ inline int64_t whole64(double v) {
  return truncated<int64_t>(v, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
}
static __device__ inline int32_t whole32(float v) {
  return truncated<int32_t>(v, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX);
}
static __device__ inline int32_t whole32(double v) {
  return truncated<int32_t>(v, -0x1p31 - 1, 0x1p31, INT32_MIN, INT32_MAX);
}
template <typename W> static __device__ inline uint8_t whole8(W v) {
  return truncated<uint8_t>(v, W(-1), W(256), 0, UINT8_MAX);
}

/* Integers narrow modulo 2^bits. */
static __device__ inline int64_t whole64(int64_t v) { return v; }
static __device__ inline int32_t whole32(int64_t v) { return (int32_t)(uint32_t)v; }
static __device__ inline uint8_t whole8(int64_t v) { return (uint8_t)v; }

/* ---- reading and writing ------------------------------------------------------------------- */

static __device__ inline float widen(float x) { return x; }
static __device__ inline double widen(double x) { return x; }
static __device__ inline float widen(gp_bf16 x) { return gp_load(x); }
static __device__ inline float widen(gp_f16 x) { return gp_load(x); }
static __device__ inline int64_t widen(int64_t x) { return x; }
static __device__ inline int64_t widen(int32_t x) { return x; }
static __device__ inline int64_t widen(uint8_t x) { return x; }
static __device__ inline int64_t widen(truth x) { return x.byte != 0; }

template <typename W> static __device__ inline void narrow(W v, float *y) { *y = (float)v; }
template <typename W> static __device__ inline void narrow(W v, double *y) { *y = (double)v; }
template <typename W> static __device__ inline void narrow(W v, gp_bf16 *y) {
  *y = gp_store<gp_bf16>(before_half(v));
}
template <typename W> static __device__ inline void narrow(W v, gp_f16 *y) {
  *y = gp_store<gp_f16>(before_half(v));
}
template <typename W> static __device__ inline void narrow(W v, int64_t *y) { *y = whole64(v); }
template <typename W> static __device__ inline void narrow(W v, int32_t *y) { *y = whole32(v); }
template <typename W> static __device__ inline void narrow(W v, uint8_t *y) { *y = whole8(v); }
template <typename W> static __device__ inline void narrow(W v, truth *y) { y->byte = v != 0; }

template <typename To> struct converted {
  template <typename From> __device__ To operator()(From x) const {
    To y;
    narrow(widen(x), &y);
    return y;
  }
};

/* ---- the op -------------------------------------------------------------------------------- */

/* Equal dtypes keep every bit. */
template <typename To, typename From>
static gp_status cast_pair(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *out = &call->op.out[0], *in = call->op.in;
  if constexpr (std::is_same<To, From>::value)
    return gp_move(gpu, out, in);
  else
    return gp_map<To, From>(gpu, converted<To>(), out, in);
}

template <typename To> static gp_status cast_to(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (call->op.in[0].meta->dtype) {
  case GP_F32: return cast_pair<To, float>(gpu, call);
  case GP_F64: return cast_pair<To, double>(gpu, call);
  case GP_BF16: return cast_pair<To, gp_bf16>(gpu, call);
  case GP_F16: return cast_pair<To, gp_f16>(gpu, call);
  case GP_I64: return cast_pair<To, int64_t>(gpu, call);
  case GP_I32: return cast_pair<To, int32_t>(gpu, call);
  case GP_U8: return cast_pair<To, uint8_t>(gpu, call);
  default: return cast_pair<To, truth>(gpu, call);
  }
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (call->op.out[0].meta->dtype) {
  case GP_F32: return cast_to<float>(gpu, call);
  case GP_F64: return cast_to<double>(gpu, call);
  case GP_BF16: return cast_to<gp_bf16>(gpu, call);
  case GP_F16: return cast_to<gp_f16>(gpu, call);
  case GP_I64: return cast_to<int64_t>(gpu, call);
  case GP_I32: return cast_to<int32_t>(gpu, call);
  case GP_U8: return cast_to<uint8_t>(gpu, call);
  default: return cast_to<truth>(gpu, call);
  }
}

const gp_gpu_kernel gp_gpu_cast = {run, NULL};
