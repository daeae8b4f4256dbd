/* ops/choice/predicate.h - predicates: ops on elements of any one dtype that answer with bool.
 *
 * Every pair of (predicate, stored type) is a loop, so a macro writes them; a half is tested as the
 * float that it stands for. No gradient flows through an answer. */
#ifndef GP_OPS_CHOICE_PREDICATE_H
#define GP_OPS_CHOICE_PREDICATE_H

#include "base/tensor.h"
#include "ops/elementwise/loops.h"

/* Define the op that tests two elements by the macro OF(p, q). */
#define GP_PREDICATE2(op, OF)                                                                      \
  GP_MAP2(op##_f32, float, uint8_t, OF(a, b))                                                      \
  GP_MAP2(op##_f64, double, uint8_t, OF(a, b))                                                     \
  GP_MAP2(op##_bf16, uint16_t, uint8_t, OF(gp_bf16_to_float(a), gp_bf16_to_float(b)))              \
  GP_MAP2(op##_f16, uint16_t, uint8_t, OF(gp_f16_to_float(a), gp_f16_to_float(b)))                 \
  GP_MAP2(op##_i64, int64_t, uint8_t, OF(a, b))                                                    \
  GP_MAP2(op##_i32, int32_t, uint8_t, OF(a, b))                                                    \
  GP_MAP2(op##_u8, uint8_t, uint8_t, OF(a, b))                                                     \
  GP_PREDICATE(op, 2)

/* Define the op that tests a float by OF(p), and an integer or a bool by WHOLE(p). */
#define GP_PREDICATE1(op, OF, WHOLE)                                                               \
  GP_MAP1(op##_f32, float, uint8_t, OF(a))                                                         \
  GP_MAP1(op##_f64, double, uint8_t, OF(a))                                                        \
  GP_MAP1(op##_bf16, uint16_t, uint8_t, OF(gp_bf16_to_float(a)))                                   \
  GP_MAP1(op##_f16, uint16_t, uint8_t, OF(gp_f16_to_float(a)))                                     \
  GP_MAP1(op##_i64, int64_t, uint8_t, WHOLE(a))                                                    \
  GP_MAP1(op##_i32, int32_t, uint8_t, WHOLE(a))                                                    \
  GP_MAP1(op##_u8, uint8_t, uint8_t, WHOLE(a))                                                     \
  GP_PREDICATE(op, 1)

/* Define the table of the loops above by dtype, and the op of n operands. */
#define GP_PREDICATE(op, n)                                                                        \
  static const gp_loop op##_loops[GP_DTYPE_COUNT] = {                                              \
      [GP_F32] = op##_f32, [GP_F64] = op##_f64, [GP_BF16] = op##_bf16, [GP_F16] = op##_f16,        \
      [GP_I64] = op##_i64, [GP_I32] = op##_i32, [GP_U8] = op##_u8,     [GP_BOOL] = op##_u8,        \
  };                                                                                               \
  static gp_status run_##op(const gp_call *call, gp_span span) {                                   \
    return gp_map(call, span, op##_loops[call->in[0].meta->dtype]);                                \
  }                                                                                                \
  GP_MAP_OP(op, n, .infer = gp_predicate_infer, .cost = gp_map_cost_light)

/* Operands that broadcast -> bool. */
static inline gp_status gp_predicate_infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_infer_broadcast(sig, &shape));
  return gp_infer_out(sig, GP_BOOL, &shape);
}

#endif
