/* device/cuda/cudnn/attention_run.c - which attention cuDNN computes, and running its plan.
 *
 * A deterministic backward plan keeps all scores of the heads that it works on: two bytes for each pair
 * of a query and a key. So it takes as many of the batch's heads at once as fit a bound, in equal
 * pieces, one after the other in the same scratch. */
#include <math.h>
#include <string.h>

#include "device/cuda/cudnn/attention.h"
#include "device/cuda/cudnn/cache.h"

/* Bytes of scores at once: enough heads to fill the largest GPU at a thousand tokens. */
static const double most_scores = 256.0 * 1024 * 1024;

enum { KEY_ATTENTION = 1, ALIGNMENT = 256 };

/* ---- pieces -------------------------------------------------------------------------------- */

/* The largest divisor of n that is at most `most`. */
static int64_t largest_divisor(int64_t n, double most) {
  int64_t d = n;
  while (d > 1 && (n % d != 0 || (double)d > most)) d--;
  return d;
}

/* The first piece: all of the batch, some of it, or some of the heads of one. */
static gp_attention piece_of(const gp_attention *a) {
  gp_attention piece = *a;
  if (!a->backward) return piece;
  const double head = 2 * (double)a->queries * (double)a->keys;
  piece.batches = largest_divisor(a->batches, most_scores / (head * (double)a->heads));
  if (piece.batches == 1) piece.heads = largest_divisor(a->heads, most_scores / head);
  return piece;
}

static void move(gp_attention_value *v, size_t element, int64_t batch, int64_t head) {
  const int64_t elements = batch * v->batch + head * v->head;
  if (v->data) v->data = (char *)v->data + elements * (int64_t)element;
}

/* The piece that begins at (batch, head). */
static gp_attention piece_at(const gp_attention *first, int64_t batch, int64_t head) {
  gp_attention a = *first;
  gp_attention_value *halves[] = {&a.q, &a.k, &a.v, &a.o, &a.d_o, &a.d_q, &a.d_k, &a.d_v};
  for (int i = 0; i < 8; i++) move(halves[i], sizeof(uint16_t), batch, head);
  move(&a.lse, sizeof(float), batch, head);
  return a;
}

/* ---- plans --------------------------------------------------------------------------------- */

static int add_strides(int64_t *field, const gp_attention_value *v) {
  field[0] = v->batch, field[1] = v->head, field[2] = v->row;
  return 3;
}

static gp_cudnn_key key_of(const gp_attention *a) {
  const gp_attention_value *values[] = {&a->q,   &a->k,   &a->v,   &a->o,  &a->lse,
                                        &a->d_o, &a->d_q, &a->d_k, &a->d_v};
  gp_cudnn_key key = {{KEY_ATTENTION, a->backward, a->causal, a->dtype, a->batches, a->heads,
                       a->queries, a->keys, a->width}};
  int n = 9;
  for (int i = 0; i < 9; i++) n += add_strides(&key.field[n], values[i]);
  return key;
}

static void describe(gp_cudnn_graph *graph, const void *what) {
  gp_cudnn_attention_describe(graph, what);
}

/* rowsum, in front of the workspace of the library. */
static size_t rowsum_bytes(const gp_attention *piece) {
  const size_t bytes = (size_t)(piece->batches * piece->heads * piece->queries) * sizeof(float);
  return piece->backward ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
}

gp_status gp_cudnn_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch,
                                     bool *planned) {
  *planned = false;
  if (!gp_cudnn_attention_fits(a)) return GP_OK;
  const gp_attention piece = piece_of(a);
  const gp_cudnn_request request = {key_of(&piece), describe, &piece};
  gp_cudnn_plan *plan;
  GP_GPU_TRY(gp_cudnn_prepare(gpu, &request, &plan));
  *planned = plan != NULL;
  if (plan) *scratch = rowsum_bytes(&piece) + plan->workspace;
  return GP_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct scalars {
  float scale, unseen, one;
} scalars;

/* What the graph of this piece names: some in both directions, some in one. */
static int list_operands(const gp_attention *a, const scalars *s, gp_cudnn_operand *list) {
  const gp_cudnn_operand always[] = {{GP_CUDNN_Q, a->q.data},     {GP_CUDNN_K, a->k.data},
                                     {GP_CUDNN_V, a->v.data},     {GP_CUDNN_O, a->o.data},
                                     {GP_CUDNN_LSE, a->lse.data}, {GP_CUDNN_SCALE, &s->scale}};
  const gp_cudnn_operand backward[] = {{GP_CUDNN_D_O, a->d_o.data},   {GP_CUDNN_D_Q, a->d_q.data},
                                       {GP_CUDNN_D_K, a->d_k.data},   {GP_CUDNN_D_V, a->d_v.data},
                                       {GP_CUDNN_ROWSUM, a->scratch}, {GP_CUDNN_ONE, &s->one}};
  int n = 6;
  memcpy(list, always, sizeof always);
  if (a->backward) memcpy(list + n, backward, sizeof backward), n += 6;
  if (a->causal) list[n++] = (gp_cudnn_operand){GP_CUDNN_UNSEEN, &s->unseen};
  return n;
}

static gp_status run_piece(gp_gpu *gpu, gp_cudnn_plan *plan, const gp_attention *piece) {
  const scalars s = {(float)piece->scale, -INFINITY, 1};
  gp_cudnn_operand list[GP_CUDNN_OPERANDS];
  const int count = list_operands(piece, &s, list);
  void *workspace = plan->workspace > 0 ? (char *)piece->scratch + rowsum_bytes(piece) : NULL;
  return gp_cudnn_run(gpu, plan, list, count, workspace, "attention");
}

gp_status gp_cudnn_attention_run(gp_gpu *gpu, const gp_attention *a, bool *planned) {
  const gp_attention first = piece_of(a);
  const gp_cudnn_key key = key_of(&first);
  gp_cudnn_plan *plan = gp_cudnn_attention_fits(a) ? gp_cudnn_find(gpu, &key) : NULL;
  *planned = plan != NULL;
  for (int64_t b = 0; b < a->batches && plan; b += first.batches)
    for (int64_t h = 0; h < a->heads; h += first.heads) {
      const gp_attention piece = piece_at(&first, b, h);
      GP_GPU_TRY(run_piece(gpu, plan, &piece));
    }
  return GP_OK;
}
