/* tests/cuda/on_host/arithmetic.h - functions of numbers that CUDA has and C++ lacks.
 *
 * Functions that CUDA's documentation calls approximate are the exact ones here, rounded: a host
 * cannot show their error. The host forms no fused products (-ffp-contract=off); only __fmaf_rn is
 * one. */
#ifndef GP_TESTS_CUDA_ON_HOST_ARITHMETIC_H
#define GP_TESTS_CUDA_ON_HOST_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <limits>
#include <type_traits>

/* ---- min and max: NaN gives way to numbers --------------------------------------------------- */

template <typename A, typename B> inline typename std::common_type<A, B>::type min(A a, B b) {
  typedef typename std::common_type<A, B>::type T;
  if (std::is_floating_point<T>::value) return (T)::fmin((T)a, (T)b);
  return (T)b < (T)a ? (T)b : (T)a;
}

template <typename A, typename B> inline typename std::common_type<A, B>::type max(A a, B b) {
  typedef typename std::common_type<A, B>::type T;
  if (std::is_floating_point<T>::value) return (T)::fmax((T)a, (T)b);
  return (T)a < (T)b ? (T)b : (T)a;
}

/* ---- one rounding, never fused --------------------------------------------------------------- */

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __frsqrt_rn(float a) { return (float)(1.0 / sqrt((double)a)); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __drcp_rn(double a) { return 1.0 / a; }

/* ---- the upper word of a product ------------------------------------------------------------- */

inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  return (uint64_t)((wide)a * b >> 64);
}

/* ---- functions ------------------------------------------------------------------------------- */

inline double rsqrt(double a) { return 1.0 / sqrt(a); }
inline float rsqrtf(float a) { return (float)rsqrt((double)a); }
inline float rsqrt(float a) { return rsqrtf(a); }
inline double normcdf(double a) { return 0.5 * erfc(-a * 0.70710678118654752440); }
inline float normcdff(float a) { return (float)normcdf((double)a); }
inline float __expf(float a) { return expf(a); }
inline float __exp10f(float a) { return (float)pow(10.0, (double)a); }
inline float __logf(float a) { return logf(a); }
inline float __log2f(float a) { return log2f(a); }
inline float __log10f(float a) { return log10f(a); }
inline float __powf(float a, float b) { return powf(a, b); }
inline float __sinf(float a) { return sinf(a); }
inline float __cosf(float a) { return cosf(a); }
inline float __tanf(float a) { return tanf(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1) : 0; }

/* ---- bits ------------------------------------------------------------------------------------ */

template <typename To, typename From> inline To gp_host_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

inline int __float_as_int(float a) { return gp_host_bits<int>(a); }
inline unsigned __float_as_uint(float a) { return gp_host_bits<unsigned>(a); }
inline float __int_as_float(int a) { return gp_host_bits<float>(a); }
inline float __uint_as_float(unsigned a) { return gp_host_bits<float>(a); }
inline long long __double_as_longlong(double a) { return gp_host_bits<long long>(a); }
inline double __longlong_as_double(long long a) { return gp_host_bits<double>(a); }

inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
inline int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline int __ffsll(long long a) { return __builtin_ffsll(a); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((int64_t)a * b >> 32); }
__extension__ typedef unsigned __int128 gp_host_wide;
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((gp_host_wide)a * b >> 64);
}

/* ---- conversions: out of range gives the nearest integer there is, NaN gives 0 --------------- */

template <typename To, typename From> inline To gp_host_saturate(From a) {
  const To least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
  if (a != a) return 0;
  if (a <= (From)least) return least;
  return a >= (From)most ? most : (To)a;
}

#define GP_HOST_CONVERT(name, To, From, round)                                                     \
  inline To name(From a) { return gp_host_saturate<To>(round(a)); }
GP_HOST_CONVERT(__float2int_rn, int, float, rintf)
GP_HOST_CONVERT(__float2int_rz, int, float, truncf)
GP_HOST_CONVERT(__float2int_rd, int, float, floorf)
GP_HOST_CONVERT(__float2uint_rn, unsigned, float, rintf)
GP_HOST_CONVERT(__float2uint_rz, unsigned, float, truncf)
GP_HOST_CONVERT(__float2ll_rn, long long, float, rintf)
GP_HOST_CONVERT(__float2ll_rz, long long, float, truncf)
GP_HOST_CONVERT(__double2int_rn, int, double, rint)
GP_HOST_CONVERT(__double2int_rz, int, double, trunc)
GP_HOST_CONVERT(__double2uint_rz, unsigned, double, trunc)
GP_HOST_CONVERT(__double2ll_rn, long long, double, rint)
GP_HOST_CONVERT(__double2ll_rz, long long, double, trunc)
#undef GP_HOST_CONVERT

inline float __int2float_rn(int a) { return (float)a; }
inline float __uint2float_rn(unsigned a) { return (float)a; }
inline float __ll2float_rn(long long a) { return (float)a; }
inline float __ull2float_rn(unsigned long long a) { return (float)a; }
inline double __int2double_rn(int a) { return (double)a; }
inline double __uint2double_rn(unsigned a) { return (double)a; }
inline double __ll2double_rn(long long a) { return (double)a; }
inline double __ull2double_rn(unsigned long long a) { return (double)a; }
inline float __double2float_rn(double a) { return (float)a; }

#endif
