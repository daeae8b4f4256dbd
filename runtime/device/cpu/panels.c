/* device/cpu/panels.c - tiles of 6 x 64 sums in 24 of 32 registers; see panels.h.
 *
 * Contraction is off in the whole build; the code names the fused multiply-add, as in gemm_plain.c.
 *
 * Measured on a Xeon (Emerald Rapids), in shares of what a tile makes out of the first cache, with
 * weights from memory: 94 to 98 % for 64 rows, where dnnl_sgemm makes 83 to 97 %, and 80 to 87 %
 * for a gradient over 256 rows, where it makes 78 to 90 %. Tiles of 8 x 48 are as fast, of 14 x 32
 * slower. */
#include "device/cpu/panels.h"

#include "base/loop.h"
#include "device/cpu/processor.h"

enum {
  LARGE = 1 << 17 /* elements of a weight, 512 KiB: a smaller one stays in the second-level cache,
                   * where dnnl_sgemm is as fast */
};

bool gp_panels_pay(void) { return gp_panels_built() && gp_processor_is_intel(); }

bool gp_panels_serve(int64_t n, int64_t k) {
  const bool large = n > 0 && k > 0 && n >= (LARGE + k - 1) / k;
  return large && n % 16 == 0 && k % 16 == 0 && gp_panels_pay();
}

/* ---- packing -------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Panel [depth, width] of columns that are stored as rows: a line of each row at a time, whose
 * elements go to a part of the panel that stays in the first cache. */
static void turn_panel(const gp_panels_weight *w, const float *from, int64_t width, float *panel) {
  enum { LINE = 16 };
  for (int64_t k = 0; k < w->depth; k += LINE) {
    const int64_t end = smaller(w->depth, k + LINE);
    for (int64_t c = 0; c < width; c++)
      for (int64_t l = k; l < end; l++) panel[l * width + c] = from[c * w->ld + l];
  }
}

static void copy_panel(const gp_panels_weight *w, const float *from, int64_t width, float *panel) {
  enum { AHEAD = 8 }; /* rows; each lies in another page */
  for (int64_t k = 0; k < w->depth; k++, from += w->ld)
    for (int64_t c = 0; c < width; c++) {
      if (c % 16 == 0) __builtin_prefetch(from + AHEAD * w->ld + c);
      *panel++ = from[c];
    }
}

void gp_panels_pack(const gp_panels_weight *w, int64_t first, int64_t last, float *panels) {
  for (int64_t c = first; c < last; c += GP_PANEL) {
    const int64_t width = smaller(GP_PANEL, last - c);
    if (w->transposed)
      turn_panel(w, w->data + c * w->ld, width, panels + c * w->depth);
    else
      copy_panel(w, w->data + c, width, panels + c * w->depth);
  }
}

#if defined(__AVX512F__)
#include <immintrin.h>

enum { ROWS = 6, VECTORS = 4, LANES = 16 };

#define UNROLL GP_UNROLL(16)
#define INLINE static inline __attribute__((always_inline))

bool gp_panels_built(void) { return true; }

/* ---- rows times a weight -------------------------------------------------------------------- */

/* Where a tile reads and writes, from its first row and column on. */
typedef struct tile {
  int64_t depth, lda, ldb, ldc;
  const float *a, *b, *bias;
  float *c;
  const float *ahead; /* what it asks for into the second-level cache: a line at a time, */
  int64_t step;       /* so many elements further for each of its depth */
} tile;

/* Ask for line `i` of what a tile will write, one with each of its first products: stores that miss
 * the cache wait in a queue, and the next tile waits for the queue (base/prefetch.h). */
INLINE void ask_for_sum(const float *c, int64_t ld, int64_t i, const int vectors) {
  __builtin_prefetch(c + i / vectors * ld + i % vectors * LANES, 1);
}

