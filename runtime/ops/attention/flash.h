/* ops/attention/flash.h - one head of attention, block by block, wherever its operands lie.
 *
 * attention and attention_qkv differ only in how their operands are laid out, so both describe them
 * by strides and share this core. Scores exist for 64 queries at a time, in scratch; only the log
 * of their sums (lse) is kept, and the backward pass computes them again. A head is one unit of
 * work; backward, all heads that share keys and values are one, so that their sums have one order.
 *
 * Source: Dao et al., "FlashAttention" (2022), algorithms 1 and 4, with whole rows of scores: a
 * block of them fits the second-level cache, and rows need no rescaling. */
#ifndef GP_OPS_ATTENTION_FLASH_H
#define GP_OPS_ATTENTION_FLASH_H

#include "base/status.h"
#include "ops/op.h"

enum { GP_FLASH_QUERIES = 64 };

/* A value [B, H, T, D], by the distances between its elements. */
typedef struct gp_heads {
  void *data;
  int64_t batch, head, row, column; /* elements */
} gp_heads;

/* [B, H, Tq, Tk], see mask.h. */
typedef struct gp_flash_mask {
  gp_heads at;    /* data NULL: no mask; distances are 0 along dimensions of 1 */
  gp_dtype dtype; /* GP_BOOL or that of the scores */
} gp_flash_mask;

enum { GP_FLASH_Q, GP_FLASH_K, GP_FLASH_V, GP_FLASH_O, GP_FLASH_DO, GP_FLASH_OPERANDS };

/* One application. In o, lse and the gradients, the D elements of a row are adjacent in memory. */
typedef struct gp_flash {
  const gp_call *call; /* seed, step and number of the random op */
  gp_dtype dtype;      /* of the arithmetic */
  gp_dtype half; /* of the operands and gradients where that is not dtype: bf16 or f16; else f32 */
  bool backward, causal;
  int64_t batches, heads, groups; /* B, H, G: k and v have G heads, head h uses h / (H / G) */
  int64_t queries, keys, width;   /* Tq, Tk, D */
  double scale, dropout;
  gp_flash_mask mask;
  gp_heads in[GP_FLASH_OPERANDS]; /* [GP_FLASH_O] is written by the forward pass */
  gp_heads lse;                   /* [B, H, Tq] */
  gp_heads dq, dk, dv;            /* backward only */
} gp_flash;

/* Set the dtypes by that of the operands: halves are computed in f32. */
void gp_flash_set_dtype(gp_flash *f, gp_dtype dtype);
/* Fill in what the attributes say; the other fields stay. width must be set. */
void gp_flash_set_attrs(gp_flash *f, const gp_call *call);
/* Tell whether this many heads of queries can share this many of keys and values. */
bool gp_flash_can_share(int64_t heads, int64_t groups);

gp_cut gp_flash_cut(const gp_flash *f);
size_t gp_flash_scratch(const gp_flash *f);
gp_status gp_flash_run(const gp_flash *f, gp_span span);

/* Count the pairs (query, key) that attend to each other, in one head. */
double gp_flash_pairs(int64_t queries, int64_t keys, bool causal);

/* The kernel of an op (cut, scratch and run with this suffix) whose describe_call(call) is a
 * gp_flash. */
#define GP_FLASH_KERNEL(suffix, describe_call)                                                     \
  static gp_cut cut##suffix(const gp_call *call) {                                                 \
    gp_flash f = describe_call(call);                                                              \
    return gp_flash_cut(&f);                                                                       \
  }                                                                                                \
  static size_t scratch##suffix(const gp_call *call) {                                             \
    gp_flash f = describe_call(call);                                                              \
    return gp_flash_scratch(&f);                                                                   \
  }                                                                                                \
  static gp_status run##suffix(const gp_call *call, gp_span span) {                                \
    gp_flash f = describe_call(call);                                                              \
    return gp_flash_run(&f, span);                                                                 \
  }

#endif
