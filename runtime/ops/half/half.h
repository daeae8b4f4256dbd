/* ops/half/half.h - CPU kernels on operands of bf16 and f16.
 *
 * Products, elementwise ops and ops that only move values read and write halves themselves
 * (gp_cpu_kernel.halves, GP_OP_HALVES). Every other kernel knows only f32: its operands are
 * converted to f32 here, it runs, and its results are rounded once, as on a GPU. So no op lacks a
 * dtype that another has. */
#ifndef GP_OPS_HALF_HALF_H
#define GP_OPS_HALF_HALF_H

#include "device/lane.h"
#include "ops/op.h"

static inline bool gp_half_is(gp_dtype dtype) { return dtype == GP_BF16 || dtype == GP_F16; }

/* Convert a line of n halves of this dtype, `step` elements apart, to floats, and
 * back: rounded once. */
void gp_half_widen(gp_dtype half, const uint16_t *from, int64_t step, int64_t n, float *to);
void gp_half_narrow(gp_dtype half, const float *from, int64_t n, int64_t step, uint16_t *to);

/* Tell whether the call has operands that its kernel cannot read or write. */
bool gp_half_widens(const gp_op_def *def, const gp_call *call);

/* Run any call of a CPU kernel, converted or not: gp_half_scratch returns the scratch of a thread,
 * gp_half_run runs a piece of a call without phases. */
size_t gp_half_scratch(const gp_op_def *def, const gp_call *call);
gp_status gp_half_run(const gp_op_def *def, const gp_call *call, gp_span span);

/* ---- in phases ----------------------------------------------------------------------------- */

/* Convert operands to f32, run the kernel's pieces, and convert results back, each step by all
 * threads. A call that is converted and whose kernel wants all operands at once runs this way. */
bool gp_half_has_phases(const gp_op_def *def, const gp_call *call);
/* Return the bytes of the operands in f32, once for all threads; 0 for a call without phases. */
size_t gp_half_shared(const gp_op_def *def, const gp_call *call);

typedef struct gp_half_room {
  char *shared;  /* gp_half_shared bytes */
  char *scratch; /* of the first thread; NULL if none is needed */
  size_t stride; /* to the next thread's */
} gp_half_room;
gp_status gp_half_run_phases(const gp_op_def *def, const gp_call *call, const gp_lane *lane,
                             gp_half_room room);

#endif
