/* device/cuda/cudnn/attention.c - attention as cuDNN graphs: matrix products and the operations
 * between them.
 *
 * The library recognises these shapes of graph and makes one kernel of each. K and V come in
 * transposed by their strides, as it wants them. The backward graph writes dq by a plain product:
 * the form with an accumulator of its own would be faster, but adds by atomics.
 *
 * Source: NVIDIA's description of the attention graphs in cuDNN's documentation, "Fused
 * attention". */
#include "device/cuda/cudnn/attention.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number of heads and of rows of an operand. */
typedef struct extent {
  int64_t heads, rows;
} extent;

static extent queries_of(const gp_attention *a) { return (extent){a->heads, a->queries}; }

static extent keys_of(const gp_attention *a) { return (extent){a->groups, a->keys}; }

/* ---- what fits ----------------------------------------------------------------------------- */

/* Rows of D adjacent halves that start at multiples of 16 bytes; no two dimensions share memory. */
static bool fits_value(const gp_attention *a, const gp_attention_value *v, extent e) {
  const int64_t dim[] = {a->batches, e.heads, e.rows}, stride[] = {v->batch, v->head, v->row};
  if (v->column != 1 || (uintptr_t)v->data % 16 != 0) return false;
  for (int d = 0; d < 3; d++)
    if (dim[d] > 1 && (stride[d] < a->width || stride[d] % 8 != 0)) return false;
  return true;
}

static bool fits_values(const gp_attention *a) {
  const gp_attention_value *by_query[] = {&a->q, &a->o, &a->d_o, &a->d_q};
  const gp_attention_value *by_key[] = {&a->k, &a->v, &a->d_k, &a->d_v};
  for (int i = 0; i < (a->backward ? 4 : 2); i++)
    if (!fits_value(a, by_query[i], queries_of(a)) || !fits_value(a, by_key[i], keys_of(a)))
      return false;
  return true;
}

/* GPIPE_ATTENTION compares the two ways where both could: own, own-backward (what is kept of the
 * forward pass has one format) or cudnn. */
static bool asks_for(const char *way) {
  const char *asked = getenv("GPIPE_ATTENTION");
  return asked && strcmp(asked, way) == 0;
}

const char *gp_cudnn_attention_refusal(const gp_attention *a) {
  if (asks_for("own")) return "GPIPE_ATTENTION=own";
  if (a->backward && asks_for("own-backward")) return "GPIPE_ATTENTION=own-backward";
  /* On an H200 a small GPT with dropout had gradients 3.3 times as far from f32's as rounding
   * explains. Until the reason is known, the library drops only where it is asked to. */
  if (a->dropout > 0 && !asks_for("cudnn")) return "dropout is left to our own kernels";
  /* Told to write dk and dv for each head, cuDNN 9.19 gave wrong sums on an H200; told to write one
   * for each group, it has no plan. */
  if (a->backward && a->groups < a->heads)
    return "keys that heads share have gradients of our own kernels";
  if (a->dtype != GP_BF16 && a->dtype != GP_F16) return "cuDNN's attention takes bf16 and f16";
  if (a->dropout >= 1) return "all probabilities are dropped";
  if (a->width % 8 != 0) return "cuDNN's attention takes heads of a multiple of 8 channels";
  if (a->batches < 1 || a->groups < 1 || a->queries < 1 || a->keys < 1 || a->width < 1)
    return "there is nothing to compute";
  return fits_values(a) ? NULL
                        : "cuDNN's attention takes rows of adjacent channels, 16 bytes aligned";
}

/* ---- values -------------------------------------------------------------------------------- */

/* A graph while it is described. */
typedef struct sketch {
  gp_cudnn_graph *graph;
  const gp_attention *a;
  cudnnDataType_t half; /* type of the operands */
} sketch;

typedef gp_cudnn_node node;

/* [B, heads, rows, columns] */
static gp_cudnn_tensor shaped(const sketch *s, cudnnDataType_t type, extent e, int64_t columns) {
  return (gp_cudnn_tensor){.type = type,
                           .rank = 4,
                           .dim = {s->a->batches, e.heads, e.rows, columns},
                           .stride = {e.heads * e.rows * columns, e.rows * columns, columns, 1},
                           .storage = GP_CUDNN_VIRTUAL};
}

