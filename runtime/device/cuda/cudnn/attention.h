/* device/cuda/cudnn/attention.h - the graphs of attention, for the code that runs them and the code
 * that tests them. */
#ifndef GP_DEVICE_CUDA_CUDNN_ATTENTION_H
#define GP_DEVICE_CUDA_CUDNN_ATTENTION_H

#include "device/cuda/attention.h"
#include "device/cuda/cudnn/graph.h"

/* Ids of the values in memory and of the scalars. */
typedef enum gp_cudnn_attention_id {
  GP_CUDNN_Q = 1,
  GP_CUDNN_K,
  GP_CUDNN_V,
  GP_CUDNN_O,
  GP_CUDNN_LSE,
  GP_CUDNN_D_O,
  GP_CUDNN_D_Q,
  GP_CUDNN_D_K,
  GP_CUDNN_D_V,
  GP_CUDNN_MASK,   /* f32, added to the scores */
  GP_CUDNN_ROWSUM, /* row sums of do * o, f32 [B, H, Tq]: scratch, backward */
  GP_CUDNN_SCALE,  /* scalar, f32 */
  GP_CUDNN_UNSEEN, /* scalar, f32: minus infinity, causal */
  GP_CUDNN_ONE,    /* scalar, f32: 1, backward */
  GP_CUDNN_KEPT,   /* 1 or 0 for each pair, of the operands' type: scratch, dropout */
  GP_CUDNN_KEEP    /* scalar, f32: factor of the pairs that are kept, dropout */
} gp_cudnn_attention_id;

/* Say why cuDNN cannot compute this attention, as far as that is known without asking it; NULL: it
 * might. Addresses may be NULL. */
const char *gp_cudnn_attention_refusal(const gp_attention *a);
/* Add its operations. Addresses are not looked at; the mask is f32 and without infinities, its last
 * distance 1. */
void gp_cudnn_attention_describe(gp_cudnn_graph *graph, const gp_attention *a);

#endif
