/* ops/choice/compare.c - eq ne lt le gt ge: two values of any one dtype -> bool.
 *
 * Every pair of (comparison, stored type) is a loop, so they are written by a macro; the half types
 * are compared as the floats they stand for. A comparison with NaN is false, except ne. */
#include "base/tensor.h"
#include "ops/elementwise/loops.h"

static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_infer_broadcast(sig, &shape));
  return gp_infer_out(sig, GP_BOOL, &shape);
}

/* The loops of one comparison, their table by dtype, and the definition. No gradient flows. */
#define COMPARISON(op, sign)                                                                       \
  GP_MAP2(op##_f32, float, uint8_t, a sign b)                                                      \
  GP_MAP2(op##_f64, double, uint8_t, a sign b)                                                     \
  GP_MAP2(op##_bf16, uint16_t, uint8_t, gp_bf16_to_float(a) sign gp_bf16_to_float(b))              \
  GP_MAP2(op##_f16, uint16_t, uint8_t, gp_f16_to_float(a) sign gp_f16_to_float(b))                 \
  GP_MAP2(op##_i64, int64_t, uint8_t, a sign b)                                                    \
  GP_MAP2(op##_i32, int32_t, uint8_t, a sign b)                                                    \
  GP_MAP2(op##_u8, uint8_t, uint8_t, a sign b)                                                     \
  static const gp_loop op##_loops[GP_DTYPE_COUNT] = {                                              \
      [GP_F32] = op##_f32, [GP_F64] = op##_f64, [GP_BF16] = op##_bf16, [GP_F16] = op##_f16,        \
      [GP_I64] = op##_i64, [GP_I32] = op##_i32, [GP_U8] = op##_u8,     [GP_BOOL] = op##_u8,        \
  };                                                                                               \
  static gp_status op##_run(const gp_call *call, gp_span span) {                                   \
    return gp_map(call, span, op##_loops[call->in[0].meta->dtype]);                                \
  }                                                                                                \
  const gp_op_def gp_def_##op = {                                                                  \
      GP_OP_ROW(op),                                                                               \
      .row_inputs = 3,                                                                             \
      .infer = infer,                                                                              \
      .cost = gp_map_cost_light,                                                                   \
      .cpu = {.cut = gp_cut_rows, .run = op##_run, GP_MAP_STATE},                                  \
  };

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)