INLINE void multiply(const tile *t, const int rows, const int vectors) {
  __m512 sum[ROWS][VECTORS];
  const float *a[ROWS], *b = t->b, *ahead = t->ahead;
  UNROLL for (int r = 0; r < rows; r++) {
    a[r] = t->a + r * t->lda;
    UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
        t->bias ? _mm512_loadu_ps(t->bias + v * LANES) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < t->depth; k++, b += t->ldb, ahead += t->step) {
    __m512 w[VECTORS];
    __builtin_prefetch(ahead, 0, 2);
    if (k < rows * vectors) ask_for_sum(t->c, t->ldc, k, vectors);
    UNROLL for (int v = 0; v < vectors; v++) w[v] = _mm512_loadu_ps(b + v * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const __m512 x = _mm512_set1_ps(a[r][k]);
      UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_fmadd_ps(x, w[v], sum[r][v]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
      _mm512_storeu_ps(t->c + r * t->ldc + v * LANES, sum[r][v]);
}

INLINE void multiply_rows(const tile *t, int64_t rows, const int vectors) {
  switch (rows) {
  case 1: multiply(t, 1, vectors); break;
  case 2: multiply(t, 2, vectors); break;
  case 3: multiply(t, 3, vectors); break;
  case 4: multiply(t, 4, vectors); break;
  case 5: multiply(t, 5, vectors); break;
  default: multiply(t, ROWS, vectors);
  }
}

/* A tile of a panel's full width, or of the last panel's, part by part. */
static void multiply_tile(tile t, int64_t rows, int64_t width) {
  if (width == GP_PANEL) {
    multiply_rows(&t, rows, VECTORS);
    return;
  }
  for (int64_t c = 0; c < width; c += LANES, t.b += LANES, t.c += LANES) {
    multiply_rows(&t, rows, 1);
    if (t.bias) t.bias += LANES;
  }
}

/* A panel is read once for all rows, and asked for while the one before is used: after the last one
 * the first one is, for the rows that come next. */
void gp_panels_multiply(const gp_panels *p) {
  const int64_t tiles = (p->rows + ROWS - 1) / ROWS;
  for (int64_t c = 0; tiles > 0 && c < p->columns; c += GP_PANEL) {
    const int64_t width = smaller(GP_PANEL, p->columns - c), next = c + GP_PANEL;
    tile t = {.depth = p->depth,
              .lda = p->lda,
              .ldb = width,
              .ldc = p->ldc,
              .a = p->a,
              .b = p->panels + c * p->depth,
              .bias = p->bias ? p->bias + c : NULL,
              .c = p->c + c,
              .ahead = p->panels + (next < p->columns ? next : 0) * p->depth,
              .step = (GP_PANEL + tiles - 1) / tiles};
    for (int64_t r = 0; r < p->rows; r += ROWS) {
      multiply_tile(t, smaller(ROWS, p->rows - r), width);
      t.a += ROWS * p->lda, t.c += ROWS * p->ldc, t.ahead += t.step * p->depth;
    }
  }
}

/* ---- a weight's gradient -------------------------------------------------------------------- */

/* Copies rows of up to a stride's elements; those that do not fill a vector are zeros behind. */
static void gather(const float *from, int64_t ld, int64_t rows, int64_t width, float *to,
                   int64_t stride) {
  enum { AHEAD = 6 };
  const int64_t full = width / LANES * LANES;
  const __mmask16 rest = (__mmask16)((1u << (width - full)) - 1);
  for (int64_t p = 0; p < rows; p++, from += ld, to += stride) {
    for (int64_t i = 0; i < full; i += LANES) {
      __builtin_prefetch(from + AHEAD * ld + i);
      _mm512_storeu_ps(to + i, _mm512_loadu_ps(from + i));
    }
    if (rest) _mm512_storeu_ps(to + full, _mm512_maskz_loadu_ps(rest, from + full));
  }
}

/* The sums of a tile, over a [places, GP_OUTER_STRIDE] and b [places, ldb]. */
typedef struct outer_tile {
  int64_t places, ldb, ld;
  const float *a, *b;
  float *sums, *next; /* the sums that are wanted after these */
  bool add;
} outer_tile;

INLINE void multiply_outer(const outer_tile *t, const int rows, const int vectors) {
  __m512 sum[ROWS][VECTORS];
  const float *a = t->a, *b = t->b;
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
      t->add ? _mm512_loadu_ps(t->sums + r * t->ld + v * LANES) : _mm512_setzero_ps();
  for (int64_t p = 0; p < t->places; p++, a += GP_OUTER_STRIDE, b += t->ldb) {
    __m512 w[VECTORS];
    if (p < ROWS * VECTORS) ask_for_sum(t->next, t->ld, p, VECTORS);
    UNROLL for (int v = 0; v < vectors; v++) w[v] = _mm512_loadu_ps(b + v * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const __m512 x = _mm512_set1_ps(a[r]);
      UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = _mm512_fmadd_ps(x, w[v], sum[r][v]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
      _mm512_storeu_ps(t->sums + r * t->ld + v * LANES, sum[r][v]);
}

INLINE void outer_rows(const outer_tile *t, int64_t rows, const int vectors) {
  switch (rows) {
  case 1: multiply_outer(t, 1, vectors); break;
  case 2: multiply_outer(t, 2, vectors); break;
  case 3: multiply_outer(t, 3, vectors); break;
  case 4: multiply_outer(t, 4, vectors); break;
  case 5: multiply_outer(t, 5, vectors); break;
  default: multiply_outer(t, ROWS, vectors);
  }
}

/* The sums of all rows in the columns of one strip. */
static void multiply_strip(const gp_panels_outer *s, outer_tile t, int64_t width) {
  for (int64_t r = 0; r < s->rows; r += ROWS, t.a += ROWS, t.sums += ROWS * t.ld) {
    const int64_t rows = smaller(ROWS, s->rows - r);
    t.next = r + ROWS < s->rows ? t.sums + ROWS * t.ld : t.sums - r * t.ld + GP_PANEL;
    if (width == GP_PANEL) {
      outer_rows(&t, rows, VECTORS);
      continue;
    }
    for (int64_t c = 0; c < width; c += LANES) {
      outer_tile part = t;
      part.b += c, part.sums += c;
      outer_rows(&part, rows, 1);
    }
  }
}

/* Sums over the places from p on that are copied at once, of all strips. */
static void multiply_places(const gp_panels_outer *s, int64_t p, bool add) {
  float *left = s->scratch, *strip = left + GP_OUTER_PLACES * GP_OUTER_STRIDE;
  const int64_t places = smaller(GP_OUTER_PLACES, s->places - p);
  gather(s->left + p * s->ld_left, s->ld_left, places, s->rows, left, GP_OUTER_STRIDE);
  for (int64_t c = 0; c < s->columns; c += GP_PANEL) {
    const int64_t width = smaller(GP_PANEL, s->columns - c);
    const outer_tile t = {.places = places,
                          .ldb = width,
                          .ld = s->ld,
                          .a = left,
                          .b = strip,
                          .sums = s->sums + c,
                          .add = add};
    gather(s->right + p * s->ld_right + c, s->ld_right, places, width, strip, width);
    multiply_strip(s, t, width);
  }
}

void gp_panels_outer_multiply(const gp_panels_outer *s) {
  multiply_places(s, 0, s->add);
  for (int64_t p = GP_OUTER_PLACES; p < s->places; p += GP_OUTER_PLACES)
    multiply_places(s, p, true);
}

#else

bool gp_panels_built(void) { return false; }
void gp_panels_multiply(const gp_panels *p) { (void)p; }
void gp_panels_outer_multiply(const gp_panels_outer *s) { (void)s; }

#endif
