/* device/cuda/cudnn/attention.h - the graphs of attention, for those that run and those that test
 * them. */
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
  GP_CUDNN_ROWSUM, /* of do * o, f32 [B, H, Tq]: scratch, backward */
  GP_CUDNN_SCALE,  /* scalar, f32 */
  GP_CUDNN_UNSEEN, /* scalar, f32: minus infinity, causal */
  GP_CUDNN_ONE,    /* scalar, f32: 1, backward */
  GP_CUDNN_KEPT,   /* 1 or 0 for each pair, of the operands' type: scratch, dropout */
  GP_CUDNN_KEEP    /* scalar, f32: what is kept is multiplied by, dropout */
} gp_cudnn_attention_id;

/* Why cuDNN cannot take it, as far as can be said without asking; NULL: it might. Addresses may be
 * NULL. */
const char *gp_cudnn_attention_refusal(const gp_attention *a);
/* Add its operations. Addresses are not looked at; the mask is f32 and without infinities, its last
 * distance 1. */
void gp_cudnn_attention_describe(gp_cudnn_graph *graph, const gp_attention *a);

#endif