static node between(const sketch *s, cudnnDataType_t type, extent e, int64_t columns) {
  const gp_cudnn_tensor t = shaped(s, type, e, columns);
  return gp_cudnn_add_tensor(s->graph, &t);
}

/* Scores have one element for each pair of query and key; per_query has one for each query. */
static node scores(const sketch *s, cudnnDataType_t type) {
  return between(s, type, queries_of(s->a), s->a->keys);
}

static node per_query(const sketch *s) { return between(s, CUDNN_DATA_FLOAT, queries_of(s->a), 1); }

/* Set the strides of dimensions with more than one element. Others are arbitrary, but the library
 * checks them all the same, so they keep their dense ones. */
static void set_strides(gp_cudnn_tensor *t, const gp_attention_value *v) {
  const int64_t given[] = {v->batch, v->head, v->row};
  for (int d = 0; d < 3; d++)
    if (t->dim[d] > 1) t->stride[d] = given[d];
}

/* An operand [B, heads, rows, D]. */
static gp_cudnn_tensor operand(const sketch *s, int64_t id, const gp_attention_value *v, extent e) {
  gp_cudnn_tensor t = shaped(s, s->half, e, s->a->width);
  t.id = id, t.storage = GP_CUDNN_STORED;
  set_strides(&t, v);
  return t;
}

/* An operand with the queries' rows, or with the keys'. */
static node stored(const sketch *s, int64_t id, const gp_attention_value *v) {
  const gp_cudnn_tensor t = operand(s, id, v, queries_of(s->a));
  return gp_cudnn_add_tensor(s->graph, &t);
}

static node stored_keys(const sketch *s, int64_t id, const gp_attention_value *v) {
  const gp_cudnn_tensor t = operand(s, id, v, keys_of(s->a));
  return gp_cudnn_add_tensor(s->graph, &t);
}

static gp_cudnn_tensor transposed(gp_cudnn_tensor t) {
  const int64_t dim = t.dim[2], stride = t.stride[2];
  t.dim[2] = t.dim[3], t.stride[2] = t.stride[3];
  t.dim[3] = dim, t.stride[3] = stride;
  return t;
}

static node stored_transposed(const sketch *s, int64_t id, const gp_attention_value *v) {
  const gp_cudnn_tensor t = transposed(operand(s, id, v, keys_of(s->a)));
  return gp_cudnn_add_tensor(s->graph, &t);
}

/* An f32 value [B, H, Tq, 1] in memory. */
static node stored_per_query(const sketch *s, int64_t id, const gp_attention_value *v) {
  gp_cudnn_tensor t = shaped(s, CUDNN_DATA_FLOAT, queries_of(s->a), 1);
  t.id = id, t.storage = GP_CUDNN_STORED;
  if (v) set_strides(&t, v);
  return gp_cudnn_add_tensor(s->graph, &t);
}

/* The f32 mask [B, H, Tq, Tk] in memory; a dimension along which it repeats is 1. */
static node stored_mask(const sketch *s) {
  const gp_attention_value *m = &s->a->mask;
  gp_cudnn_tensor t = shaped(s, CUDNN_DATA_FLOAT, queries_of(s->a), s->a->keys);
  const int64_t given[] = {m->batch, m->head, m->row};
  for (int d = 2; d >= 0; d--) {
    if (given[d] == 0) t.dim[d] = 1;
    t.stride[d] = given[d] == 0 ? t.dim[d + 1] * t.stride[d + 1] : given[d];
  }
  t.id = GP_CUDNN_MASK, t.storage = GP_CUDNN_STORED;
  return gp_cudnn_add_tensor(s->graph, &t);
}

/* The dropout mask in memory: 1 or 0 for each pair. */
static node stored_kept(const sketch *s) {
  gp_cudnn_tensor t = shaped(s, s->half, queries_of(s->a), s->a->keys);
  t.id = GP_CUDNN_KEPT, t.storage = GP_CUDNN_STORED;
  return gp_cudnn_add_tensor(s->graph, &t);
}

static node scalar(const sketch *s, int64_t id) {
  const gp_cudnn_tensor t = {.type = CUDNN_DATA_FLOAT,
                             .rank = 4,
                             .dim = {1, 1, 1, 1},
                             .stride = {1, 1, 1, 1},
                             .id = id,
                             .storage = GP_CUDNN_SCALAR};
  return gp_cudnn_add_tensor(s->graph, &t);
}

