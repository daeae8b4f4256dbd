/* ops/half/half.h - CPU kernels on operands of bf16 and f16.
 *
 * Products, elementwise ops and whatever only moves values read and write halves themselves
 * (gp_cpu_kernel.halves, GP_OP_HALVES). Every other kernel knows f32 alone: here its operands are
 * converted to f32, it runs, and what it made is rounded once, as on a GPU. So no op lacks a dtype
 * that another has. */
#ifndef GP_OPS_HALF_HALF_H
#define GP_OPS_HALF_HALF_H

#include "device/lane.h"
#include "ops/op.h"

static inline bool gp_half_is(gp_dtype dtype) { return dtype == GP_BF16 || dtype == GP_F16; }

/* A line of n halves of this dtype, `step` elements apart, to floats, and back: rounded once. */
void gp_half_widen(gp_dtype half, const uint16_t *from, int64_t step, int64_t n, float *to);
void gp_half_narrow(gp_dtype half, const float *from, int64_t n, int64_t step, uint16_t *to);

/* Has the call operands that its kernel cannot read or write? */
bool gp_half_widens(const gp_op_def *def, const gp_call *call);

/* Any call of a CPU kernel, be it converted or not: the scratch of a thread; a piece of one that
 * does not run in phases. */
size_t gp_half_scratch(const gp_op_def *def, const gp_call *call);
gp_status gp_half_run(const gp_op_def *def, const gp_call *call, gp_span span);

/* ---- in phases ----------------------------------------------------------------------------- */

/* Operands to f32, the kernel's pieces, and results back, each by all threads: so runs a call that
 * converts and whose kernel wants all operands at once. */
bool gp_half_has_phases(const gp_op_def *def, const gp_call *call);
/* Bytes of the operands in f32, once for all threads; 0 for a call without phases. */
size_t gp_half_shared(const gp_op_def *def, const gp_call *call);

typedef struct gp_half_room {
  char *shared;  /* gp_half_shared bytes */
  char *scratch; /* of the first thread; NULL where none is wanted */
  size_t stride; /* to the next thread's */
} gp_half_room;
gp_status gp_half_run_phases(const gp_op_def *def, const gp_call *call, const gp_lane *lane,
                             gp_half_room room);

#endif
