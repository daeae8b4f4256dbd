/* graph/hash.c - see gp_graph_hash.
 *
 * Attributes are read field by field, as the rows of ops.def say: their structs have gaps. */
#include <string.h>

#include "base/hash.h"
#include "base/tensor.h"
#include "graph/graph.h"
#include "ops/contract.h"

static void mix(uint64_t *hash, uint64_t word) { *hash = gp_hash_fold(gp_hash_word(*hash, word)); }

static void mix_numbers(uint64_t *hash, const int64_t *at, int count) {
  mix(hash, (uint64_t)count);
  for (int i = 0; i < count; i++) mix(hash, (uint64_t)at[i]);
}

static void mix_real(uint64_t *hash, double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  mix(hash, word);
}

static void mix_field(uint64_t *hash, gp_attr_kind kind, const void *field) {
  const gp_maybe *maybe = field;
  const gp_shape *shape = field;
  const gp_list *list = field;
  switch (kind) {
  case GP_ATTR_INT:
  case GP_ATTR_DIM:
  case GP_ATTR_DIMS: mix(hash, (uint64_t) * (const int64_t *)field); break;
  case GP_ATTR_MAYBE: mix(hash, maybe->given ? (uint64_t)maybe->value : UINT64_MAX); break;
  case GP_ATTR_FLAG: mix(hash, *(const bool *)field); break;
  case GP_ATTR_REAL: mix_real(hash, *(const double *)field); break;
  case GP_ATTR_DTYPE: mix(hash, (uint64_t) * (const gp_dtype *)field); break;
  case GP_ATTR_CHOICE: mix(hash, (uint64_t) * (const int *)field); break;
  case GP_ATTR_SHAPE: mix_numbers(hash, shape->dim, shape->rank); break;
  case GP_ATTR_LIST: mix_numbers(hash, list->at, list->count); break;
  }
}

static void mix_node(uint64_t *hash, const gp_graph *graph, const gp_node *node) {
  mix(hash, (uint64_t)node->op << 32 | (uint32_t)node->layer);
  gp_attrs attrs = node->attr;
  for (const gp_attr *attr = gp_op_attrs(node->op); attr->name; attr++)
    mix_field(hash, attr->kind, gp_attr_field(&attrs, attr));
  for (int i = 0; i < node->n_in; i++) mix(hash, (uint64_t)node->in[i]);
  for (int k = 0; k < node->n_out; k++) {
    const gp_meta *meta = &graph->values[node->out + k].meta;
    mix(hash, (uint64_t)meta->dtype);
    mix_numbers(hash, meta->shape.dim, meta->shape.rank);
  }
}

uint64_t gp_graph_hash(const gp_graph *graph, uint64_t hash) {
  for (int32_t n = 0; n < graph->node_count; n++) mix_node(&hash, graph, &graph->nodes[n]);
  for (int32_t c = 0; c < graph->constant_count; c++)
    hash = gp_tensor_hash(graph->constants[c], hash);
  return hash;
}
