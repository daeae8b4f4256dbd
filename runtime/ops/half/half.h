/* ops/half/half.h - CPU kernels on operands of bf16 and f16.
 *
 * Products, elementwise ops and whatever only moves values read and write halves themselves
 * (gp_cpu_kernel.halves, GP_OP_HALVES). Every other kernel knows f32 alone: here its operands are
 * converted to f32, it runs, and what it made is rounded once, as on a GPU. So no op lacks a dtype
 * that another has. */
#ifndef GP_OPS_HALF_HALF_H
#define GP_OPS_HALF_HALF_H

#include "ops/op.h"

static inline bool gp_half_is(gp_dtype dtype) { return dtype == GP_BF16 || dtype == GP_F16; }

/* A line of n halves of this dtype, `step` elements apart, to floats, and back: rounded once. */
void gp_half_widen(gp_dtype half, const uint16_t *from, int64_t step, int64_t n, float *to);
void gp_half_narrow(gp_dtype half, const float *from, int64_t n, int64_t step, uint16_t *to);

/* Has the call operands that its kernel cannot read or write? */
bool gp_half_widens(const gp_op_def *def, const gp_call *call);
/* Of such a call: whether its kernel wants all operands at once, and so runs as one unit. */
bool gp_half_is_whole(const gp_op_def *def, const gp_call *call);

/* Any call of a CPU kernel, be it converted or not: the scratch of a thread, and a piece. */
size_t gp_half_scratch(const gp_op_def *def, const gp_call *call);
gp_status gp_half_run(const gp_op_def *def, const gp_call *call, gp_span span);

#endif
