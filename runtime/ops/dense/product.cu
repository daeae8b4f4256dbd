/* ops/dense/product.cu - a product whose rows the tensor cores cannot take as they lie, by way of
 * padded copies.
 *
 * Rows of halves that do not begin at multiples of 16 bytes (a vocabulary of 50,257) leave the
 * library slow algorithms, or none. If the product is long enough to pay for it, such an operand is
 * copied to rows that begin at multiples of 128 bytes, and such a result is copied back: values and
 * gradients outside stay as they are. (Those of a language model's vocabulary lie padded already,
 * see graph/pad.c, and need no copies.) The copies are made in pieces of some rows, so that they
 * take bounded memory. The shape alone decides whether it is done, and by which pieces, so the bits
 * depend on nothing else. GPIPE_GEMM_PAD is another bound in KiB; 0 allows copies only for products
 * that the library refuses. */
#include <stdlib.h>

#include "ops/dense/dense.cuh"
#include "ops/dense/realign.cuh"

enum {
  ALIGNED = 16, /* bytes: what loads of tensor cores want */
  ROW = 128,    /* bytes: rows of copies */
  PART = 256    /* bytes: parts of the scratch */
};

static const int64_t ROUND = 128; /* rows of a piece are a multiple of this: whole tiles */
/* KiB of the copies of a piece: large enough for whole waves of tiles, small beside the values. */
static const int64_t MOST = 512 << 10;

/* ---- the decision -------------------------------------------------------------------------- */

/* A matrix as it is stored. */
typedef struct matrix {
  int64_t rows, columns, ld;
  size_t size; /* bytes of an element */
} matrix;

static matrix left_of(const gp_gpu_gemm *g) {
  return {g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, g->lda, gp_item_of(g->type)};
}

static matrix right_of(const gp_gpu_gemm *g) {
  return {g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, g->ldb, gp_item_of(g->type)};
}

static matrix output_of(const gp_gpu_gemm *g) {
  return {g->m, g->n, g->ldd, gp_item_of(g->d_type)};
}

static bool is_odd(const matrix *x) {
  return x->rows > 1 && (size_t)x->ld * x->size % ALIGNED != 0;
}

static int64_t padded_ld(const matrix *x) {
  const int64_t step = ROW / (int64_t)x->size;
  return (x->columns + step - 1) / step * step;
}

static int64_t padded_bytes(const matrix *x) {
  const int64_t bytes = x->rows * padded_ld(x) * (int64_t)x->size;
  return is_odd(x) ? (bytes + PART - 1) / PART * PART : 0;
}

static int64_t all_bytes(const gp_gpu_gemm *g) {
  const matrix a = left_of(g), b = right_of(g), d = output_of(g);
  return padded_bytes(&a) + padded_bytes(&b) + padded_bytes(&d);
}

/* Return the bound in KiB; it is the same for the life of a process. */
static int64_t asked_bound() {
  const char *asked = getenv("GPIPE_GEMM_PAD");
  return asked && *asked ? strtoll(asked, NULL, 10) : MOST;
}

/* A copy reads and writes its bytes at some TB/s; an odd product runs at a fraction of some hundred
 * TFLOP/s. */
static bool pays(const gp_gpu_gemm *g) {
  const double operations = 2.0 * (double)g->m * (double)g->n * (double)g->k;
  const bool halves = g->type == GP_BF16 || g->type == GP_F16;
  return halves && asked_bound() > 0 && operations >= 1e9 &&
         operations >= 128.0 * (double)all_bytes(g);
}

/* Also copy for a product that the library refused as it lies; it was asked in the first
 * prepare. */
