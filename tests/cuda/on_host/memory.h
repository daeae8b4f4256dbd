/* tests/cuda/on_host/memory.h - loads and stores with hints, fences, atomics on integers.
 *
 * Atomics are real ones, because two logical devices of one GPU are two threads of the host. There
 * are none on floats, whose sums would depend on which thread comes first. */
#ifndef GP_TESTS_CUDA_ON_HOST_MEMORY_H
#define GP_TESTS_CUDA_ON_HOST_MEMORY_H

#include <type_traits>

/* ---- hints, which mean nothing to a host ----------------------------------------------------- */

template <typename T> inline T __ldg(const T *from) { return *from; }
template <typename T> inline T __ldca(const T *from) { return *from; }
template <typename T> inline T __ldcg(const T *from) { return *from; }
template <typename T> inline T __ldcs(const T *from) { return *from; }
template <typename T> inline T __ldlu(const T *from) { return *from; }
template <typename T> inline T __ldcv(const T *from) { return *(const volatile T *)from; }
template <typename T> inline void __stwb(T *to, T value) { *to = value; }
template <typename T> inline void __stcg(T *to, T value) { *to = value; }
template <typename T> inline void __stcs(T *to, T value) { *to = value; }
template <typename T> inline void __stwt(T *to, T value) { *to = value; }

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* ---- atomics: each returns the old value ----------------------------------------------------- */

/* The second argument has the type of the first; it is converted as for an ordinary function. */
template <typename T> struct gp_host_same { typedef T type; };
template <typename T> using gp_host_like = typename gp_host_same<T>::type;

template <typename T, typename F> inline T gp_host_atomic(T *at, F change) {
  static_assert(std::is_integral<T>::value && sizeof(T) >= 4,
                "atomics are for integers of 4 or 8 bytes");
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(at, &old, change(old), false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

#define GP_HOST_ATOMIC(name, expression)                                                           \
  template <typename T> inline T name(T *at, gp_host_like<T> with) {                               \
    return gp_host_atomic(at, [with](T old) -> T { return (T)(expression); });                     \
  }
GP_HOST_ATOMIC(atomicAdd, old + with)
GP_HOST_ATOMIC(atomicSub, old - with)
GP_HOST_ATOMIC(atomicExch, ((void)old, with))
GP_HOST_ATOMIC(atomicMin, old < with ? old : with)
GP_HOST_ATOMIC(atomicMax, old > with ? old : with)
GP_HOST_ATOMIC(atomicAnd, (old) & (with))
GP_HOST_ATOMIC(atomicOr, old | with)
GP_HOST_ATOMIC(atomicXor, old ^ with)
GP_HOST_ATOMIC(atomicInc, old >= with ? 0 : old + 1)
GP_HOST_ATOMIC(atomicDec, old == 0 || old > with ? with : old - 1)
#undef GP_HOST_ATOMIC

template <typename T> inline T atomicCAS(T *at, gp_host_like<T> expected, gp_host_like<T> with) {
  return gp_host_atomic(at, [=](T old) -> T { return old == expected ? with : old; });
}

#endif
