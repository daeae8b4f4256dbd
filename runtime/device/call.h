/* device/call.h - what kernels of every device are given: operands, the step they run in, and
 * slices to update.
 *
 * Addresses are of the device that runs the kernel: the host must not read what lies on a GPU. */
#ifndef GP_DEVICE_CALL_H
#define GP_DEVICE_CALL_H

#include "gpipe/op.h"
#include "gpipe/update.h"

typedef struct gp_arg {
  void *data;          /* address of element 0: meta->offset is applied already */
  const gp_meta *meta; /* borrowed */
} gp_arg;

/* What changes from step to step; on CUDA it lies in device memory. */
typedef struct gp_step_block {
  uint64_t seed;
  uint32_t step;        /* training passes so far: the counter of the random numbers */
  int64_t rows;         /* rows of this micro-batch; 0 outside a pipeline */
  int64_t first_row;    /* position of its first row in the mini-batch */
  double inverse_count; /* 1 / (loss count of the whole mini-batch); 0 when the count is 0 */
  double scale;         /* loss_seed multiplies the gradients with it; 1 except for f16 */
} gp_step_block;

typedef struct gp_call {
  const gp_attrs *attr;
  const gp_step_block *step; /* never NULL */
  int n_in, n_out;
  gp_arg in[GP_MAX_INPUTS];
  gp_arg out[GP_MAX_OUTPUTS];
  bool accumulate;   /* outputs += results; only for ops with GP_OP_ACCUMULATES */
  bool fresh;        /* accumulate only: the slot's contents count as zero, unread */
  const void *state; /* of a CPU kernel that has some (ops/op.h), in a plan; else NULL */
} gp_call;

/* One arena (or a part of it): n elements of value, gradient and moments. */
typedef struct gp_optim_slice {
  gp_dtype dtype; /* f32 or f64 */
  int64_t n;
  void *value;
  const void *grad;
  void *moments[GP_OPTIM_MOMENTS]; /* may be NULL where they are not read; zero before step 1 */
  void *half;          /* receives the new values rounded to half_dtype; NULL: not wanted */
  gp_dtype half_dtype; /* bf16 or f16, of an f32 slice */
} gp_optim_slice;

#endif
