/* ops/eager/eager.h - one application of an op outside a trace, which eager.c and its two
 * helpers share. */
#ifndef GP_OPS_EAGER_H
#define GP_OPS_EAGER_H

#include "base/space.h"
#include "ops/op.h"

typedef struct gp_application {
  gp_op op;
  const gp_op_def *def;
  gp_tensor *in[GP_MAX_INPUTS], *out[GP_MAX_OUTPUTS]; /* owned references */
  gp_sig sig;
  gp_space *space; /* where all of them lie; NULL: on the host */
} gp_application;

/* Make a tensor that lies as the meta says, which is dense. */
gp_status gp_eager_new(gp_space *space, const gp_meta *meta, gp_tensor **tensor);
/* Return the kernel's view: raw addresses and metas, borrowed from the tensors. */
gp_call gp_application_call(const gp_application *a, const gp_step_block *step);
/* Run the CPU kernel. */
gp_status gp_eager_run_host(const gp_application *a, const gp_step_block *step);
/* Tell whether the application has halves that the CPU has no kernel for; then run it in f32. */
bool gp_eager_is_half(const gp_application *a);
gp_status gp_eager_run_half(const gp_application *a, const gp_step_block *step);
/* Run the application on the GPU of its space and wait. */
gp_status gp_eager_run_gpu(const gp_application *a, const gp_step_block *step);

#endif