/* ---- operations ---------------------------------------------------------------------------- */

/* y = x mode b */
static node combine(const sketch *s, cudnnPointwiseMode_t mode, node x, node b, node y) {
  const gp_cudnn_pointwise op = {.mode = mode, .x = x, .b = b, .y = y};
  gp_cudnn_add_pointwise(s->graph, &op);
  return y;
}

static node map(const sketch *s, cudnnPointwiseMode_t mode, node x, node y) {
  return combine(s, mode, x, NULL, y);
}

static node multiply(const sketch *s, node a, node b, node c) {
  gp_cudnn_add_matmul(s->graph, a, b, c);
  return c;
}

/* Reduce over the last dimension: the keys, or the columns. */
static node reduce(const sketch *s, cudnnReduceTensorOp_t op, node x) {
  node y = per_query(s);
  gp_cudnn_add_reduction(s->graph, op, x, y);
  return y;
}

/* Swap keys and queries of a virtual value with one number for each pair. */
static node transpose(const sketch *s, node x) {
  const gp_cudnn_tensor t = transposed(shaped(s, s->half, queries_of(s->a), s->a->keys));
  node y = gp_cudnn_add_tensor(s->graph, &t);
  gp_cudnn_add_reshape(s->graph, x, y);
  return y;
}

/* The number of the query (axis 2) or key (axis 3), for every score. */
static node position(const sketch *s, node x, int64_t axis) {
  const gp_cudnn_pointwise op = {
      .mode = CUDNN_POINTWISE_GEN_INDEX, .x = x, .axis = axis, .y = scores(s, CUDNN_DATA_INT32)};
  gp_cudnn_add_pointwise(s->graph, &op);
  return op.y;
}

/* Set the scores of keys after their query to minus infinity. */
static node hide(const sketch *s, node x) {
  node query = position(s, x, 2), key = position(s, x, 3);
  node seen = combine(s, CUDNN_POINTWISE_CMP_GE, query, key, scores(s, CUDNN_DATA_BOOLEAN));
  const gp_cudnn_pointwise op = {.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                 .x = x,
                                 .b = scalar(s, GP_CUDNN_UNSEEN),
                                 .t = seen,
                                 .y = scores(s, CUDNN_DATA_FLOAT)};
  gp_cudnn_add_pointwise(s->graph, &op);
  return op.y;
}

/* q k^T * scale, with the masks applied. */
static node masked_scores(const sketch *s, node q, node k_transposed, node scale) {
  node x = multiply(s, q, k_transposed, scores(s, CUDNN_DATA_FLOAT));
  x = combine(s, CUDNN_POINTWISE_MUL, x, scale, scores(s, CUDNN_DATA_FLOAT));
  if (s->a->masked)
    x = combine(s, CUDNN_POINTWISE_ADD, x, stored_mask(s), scores(s, CUDNN_DATA_FLOAT));
  return s->a->causal ? hide(s, x) : x;
}

/* ---- dropout ------------------------------------------------------------------------------- */

/* Dropout draws the same numbers as on the CPU, not the library's, so they come from memory. */
typedef struct dropout {
  node kept, keep; /* NULL: no dropout */
} dropout;

static dropout dropout_of(const sketch *s) {
  if (!(s->a->dropout > 0)) return (dropout){NULL, NULL};
  return (dropout){stored_kept(s), scalar(s, GP_CUDNN_KEEP)};
}

/* Apply dropout to f32 values of pairs; y receives the result. */
static node drop(const sketch *s, const dropout *d, node x, node y) {
  x = combine(s, CUDNN_POINTWISE_MUL, x, d->kept, scores(s, CUDNN_DATA_FLOAT));
  return combine(s, CUDNN_POINTWISE_MUL, x, d->keep, y);
}

/* The type of probabilities between operations: dropout needs f32. */
static cudnnDataType_t probability(const sketch *s) {
  return s->a->dropout > 0 ? CUDNN_DATA_FLOAT : s->half;
}

/* ---- forward ------------------------------------------------------------------------------- */

