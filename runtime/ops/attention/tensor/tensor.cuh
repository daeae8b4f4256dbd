/* ops/attention/tensor/tensor.cuh - our attention for halves, by tensor cores: flash.cuh in another
 * arithmetic.
 *
 * Products of halves are exact in f32 and added in f32; probabilities and the gradients of scores
 * are rounded to halves before the products that they enter, as other libraries do. It takes heads
 * of up to 128 channels; masks, shared heads, dropout and layouts are those of flash.cuh. */
#ifndef GP_OPS_ATTENTION_TENSOR_CUH
#define GP_OPS_ATTENTION_TENSOR_CUH

#include "ops/attention/flash.cuh"

bool gp_tensor_takes(const gp_gpu *gpu, const gp_attention *a);
/* Enqueue; gp_flash_delta has filled the scratch before the backward pass. Errors: GP_EUNSUPPORTED
 * if there are more tiles than a grid has blocks. */
gp_status gp_tensor_forward(gp_gpu *gpu, const gp_attention *a);
gp_status gp_tensor_backward(gp_gpu *gpu, const gp_attention *a);

#endif