static bool is_copied(gp_gpu *gpu, const gp_gpu_gemm *g) {
  const bool whole = g->batch <= 1 && g->m > 0 && g->n > 0 && g->k > 0;
  if (!whole || all_bytes(g) == 0) return false;
  return pays(g) || (g->epilogue == GP_GEMM_PLAIN && gp_gemm_is_refused(gpu, g));
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Count the rows of the left operand as stored: rows of D or, if it is transposed, steps of K. */
static int64_t stored_rows(const gp_gpu_gemm *g) { return g->transpose_a ? g->k : g->m; }

static gp_gpu_gemm piece_of(const gp_gpu_gemm *g, int64_t rows) {
  gp_gpu_gemm piece = *g;
  (g->transpose_a ? piece.k : piece.m) = rows;
  return piece;
}

/* Take as many rows as the bound allows. */
static int64_t rows_of_piece(const gp_gpu_gemm *g) {
  const int64_t rows = stored_rows(g), asked = asked_bound(), bound = asked > 0 ? asked : MOST;
  const gp_gpu_gemm some = piece_of(g, ROUND), none = piece_of(g, 0);
  const int64_t fixed = all_bytes(&none), each = (all_bytes(&some) - fixed) / ROUND;
  if (each <= 0) return rows;
  const int64_t fit = (bound * 1024 - fixed) / each / ROUND * ROUND;
  return fit >= rows ? rows : fit < ROUND ? ROUND : fit;
}

/* A piece with its copies in the scratch; addresses may be NULL. The right operand comes first:
 * with pieces of rows, all pieces share it, whatever their size. */
typedef struct copies {
  gp_gpu_gemm gemm;
  matrix a, b, d;
  bool a_odd, b_odd, d_odd;
} copies;

static const void *place(const matrix *x, bool odd, const void *as_is, int64_t *ld, char **at) {
  if (!odd) return as_is;
  const void *here = *at;
  *ld = padded_ld(x);
  if (*at) *at += padded_bytes(x);
  return here;
}

static copies lay_out(const gp_gpu_gemm *g, int64_t rows, void *scratch) {
  const gp_gpu_gemm piece = piece_of(g, rows);
  copies c = {piece, left_of(&piece), right_of(&piece), output_of(&piece), false, false, false};
  char *at = (char *)scratch;
  c.a_odd = is_odd(&c.a), c.b_odd = is_odd(&c.b), c.d_odd = is_odd(&c.d);
  c.gemm.b = place(&c.b, c.b_odd, g->b, &c.gemm.ldb, &at);
  c.gemm.a = place(&c.a, c.a_odd, g->a, &c.gemm.lda, &at);
  c.gemm.d = (void *)place(&c.d, c.d_odd, g->d, &c.gemm.ldd, &at);
  if (c.d_odd) c.gemm.c = NULL; /* it is copied in */
  return c;
}

/* ---- copying ------------------------------------------------------------------------------- */

template <typename W>
static gp_status copy_words(gp_gpu *gpu, const matrix *x, void *to, int64_t to_ld, const void *from,
                            int64_t from_ld) {
  return gp_realign_run(
      gpu, gp_realign<W>{(W *)to, (const W *)from, to_ld, from_ld, x->rows, x->columns});
}

static gp_status copy(gp_gpu *gpu, const matrix *x, void *to, int64_t to_ld, const void *from,
                      int64_t from_ld) {
  switch (x->size) {
  case 8: return copy_words<uint64_t>(gpu, x, to, to_ld, from, from_ld);
  case 4: return copy_words<uint32_t>(gpu, x, to, to_ld, from, from_ld);
  default: return copy_words<uint16_t>(gpu, x, to, to_ld, from, from_ld);
  }
}

static const void *element(const void *of, int64_t at, size_t size) {
  return of ? (const char *)of + (size_t)at * size : NULL;
}

/* Return the product from row `at` of the left operand on. */
static gp_gpu_gemm from_row(const gp_gpu_gemm *g, int64_t at) {
  gp_gpu_gemm piece = *g;
  const size_t item = gp_item_of(g->type), out = gp_item_of(g->d_type);
  piece.a = element(g->a, at * g->lda, item);
  if (g->transpose_a) {
    piece.b = element(g->b, g->transpose_b ? at : at * g->ldb, item);
    piece.accumulate = g->accumulate || at > 0;
    if (at > 0) piece.c = NULL;
  } else {
    piece.d = (void *)element(g->d, at * g->ldd, out);
    piece.c = element(g->c, at * g->ldd, out);
  }
  return piece;
}

/* Only the first piece copies a right operand that every piece has. */
static gp_status run_piece(gp_gpu *gpu, const gp_gpu_gemm *g, int64_t at, int64_t rows,
                           void *scratch) {
  const gp_gpu_gemm part = from_row(g, at);
  const copies c = lay_out(&part, rows, scratch);
  const bool first = g->transpose_a || at == 0;
  const void *added = part.c ? part.c : part.d;
  if (c.a_odd) GP_GPU_TRY(copy(gpu, &c.a, (void *)c.gemm.a, c.gemm.lda, part.a, part.lda));
  if (c.b_odd && first) GP_GPU_TRY(copy(gpu, &c.b, (void *)c.gemm.b, c.gemm.ldb, part.b, part.ldb));
  if (c.d_odd && part.accumulate)
    GP_GPU_TRY(copy(gpu, &c.d, c.gemm.d, c.gemm.ldd, added, part.ldd));
  GP_GPU_TRY(gp_tails_run(gpu, &c.gemm));
  return c.d_odd ? copy(gpu, &c.d, part.d, part.ldd, c.gemm.d, c.gemm.ldd) : GP_OK;
}

/* ---- products ------------------------------------------------------------------------------ */

static gp_status refuse(const gp_gpu_gemm *g) {
  return gp_gpu_fail(GP_EUNSUPPORTED, "a product of %lld columns: what follows it is done apart",
                     (long long)g->n);
}

/* Tell whether a product does more than pieces can: pieces of rows can take a bias, but pieces of K
 * would each add it. */
static bool is_more(const gp_gpu_gemm *g) {
  return g->epilogue != GP_GEMM_PLAIN || (g->biased && (g->transpose_a || g->accumulate));
}

static void note(gp_gpu *gpu, const gp_gpu_gemm *g) {
  char name[GP_GEMM_NAME];
  gp_gemm_name(g, name);
  gp_gpu_note_path(gpu, "product", name, "cuBLASLt over padded copies",
                   "rows do not begin at multiples of 16 bytes");
}

/* Prepare two products: all pieces but the last are alike. */
gp_status gp_product_prepare(gp_gpu *gpu, const gp_gpu_gemm *g, size_t *scratch) {
  if (!is_copied(gpu, g)) return gp_tails_prepare(gpu, g);
  if (is_more(g)) return refuse(g);
  const int64_t all = stored_rows(g), rows = rows_of_piece(g);
  const copies first = lay_out(g, rows, NULL), last = lay_out(g, (all - 1) % rows + 1, NULL);
  const size_t bytes =
      (size_t)(padded_bytes(&first.a) + padded_bytes(&first.b) + padded_bytes(&first.d));
  if (*scratch < bytes) *scratch = bytes;
  if (!gpu->spare) note(gpu, g);
  GP_GPU_TRY(gp_tails_prepare(gpu, &first.gemm));
  return gp_tails_prepare(gpu, &last.gemm);
}

gp_status gp_product_run(gp_gpu *gpu, const gp_gpu_gemm *g, void *scratch) {
  if (!is_copied(gpu, g)) return gp_tails_run(gpu, g);
  if (is_more(g)) return refuse(g);
  const int64_t all = stored_rows(g), rows = rows_of_piece(g);
  for (int64_t at = 0; at < all; at += rows)
    GP_GPU_TRY(run_piece(gpu, g, at, all - at < rows ? all - at : rows, scratch));
  return GP_OK;
}