static void describe_forward(const sketch *s) {
  const gp_attention *a = s->a;
  node q = stored(s, GP_CUDNN_Q, &a->q), v = stored_keys(s, GP_CUDNN_V, &a->v);
  node k = stored_transposed(s, GP_CUDNN_K, &a->k);
  node x = masked_scores(s, q, k, scalar(s, GP_CUDNN_SCALE));
  node top = reduce(s, CUDNN_REDUCE_TENSOR_MAX, x);
  x = combine(s, CUDNN_POINTWISE_SUB, x, top, scores(s, CUDNN_DATA_FLOAT));
  node e = map(s, CUDNN_POINTWISE_EXP, x, scores(s, CUDNN_DATA_FLOAT));
  node sum = reduce(s, CUDNN_REDUCE_TENSOR_ADD, e);
  node log = map(s, CUDNN_POINTWISE_LOG, sum, per_query(s));
  combine(s, CUDNN_POINTWISE_ADD, top, log, stored_per_query(s, GP_CUDNN_LSE, &a->lse));
  node p = combine(s, CUDNN_POINTWISE_DIV, e, sum, scores(s, probability(s)));
  const dropout d = dropout_of(s);
  if (d.kept) p = drop(s, &d, p, scores(s, s->half));
  multiply(s, p, v, stored(s, GP_CUDNN_O, &a->o));
}

/* ---- backward ------------------------------------------------------------------------------ */

/* rowsum(do * o). It is read in several places, so the graph must keep it in memory. */
static node rowsum(const sketch *s, node d_o) {
  const gp_attention *a = s->a;
  node o = stored(s, GP_CUDNN_O, &a->o);
  node x = between(s, CUDNN_DATA_FLOAT, queries_of(a), a->width);
  combine(s, CUDNN_POINTWISE_MUL, d_o, o, x);
  return combine(s, CUDNN_POINTWISE_MUL, reduce(s, CUDNN_REDUCE_TENSOR_ADD, x),
                 scalar(s, GP_CUDNN_ONE), stored_per_query(s, GP_CUDNN_ROWSUM, NULL));
}

/* p (do v^T - rowsum) scale: the gradient of the scores. For dropped pairs, do v^T counts as 0. */
static node score_gradients(const sketch *s, const dropout *d, node d_o, node p, node sum,
                            node scale) {
  node v = stored_transposed(s, GP_CUDNN_V, &s->a->v);
  node x = multiply(s, d_o, v, scores(s, CUDNN_DATA_FLOAT));
  if (d->kept) x = drop(s, d, x, scores(s, CUDNN_DATA_FLOAT));
  x = combine(s, CUDNN_POINTWISE_SUB, x, sum, scores(s, CUDNN_DATA_FLOAT));
  x = combine(s, CUDNN_POINTWISE_MUL, x, p, scores(s, CUDNN_DATA_FLOAT));
  return combine(s, CUDNN_POINTWISE_MUL, x, scale, scores(s, s->half));
}

static void describe_backward(const sketch *s) {
  const gp_attention *a = s->a;
  node q = stored(s, GP_CUDNN_Q, &a->q), d_o = stored(s, GP_CUDNN_D_O, &a->d_o);
  node k = stored_transposed(s, GP_CUDNN_K, &a->k), scale = scalar(s, GP_CUDNN_SCALE);
  node lse = stored_per_query(s, GP_CUDNN_LSE, &a->lse), sum = rowsum(s, d_o);
  node x = masked_scores(s, q, k, scale);
  x = combine(s, CUDNN_POINTWISE_SUB, x, lse, scores(s, CUDNN_DATA_FLOAT));
  node p = map(s, CUDNN_POINTWISE_EXP, x, scores(s, probability(s))), used = p;
  const dropout d = dropout_of(s);
  if (d.kept) used = drop(s, &d, p, scores(s, s->half));
  multiply(s, transpose(s, used), d_o, stored_keys(s, GP_CUDNN_D_V, &a->d_v));
  node ds = score_gradients(s, &d, d_o, p, sum, scale);
  multiply(s, transpose(s, ds), q, stored_keys(s, GP_CUDNN_D_K, &a->d_k));
  node k_plain = between(s, s->half, keys_of(a), a->width);
  gp_cudnn_add_reshape(s->graph, k, k_plain);
  multiply(s, ds, k_plain, stored(s, GP_CUDNN_D_Q, &a->d_q));
}

void gp_cudnn_attention_describe(gp_cudnn_graph *graph, const gp_attention *a) {
  const cudnnDataType_t half = a->dtype == GP_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  const sketch s = {graph, a, half};
  if (a->backward)
    describe_backward(&s);
  else
    describe_forward(&s);
}
