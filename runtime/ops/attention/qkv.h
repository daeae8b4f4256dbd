/* ops/attention/qkv.h - how the rows of packed operands are divided: H heads of queries, then G of
 * keys, then G of values, of D elements each. */
#ifndef GP_OPS_ATTENTION_QKV_H
#define GP_OPS_ATTENTION_QKV_H

#include "ops/op.h"

typedef struct gp_qkv {
  int64_t heads, groups, width; /* H, G, D; width 0: the heads do not divide a row */
} gp_qkv;

/* Divide a row of `row` elements as the attributes of attention_qkv say; heads must be above 0. */
static inline gp_qkv gp_qkv_of(const gp_attrs *attr, int64_t row) {
  const gp_attr_attention_qkv *a = &attr->attention_qkv;
  const int64_t heads = a->heads, groups = a->groups.given ? a->groups.value : heads;
  gp_qkv p = {heads, groups, 0};
  if (heads <= row && groups <= heads && row % (heads + 2 * groups) == 0)
    p.width = row / (heads + 2 * groups);
  return p;
}

#endif
