/* ops/convolution/library/library.cuh - convolutions by cuDNN, where it has a plan for them. */
#ifndef GP_OPS_CONVOLUTION_LIBRARY_CUH
#define GP_OPS_CONVOLUTION_LIBRARY_CUH

#include "device/cuda/convolution.h"
#include "ops/convolution/conv.cuh"

/* An op's image, map, weight and bias (NULL: none); its description says which of them
 * is the result. */
struct gp_conv_values {
  const gp_arg *image, *map, *weight, *bias;
};

/* How far apart a weight has neighbouring channels, and neighbouring taps: as O x I x KH x KW, or
 * with the channels last (graph/turn.c). */
struct gp_weight_steps {
  int64_t channel, tap;
};

static inline gp_weight_steps gp_weight_steps_of(const gp_meta &w) {
  return {w.stride[1], w.shape.dim[3] > 1 ? w.stride[3] : w.stride[2]};
}

gp_convolution gp_convolution_of(gp_convolution_pass pass, const gp_conv &c,
                                 const gp_conv_values &v, const gp_call *call);
/* Decide whether cuDNN or our own kernels compute it, and note that for reports. */
gp_status gp_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch);
/* *done: the library has run; else our own kernels must. */
gp_status gp_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done);

/* Define `const gp_gpu_kernel gp_gpu_<name>`: it runs the library, else launch<T>(gpu,
 * &call->op). */
#define GP_CONVOLUTION_KERNEL(name, describe)                                                      \
  static gp_status prepare_##name(gp_gpu *gpu, const gp_call *call, size_t *scratch) {             \
    const gp_convolution c = describe(call);                                                       \
    return gp_convolution_prepare(gpu, &c, scratch);                                               \
  }                                                                                                \
  static gp_status run_##name(gp_gpu *gpu, const gp_gpu_call *call) {                              \
    gp_convolution c = describe(&call->op);                                                        \
    bool done;                                                                                     \
    c.scratch = call->scratch;                                                                     \
    GP_GPU_TRY(gp_convolution_run(gpu, &c, &done));                                                \
    if (done) return GP_OK;                                                                        \
    GP_BY_FLOAT(c.dtype, return launch<T>(gpu, &call->op));                                        \
    return GP_OK;                                                                                  \
  }                                                                                                \
  const gp_gpu_kernel gp_gpu_##name = {run_##name, prepare_##name};

#endif
