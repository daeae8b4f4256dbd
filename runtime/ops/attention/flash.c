/* ops/attention/flash.c - see flash.h: scratch layout, and the loop over heads in both types. */
#include "ops/attention/flash.h"

#include <math.h>
#include <string.h>

#include "base/random/philox.h"
#include "base/numbers/half.h"
#include "ops/constants.h"
#include "ops/elements.h"
#include "ops/half/half.h"

/* ---- description --------------------------------------------------------------------------- */

void gp_flash_set_dtype(gp_flash *f, gp_dtype dtype) {
  f->dtype = gp_half_is(dtype) ? GP_F32 : dtype;
  f->half = gp_half_is(dtype) ? dtype : GP_F32;
}

void gp_flash_set_attrs(gp_flash *f, const gp_call *call) {
  f->call = call;
  f->causal = call->attr->attention.causal;
  f->dropout = call->attr->attention.dropout;
  f->scale = call->attr->attention.scale;
  if (f->scale == 0) f->scale = 1 / sqrt((double)f->width);
}

bool gp_flash_can_share(int64_t heads, int64_t groups) {
  return groups > 0 ? heads % groups == 0 : heads == groups;
}

double gp_flash_pairs(int64_t queries, int64_t keys, bool causal) {
  if (!causal) return (double)queries * (double)keys;
  double short_rows = (double)(queries < keys ? queries : keys);
  double full_rows = (double)queries - short_rows;
  return short_rows * (short_rows + 1) / 2 + full_rows * (double)keys;
}

/* Count the heads that share keys and values. */
static int64_t sharers(const gp_flash *f) { return f->groups > 0 ? f->heads / f->groups : 1; }

/* Count the heads of queries that are one unit of work. */
static int64_t heads_of_unit(const gp_flash *f) { return f->backward ? sharers(f) : 1; }

gp_cut gp_flash_cut(const gp_flash *f) {
  return (gp_cut){f->batches * f->heads / heads_of_unit(f), 1};
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Where the parts of a thread's scratch lie, in bytes from its start. */
typedef struct layout {
  size_t scores, score_gradients, row_values, words, packed[GP_FLASH_OPERANDS], bytes;
  size_t dq, dk, dv; /* for halves: in f32 until a head, or a unit, is done */
  int64_t stride;    /* elements between rows of scores */
} layout;

static size_t take(layout *l, size_t bytes) {
  size_t at = l->bytes;
  l->bytes += (bytes + 63) / 64 * 64;
  return at;
}

/* Tell whether heads may share the operand, as they do keys and values. */
static bool is_shared(int operand) { return operand == GP_FLASH_K || operand == GP_FLASH_V; }

static int64_t rows_of(const gp_flash *f, int operand) {
  return is_shared(operand) ? f->keys : f->queries;
}

/* A matrix product wants adjacent elements in a row, rows that do not overlap, and f32. The forward
 * pass writes in f32 first what is to be halves. */
static bool needs_packing(const gp_flash *f, int operand) {
  const gp_heads *h = &f->in[operand];
  if (operand == GP_FLASH_O) return gp_half_is(f->half) && !f->backward;
  return gp_half_is(f->half) || h->column != 1 || h->row < f->width;
}

/* Rows are 16 elements further apart than their length: power-of-two distances would make the
 * columns of a block compete for the same few lines of the cache. */
static layout lay_out(const gp_flash *f) {
  layout l = {.stride = (f->keys + 63) / 64 * 64 + 16};
  size_t size = gp_dtype_size(f->dtype), block = GP_FLASH_QUERIES * (size_t)l.stride * size;
  l.scores = take(&l, block);
  if (f->backward) l.score_gradients = take(&l, block);
  l.row_values = take(&l, GP_FLASH_QUERIES * size);
  if (f->dropout > 0) l.words = take(&l, (size_t)f->keys * sizeof(uint32_t));
  int operands = f->backward ? GP_FLASH_OPERANDS : GP_FLASH_O + 1;
  for (int i = 0; i < operands; i++)
    if (needs_packing(f, i)) l.packed[i] = take(&l, (size_t)(rows_of(f, i) * f->width) * size);
  if (!f->backward || !gp_half_is(f->half)) return l;
  l.dq = take(&l, (size_t)(f->queries * f->width) * size);
  l.dk = take(&l, (size_t)(f->keys * f->width) * size);
  l.dv = take(&l, (size_t)(f->keys * f->width) * size);
  return l;
}

size_t gp_flash_scratch(const gp_flash *f) { return lay_out(f).bytes; }

/* ---- blocks -------------------------------------------------------------------------------- */

/* Queries [first, first + rows) and the keys [0, keys) that they may see. */
typedef struct block {
  int64_t first, rows, keys;
} block;

static block block_at(const gp_flash *f, int64_t first) {
  const int64_t left = f->queries - first;
  block b = {first, left < GP_FLASH_QUERIES ? left : GP_FLASH_QUERIES, f->keys};
  if (f->causal && first + b.rows < b.keys) b.keys = first + b.rows;
  return b;
}

/* Count the keys that query i of a block sees. */
static int64_t keys_seen(const gp_flash *f, const block *b, int64_t i) {
  return f->causal && b->first + i + 1 < b->keys ? b->first + i + 1 : b->keys;
}

/* ---- halves -------------------------------------------------------------------------------- */

/* Copy between a head of halves and [rows, width] of f32. */
static void move_halves(const gp_flash *f, const gp_heads *h, int64_t b, int64_t head, int64_t rows,
                        float *wide, bool back) {
  uint16_t *at = (uint16_t *)h->data + b * h->batch + head * h->head;
  for (int64_t i = 0; i < rows; i++, at += h->row, wide += f->width)
    if (back)
      gp_half_narrow(f->half, wide, f->width, h->column, at);
    else
      gp_half_widen(f->half, at, h->column, f->width, wide);
}

static float widen(gp_dtype half, uint16_t bits) {
  return half == GP_BF16 ? gp_bf16_widen(bits) : gp_f16_widen(bits);
}

/* ---- kernels ------------------------------------------------------------------------------- */

#define GP_REAL_SOURCE "ops/attention/flash.inc"
#include "ops/math/real.h"

gp_status gp_flash_run(const gp_flash *f, gp_span span) {
  layout l = lay_out(f);
  for (int64_t unit = span.first; unit < span.last; unit++)
    GP_TRY(GP_BY_REAL(f->dtype, run_unit)(f, &l, unit, &span));
  return GP_OK;
}
