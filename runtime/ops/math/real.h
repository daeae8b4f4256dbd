/* ops/math/real.h - compile one kernel source for f32 and for f64.
 *
 * Usage: #define GP_REAL_SOURCE "ops/norm/softmax.inc", then include this file (it has no guard on
 * purpose). In the source REAL is the type, FN(name) a name of this type, LOG, SQRT and GEMM the
 * functions for it, EXP the exponential of a number that is not above 0. GP_BY_REAL picks the
 * function for a dtype. */
#include <math.h>

#include "device/cpu/gemm.h"
#include "ops/math/falling_exp.h"

#ifndef GP_BY_REAL
#define GP_BY_REAL(dtype, name) ((dtype) == GP_F32 ? name##_f32 : name##_f64)
/* Define kernel `run` by the loops of this name, which return void: they cannot fail. */
#define GP_REAL_KERNEL(run, name)                                                                  \
  static gp_status run(const gp_call *call, gp_span span) {                                        \
    GP_BY_REAL(call->in[0].meta->dtype, name)(call, span);                                         \
    return GP_OK;                                                                                  \
  }
#endif

#define REAL     float
#define FN(name) name##_f32
#define EXP      gp_falling_expf
#define LOG      logf
#define SQRT     sqrtf
#define GEMM     gp_gemm_f32
#include GP_REAL_SOURCE
#undef REAL
#undef FN
#undef EXP
#undef LOG
#undef SQRT
#undef GEMM

#define REAL     double
#define FN(name) name##_f64
#define EXP      exp
#define LOG      log
#define SQRT     sqrt
#define GEMM     gp_gemm_f64
#include GP_REAL_SOURCE
#undef REAL
#undef FN
#undef EXP
#undef LOG
#undef SQRT
#undef GEMM

#undef GP_REAL_SOURCE
