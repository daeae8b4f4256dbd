/* device/cuda/attention.h - one application of attention, described by the strides of its operands.
 *
 * The ops attention and attention_qkv describe their operands with it, and both implementations
 * take it: graphs of cuDNN (cudnn/attention.c) and our own kernels (ops/attention/flash.cu). */
#ifndef GP_DEVICE_CUDA_ATTENTION_H
#define GP_DEVICE_CUDA_ATTENTION_H

#include "device/cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value [B, H, T, D], or [B, H, T] with column 0. */
typedef struct gp_attention_value {
  void *data;                       /* NULL in prepare */
  int64_t batch, head, row, column; /* elements between neighbours */
} gp_attention_value;

typedef struct gp_attention {
  gp_dtype dtype; /* of all values except lse, which is f32 for halves */
  bool backward;
  bool causal;                    /* query i sees keys 0..i */
  bool masked;                    /* see ops/constants.h */
  int64_t batches, heads, groups; /* B, H, G: k and v have G heads, head h uses h / (H / G) */
  int64_t queries, keys, width;   /* Tq, Tk, D */
  gp_dtype mask_dtype;            /* bool, dtype, or f32 for halves */
  int64_t mask_size;              /* elements of the mask in the scratch, which cuDNN needs */
  double scale, dropout;
  uint32_t random;           /* number of the random op */
  const gp_step_block *step; /* device memory */
  gp_attention_value q, k, v, o, lse;
  gp_attention_value mask;               /* [B, H, Tq, Tk]: stride 0 for dims of 1; see masked */
  gp_attention_value d_o, d_q, d_k, d_v; /* backward only */
  void *scratch;                         /* device memory */
} gp_attention;

/* Elements from one row of a staged mask to the next: a multiple of 32 bytes. */
static inline int64_t gp_attention_mask_row(const gp_attention *a) { return (a->keys + 7) / 8 * 8; }

/* ---- what graphs of cuDNN leave to us (ops/attention/beside_cudnn.cu) ----------------------- */

/* Write the mask as f32 numbers to add, without infinities, with the strides of `to`. */
gp_status gp_attention_stage_mask(gp_gpu *gpu, const gp_attention *a, const gp_attention_value *to);
/* A range of the pairs of queries and keys, counted through all heads. */
typedef struct gp_attention_words {
  int64_t first, count;
} gp_attention_words;

/* Write 1 for the pairs of the range that dropout keeps and 0 for the others, in a's type. Causal:
 * pairs that no query sees may be 0 too. */
gp_status gp_attention_write_kept(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_words *words, void *to);
/* Write zeros to o and lse of queries for which the mask hides every key. */
gp_status gp_attention_clear_rows(gp_gpu *gpu, const gp_attention *a);

#ifdef __cplusplus
}
#endif

#endif
