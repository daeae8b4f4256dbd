/* ops/attention/flash.c - see flash.h: scratch layout, and the loop over heads in both types. */
#include "ops/attention/flash.h"

#include <math.h>
#include <string.h>

#include "base/random/philox.h"
#include "ops/constants.h"
#include "ops/elements.h"

/* ---- description --------------------------------------------------------------------------- */

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

/* Heads that share keys and values. */
static int64_t sharers(const gp_flash *f) { return f->groups > 0 ? f->heads / f->groups : 1; }

/* Heads of queries that are one unit of work. */
static int64_t heads_of_unit(const gp_flash *f) { return f->backward ? sharers(f) : 1; }

gp_cut gp_flash_cut(const gp_flash *f) {
  return (gp_cut){f->batches * f->heads / heads_of_unit(f), 1};
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Where things lie in the scratch of a thread, in bytes from its start. */
typedef struct layout {
  size_t scores, score_gradients, row_values, words, packed[GP_FLASH_OPERANDS], bytes;
  int64_t stride; /* elements between rows of scores */
} layout;

static size_t take(layout *l, size_t bytes) {
  size_t at = l->bytes;
  l->bytes += (bytes + 63) / 64 * 64;
  return at;
}

/* Whether heads may share it: keys and values. */
static bool is_shared(int operand) { return operand == GP_FLASH_K || operand == GP_FLASH_V; }

static int64_t rows_of(const gp_flash *f, int operand) {
  return is_shared(operand) ? f->keys : f->queries;
}

/* A matrix product wants adjacent elements in a row and rows that do not overlap. */
static bool needs_packing(const gp_flash *f, int operand) {
  const gp_heads *h = &f->in[operand];
  if (operand == GP_FLASH_O) return false;
  return h->column != 1 || h->row < f->width;
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
  int operands = f->backward ? GP_FLASH_OPERANDS : GP_FLASH_O;
  for (int i = 0; i < operands; i++)
    if (needs_packing(f, i)) l.packed[i] = take(&l, (size_t)(rows_of(f, i) * f->width) * size);
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

/* Keys that query i of a block sees. */
static int64_t keys_seen(const gp_flash *f, const block *b, int64_t i) {
  return f->causal && b->first + i + 1 < b->keys ? b->first + i + 1 : b->keys;
}

/* ---- kernels ------------------------------------------------------------------------------- */

#define GP_REAL_SOURCE "ops/attention/flash.inc"
#include "ops/math/real.h"

gp_status gp_flash_run(const gp_flash *f, gp_span span) {
  layout l = lay_out(f);
  for (int64_t unit = span.first; unit < span.last; unit++)
    GP_TRY(GP_BY_REAL(f->dtype, run_unit)(f, &l, unit, span.scratch));
  return GP_OK;
}
