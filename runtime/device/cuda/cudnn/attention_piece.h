/* device/cuda/cudnn/attention_piece.h - how much attention cuDNN computes at once, and its
 * scratch. */
#ifndef GP_DEVICE_CUDA_CUDNN_ATTENTION_PIECE_H
#define GP_DEVICE_CUDA_CUDNN_ATTENTION_PIECE_H

#include "device/cuda/attention.h"

/* Where each value lies in the scratch of an application, in bytes from its start; the mask is
 * first. */
typedef struct gp_cudnn_scratch {
  size_t kept, rowsum, workspace; /* the library's workspace is the rest */
} gp_cudnn_scratch;

/* How many heads share keys and values. */
static inline int64_t gp_attention_sharers(const gp_attention *a) { return a->heads / a->groups; }

/* The first piece: the whole attention, some of the batch, or some heads of one sequence, together
 * with all heads that share their keys. Its mask is the one in the scratch. */
gp_attention gp_cudnn_first_piece(const gp_attention *a);
/* The piece of the same size that begins at (batch, group). */
gp_attention gp_cudnn_piece_at(const gp_attention *first, int64_t batch, int64_t group);
gp_cudnn_scratch gp_cudnn_lay_out(const gp_attention *piece);

#endif
