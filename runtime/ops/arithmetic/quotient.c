/* ops/arithmetic/quotient.c - whole quotients and remainders: floor_divide, remainder, fmod.
 *
 * Remainders are C's fmod, which is exact however large the quotient is; x - floor(x / y) * y is
 * not. remainder has the sign of b, fmod that of a. Integers divide natively: all 64 bits count, a
 * divisor of 0 gives 0 (scripts get an error before, where values are known), and the least integer
 * by -1 wraps around. */
#include "ops/elementwise/loops.h"

/* ---- floats --------------------------------------------------------------------------------- */

/* Make the remainder with the sign of b from that with the sign of a. */
#define WITH_SIGN(r, b) ((r) != 0 && ((r) < 0) != ((b) < 0) ? (r) + (b) : (r))

/* Round the quotient after the remainder was subtracted, so that it is whole up to rounding. */
#define FLOORED(T, fmod_of, floor_of, sign_of)                                                     \
  static inline T floored_##T(T a, T b) {                                                          \
    if (b == 0) return a / b;                                                                      \
    const T left = fmod_of(a, b);                                                                  \
    T whole = (a - left) / b;                                                                      \
    if (left != 0 && (left < 0) != (b < 0)) whole -= 1;                                            \
    if (whole == 0) return sign_of(0, a / b);                                                      \
    const T below = floor_of(whole);                                                               \
    return whole - below > (T)0.5 ? below + 1 : below;                                             \
  }
FLOORED(float, fmodf, floorf, copysignf)
FLOORED(double, fmod, floor, copysign)

static inline float remainder_float(float a, float b) {
  const float left = fmodf(a, b);
  return WITH_SIGN(left, b);
}

static inline double remainder_double(double a, double b) {
  const double left = fmod(a, b);
  return WITH_SIGN(left, b);
}

GP_MAP2(floor_divide_f32, float, float, floored_float(a, b))
GP_MAP2(floor_divide_f64, double, double, floored_double(a, b))
GP_MAP2(remainder_f32, float, float, remainder_float(a, b))
GP_MAP2(remainder_f64, double, double, remainder_double(a, b))
GP_MAP2(fmod_f32, float, float, fmodf(a, b))
GP_MAP2(fmod_f64, double, double, fmod(a, b))

/* ---- integers ------------------------------------------------------------------------------- */

static inline int64_t left_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

static inline int64_t remainder_of(int64_t a, int64_t b) {
  const int64_t left = left_of(a, b);
  return WITH_SIGN(left, b);
}

static inline int64_t floored(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

GP_MAP2(floor_divide_i64, int64_t, int64_t, floored(a, b))
GP_MAP2(floor_divide_i32, int32_t, int32_t, floored(a, b))
GP_MAP2(remainder_i64, int64_t, int64_t, remainder_of(a, b))
GP_MAP2(remainder_i32, int32_t, int32_t, remainder_of(a, b))
GP_MAP2(fmod_i64, int64_t, int64_t, left_of(a, b))
GP_MAP2(fmod_i32, int32_t, int32_t, left_of(a, b))

/* ---- ops ------------------------------------------------------------------------------------ */

GP_MAP_NUMBER_KERNEL(floor_divide)
GP_MAP_NUMBER_KERNEL(remainder)
GP_MAP_NUMBER_KERNEL(fmod)

/* y = a - q b with a whole q: da = dy, db = -dy q, and q = (a - y) / b. */
static gp_status vjp(gp_vjp *v) {
  gp_ref q, db;
  GP_TRY(gp_vjp_set_broadcast(v, 0, v->dout[0]));
  if (!v->need[1]) return GP_OK;
  GP_TRY(gp_vjp_op2(v, GP_OP_sub, v->in[0], v->out[0], &q));
  GP_TRY(gp_vjp_op2(v, GP_OP_div, q, v->in[1], &q));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], q, &db));
  GP_TRY(gp_vjp_op1(v, GP_OP_neg, db, &db));
  return gp_vjp_set_broadcast(v, 1, db);
}

GP_MAP_OP(floor_divide, 2, .infer = gp_map_infer, .cost = gp_map_cost_heavy)
GP_MAP_OP(remainder, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)
GP_MAP_OP(fmod, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)
