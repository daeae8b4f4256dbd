/* ops/attention/flash.cuh - attention on a GPU: what computes it, and our own kernels.
 *
 * It is the counterpart of flash.h. The ops describe their operands as a gp_attention. If cuDNN has
 * a plan for that, which it has for halves only, cuDNN runs; else halves of up to 128 channels go
 * to the tensor cores (tensor/tensor.cuh), and everything else goes to the kernels of flash.cu and
 * flash_backward.cu, which take any type and width.
 *
 * In these, scores exist for one tile of queries and keys at a time, in registers and shared
 * memory; only the log of their sums (lse) is kept, and the backward pass computes them again: once
 * by tiles of keys for dk and dv, once by tiles of queries for dq, so that every sum belongs to one
 * thread and has one order.
 *
 * Source: Dao et al., "FlashAttention" (2022), algorithms 1 and 4; Dao, "FlashAttention-2" (2023),
 * section 3.1, for sums that are divided once at the end. */
#ifndef GP_OPS_ATTENTION_FLASH_CUH
#define GP_OPS_ATTENTION_FLASH_CUH

#include "device/cuda/attention.h"
#include "device/cuda/kernel/kernel.h"

/* ---- our kernels --------------------------------------------------------------------------- */

/* Return the bytes of scratch: backward, for rowsum(do * o) of every query. */
size_t gp_flash_scratch(const gp_attention *a);
/* Enqueue. Errors: GP_EUNSUPPORTED if there are more tiles than a grid has blocks. */
gp_status gp_flash_forward(gp_gpu *gpu, const gp_attention *a);
/* Fill the scratch; before any of our backward passes. */
gp_status gp_flash_delta(gp_gpu *gpu, const gp_attention *a);
gp_status gp_flash_backward(gp_gpu *gpu, const gp_attention *a);
/* Fail with that error. */
gp_status gp_flash_too_many(const gp_attention *a);

/* ---- the ops ------------------------------------------------------------------------------- */

/* Set what the attributes say; width must be set. */
void gp_attention_set_attrs(gp_attention *a, const gp_call *call);
gp_status gp_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch);
gp_status gp_attention_run(gp_gpu *gpu, const gp_attention *a);

/* Define the kernel of an op whose describe(call) is a gp_attention. */
#define GP_ATTENTION_KERNEL(name, describe)                                                        \
  static gp_status prepare_##name(gp_gpu *gpu, const gp_call *call, size_t *scratch) {             \
    const gp_attention a = describe(call);                                                         \
    return gp_attention_prepare(gpu, &a, scratch);                                                 \
  }                                                                                                \
  static gp_status run_##name(gp_gpu *gpu, const gp_gpu_call *call) {                              \
    gp_attention a = describe(&call->op);                                                          \
    a.scratch = call->scratch;                                                                     \
    return gp_attention_run(gpu, &a);                                                              \
  }                                                                                                \
  const gp_gpu_kernel gp_gpu_##name = {run_##name, prepare_##name};

#endif
