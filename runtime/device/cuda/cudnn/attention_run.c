/* device/cuda/cudnn/attention_run.c - choose which attention cuDNN computes, and run its plans.
 *
 * Around the plan our own kernels do what graphs cannot: bring a mask into their form, and clear
 * the rows that it left nothing to. */
#include <math.h>
#include <string.h>

#include "device/cuda/cudnn/attention.h"
#include "device/cuda/cudnn/attention_piece.h"
#include "device/cuda/cudnn/cache.h"

enum { KEY_ATTENTION = 1 };

/* ---- plans --------------------------------------------------------------------------------- */

/* The key of a plan holds everything that its graph depends on: sizes, layouts, and what it
 * computes. */
static int add_strides(int64_t *field, const gp_attention_value *v) {
  field[0] = v->batch, field[1] = v->head, field[2] = v->row;
  return 3;
}

/* The key of a piece: all that its graph was made of. */
static gp_cudnn_key key_of(const gp_attention *a) {
  const gp_attention_value *values[] = {&a->q,   &a->k,   &a->v,   &a->o,   &a->lse,
                                        &a->d_o, &a->d_q, &a->d_k, &a->d_v, &a->mask};
  gp_cudnn_key key = {{KEY_ATTENTION, a->backward, a->causal, a->masked, a->dropout > 0, a->dtype,
                       a->batches, a->heads, a->groups, a->queries, a->keys, a->width}};
  int n = 12;
  for (int i = 0; i < 10; i++) n += add_strides(&key.field[n], values[i]);
  return key;
}

static void describe(gp_cudnn_graph *graph, const void *what) {
  gp_cudnn_attention_describe(graph, what);
}

/* If cuDNN has no plan, *why says so and our own kernels compute: that is no error. */
gp_status gp_cudnn_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch,
                                     const char **why) {
  *why = gp_cudnn_attention_refusal(a);
  if (*why) return GP_OK;
  const gp_attention piece = gp_cudnn_first_piece(a);
  const gp_cudnn_scratch at = gp_cudnn_lay_out(&piece);
  const gp_cudnn_request request = {.key = key_of(&piece), .describe = describe, .what = &piece};
  gp_cudnn_answer answer;
  GP_GPU_TRY(gp_cudnn_prepare(gpu, &request, &answer));
  *why = answer.why;
  *scratch = at.workspace + answer.workspace;
  return GP_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct scalars {
  float scale, unseen, one, keep;
} scalars;

static int add_operands(gp_cudnn_operand *list, const gp_cudnn_operand *more, int count) {
  memcpy(list, more, (size_t)count * sizeof *more);
  return count;
}

static void *in_scratch(const gp_attention *a, size_t at) {
  char *scratch = a->scratch;
  return scratch ? scratch + at : NULL;
}

/* List the operands that the graph of a piece names: some in both directions, some only
 * backward. */
static int list_operands(const gp_attention *a, const scalars *s, const gp_cudnn_scratch *at,
                         gp_cudnn_operand *list) {
  void *rowsum = in_scratch(a, at->rowsum);
  const gp_cudnn_operand always[] = {{GP_CUDNN_Q, a->q.data},     {GP_CUDNN_K, a->k.data},
                                     {GP_CUDNN_V, a->v.data},     {GP_CUDNN_O, a->o.data},
                                     {GP_CUDNN_LSE, a->lse.data}, {GP_CUDNN_SCALE, &s->scale}};
  const gp_cudnn_operand backward[] = {{GP_CUDNN_D_O, a->d_o.data}, {GP_CUDNN_D_Q, a->d_q.data},
                                       {GP_CUDNN_D_K, a->d_k.data}, {GP_CUDNN_D_V, a->d_v.data},
                                       {GP_CUDNN_ROWSUM, rowsum},   {GP_CUDNN_ONE, &s->one}};
  int n = add_operands(list, always, 6);
  if (a->backward) n += add_operands(list + n, backward, 6);
  if (a->causal) list[n++] = (gp_cudnn_operand){GP_CUDNN_UNSEEN, &s->unseen};
  if (a->masked) list[n++] = (gp_cudnn_operand){GP_CUDNN_MASK, a->mask.data};
  if (!(a->dropout > 0)) return n;
  list[n++] = (gp_cudnn_operand){GP_CUDNN_KEPT, in_scratch(a, at->kept)};
  list[n++] = (gp_cudnn_operand){GP_CUDNN_KEEP, &s->keep};
  return n;
}

/* Run one piece, by the engines that are left. A plan without a workspace ignores its address. */
static gp_status run_piece(gp_gpu *gpu, const gp_cudnn_key *key, const gp_attention *piece,
                           const char **why) {
  const scalars s = {(float)piece->scale, -INFINITY, 1, (float)(1 / (1 - piece->dropout))};
  const gp_cudnn_scratch at = gp_cudnn_lay_out(piece);
  gp_cudnn_operand list[GP_CUDNN_OPERANDS];
  const int count = list_operands(piece, &s, &at, list);
  const gp_cudnn_work work = {list, count, in_scratch(piece, at.workspace), "attention"};
  gp_cudnn_outcome outcome;
  do {
    GP_GPU_TRY(gp_cudnn_run(gpu, key, &work, &outcome));
  } while (outcome.again);
  *why = outcome.why;
  return GP_OK;
}

/* Write the dropout mask of a piece: the words of its heads, one after the other. */
static gp_status write_kept(gp_gpu *gpu, const gp_attention *a, const gp_attention *piece,
                            int64_t batch, int64_t group) {
  const gp_cudnn_scratch at = gp_cudnn_lay_out(piece);
  const int64_t pairs = a->queries * a->keys, head = group * gp_attention_sharers(a);
  const gp_attention_words words = {(batch * a->heads + head) * pairs,
                                    piece->batches * piece->heads * pairs};
  return gp_attention_write_kept(gpu, a, &words, in_scratch(piece, at.kept));
}

/* Run all pieces. They have the shape of the first one, so one plan and one scratch serve all. */
static gp_status run_pieces(gp_gpu *gpu, const gp_cudnn_key *key, const gp_attention *a,
                            const gp_attention *first, const char **why) {
  for (int64_t b = 0; b < a->batches; b += first->batches)
    for (int64_t g = 0; g < a->groups; g += first->groups) {
      const gp_attention piece = gp_cudnn_piece_at(first, b, g);
      if (a->dropout > 0) GP_GPU_TRY(write_kept(gpu, a, &piece, b, g));
      GP_GPU_TRY(run_piece(gpu, key, &piece, why));
      if (*why) return GP_OK;
    }
  return GP_OK;
}

/* If a plan is refused half-way, our own kernels write everything again. */
gp_status gp_cudnn_attention_run(gp_gpu *gpu, const gp_attention *a, bool *done, const char **why) {
  *done = false, *why = NULL;
  if (gp_cudnn_attention_refusal(a)) return GP_OK;
  const gp_attention first = gp_cudnn_first_piece(a);
  const gp_cudnn_key key = key_of(&first);
  if (!gp_cudnn_has(gpu, &key)) return GP_OK;
  if (a->masked) GP_GPU_TRY(gp_attention_stage_mask(gpu, a, &first.mask));
  GP_GPU_TRY(run_pieces(gpu, &key, a, &first, why));
  if (*why) return GP_OK;
  *done = true;
  return a->masked && !a->backward ? gp_attention_clear_rows(gpu, a) : GP_OK;
}
