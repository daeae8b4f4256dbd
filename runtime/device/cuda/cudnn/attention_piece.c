/* device/cuda/cudnn/attention_piece.c - see attention_piece.h.
 *
 * A deterministic backward plan keeps all scores of the heads that it works on: two bytes for each
 * pair of a query and a key. Dropout keeps as many bytes for its mask, forward too. So the batch's
 * heads are cut into equal pieces that fit a bound, which run one after the other in the same
 * scratch. */
#include "device/cuda/cudnn/attention_piece.h"

#include <stdlib.h>

enum {
  PIECE = 256 /* MiB of scores at once: enough heads to fill the largest GPU at 1,024 tokens */
};

/* The bound in bytes; GPIPE_ATTENTION_PIECE sets another, in MiB. Heads are independent, so the
 * bound changes no bit as long as the library chooses the same engine for any number of heads. */
static double most_scores(void) {
  const char *asked = getenv("GPIPE_ATTENTION_PIECE");
  const long mib = asked ? strtol(asked, NULL, 10) : 0;
  return (mib > 0 ? (double)mib : PIECE) * 1024 * 1024;
}

enum { ALIGNMENT = 256 };

/* ---- pieces -------------------------------------------------------------------------------- */

/* The largest divisor of n that is at most `most`. */
static int64_t largest_divisor(int64_t n, double most) {
  int64_t d = n;
  while (d > 1 && (n % d != 0 || (double)d > most)) d--;
  return d;
}

/* Return how many elements of the mask lie in the scratch, without dimensions along which it
 * repeats; *to receives their strides. */
static int64_t stage(const gp_attention *a, gp_attention_value *to) {
  const int64_t count[] = {a->batches, a->heads, a->queries};
  const int64_t given[] = {a->mask.batch, a->mask.head, a->mask.row};
  int64_t step[3], size = gp_attention_mask_row(a);
  for (int d = 2; d >= 0; d--) {
    step[d] = given[d] != 0 ? size : 0;
    if (given[d] != 0) size *= count[d];
  }
  *to = (gp_attention_value){a->scratch, step[0], step[1], step[2], 1};
  return size;
}

gp_attention gp_cudnn_first_piece(const gp_attention *a) {
  gp_attention piece = *a;
  if (a->masked) piece.mask_size = stage(a, &piece.mask), piece.mask_dtype = GP_F32;
  if (!a->backward && !(a->dropout > 0)) return piece;
  const double head = 2 * (double)a->queries * (double)a->keys, most = most_scores();
  piece.batches = largest_divisor(a->batches, most / (head * (double)a->heads));
  if (piece.batches > 1) return piece;
  piece.groups = largest_divisor(a->groups, most / (head * (double)gp_attention_sharers(a)));
  piece.heads = piece.groups * gp_attention_sharers(a);
  return piece;
}

static void move(gp_attention_value *v, size_t element, int64_t batch, int64_t head) {
  const int64_t elements = batch * v->batch + head * v->head;
  if (v->data) v->data = (char *)v->data + elements * (int64_t)element;
}

gp_attention gp_cudnn_piece_at(const gp_attention *first, int64_t batch, int64_t group) {
  gp_attention a = *first;
  gp_attention_value *by_query[] = {&a.q, &a.o, &a.d_o, &a.d_q};
  gp_attention_value *by_key[] = {&a.k, &a.v, &a.d_k, &a.d_v};
  const int64_t head = group * gp_attention_sharers(first);
  for (int i = 0; i < 4; i++) move(by_query[i], sizeof(uint16_t), batch, head);
  for (int i = 0; i < 4; i++) move(by_key[i], sizeof(uint16_t), batch, group);
  move(&a.lse, sizeof(float), batch, head);
  if (a.masked) move(&a.mask, sizeof(float), batch, head);
  return a;
}

/* ---- scratch ------------------------------------------------------------------------------- */

static size_t take(gp_cudnn_scratch *at, int64_t floats) {
  const size_t begin = at->workspace, bytes = (size_t)floats * sizeof(float);
  at->workspace += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return begin;
}

gp_cudnn_scratch gp_cudnn_lay_out(const gp_attention *piece) {
  const int64_t heads = piece->batches * piece->heads;
  gp_cudnn_scratch at = {0};
  if (piece->masked) take(&at, piece->mask_size);
  if (piece->dropout > 0) at.kept = take(&at, heads * piece->queries * ((piece->keys + 1) / 2));
  if (piece->backward) at.rowsum = take(&at, heads * piece->queries);
  return at;
}
