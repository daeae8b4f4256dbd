/* ops/arithmetic/bits.c - and, or, exclusive or, and shifts of the 64 bits of integers.
 *
 * A shift by 64 or more, or by less than 0, moves all bits out: that leaves 0, or -1 after a right
 * shift of a negative number, since the sign moves in. Nothing here has a gradient. */
#include "ops/elementwise/loops.h"

static inline bool moves_all(int64_t count) { return count < 0 || count > 63; }

static inline int64_t shifted_left(int64_t a, int64_t count) {
  return moves_all(count) ? 0 : (int64_t)((uint64_t)a << count);
}

static inline int64_t shifted_right(int64_t a, int64_t count) {
  return a >> (moves_all(count) ? 63 : count);
}

#define BITS(op, expr)                                                                             \
  GP_MAP2(op##_loop, int64_t, int64_t, expr)                                                       \
  static gp_status run_##op(const gp_call *call, gp_span span) {                                   \
    return gp_map_number(call, span, (const gp_loop[]){NULL, NULL, op##_loop, NULL});              \
  }                                                                                                \
  GP_MAP_OP(op, 2, .infer = gp_map_infer, .cost = gp_map_cost_light)

BITS(bitwise_and, a &b)
BITS(bitwise_or, a | b)
BITS(bitwise_xor, a ^ b)
BITS(bitwise_left_shift, shifted_left(a, b))
BITS(bitwise_right_shift, shifted_right(a, b))
