/* ops/reduce/lines.cuh - sums over runs of memory: [results, terms] -> [results], in a fixed order.
 *
 * The terms of a result, in row-major order, are cut into pieces of fixed length. A warp adds each
 * piece in the 64-lane order; if there are several, the sums of pieces are terms again. The bits
 * depend on the shape alone. The source defines what a term is: an element, or a squared
 * difference of two. */
#ifndef GP_OPS_REDUCE_LINES_CUH
#define GP_OPS_REDUCE_LINES_CUH

#include "ops/reduce/terms.cuh"
#include "ops/short_rows.cuh"

enum { GP_PIECE = 2048 }; /* terms that a warp adds: 64 a thread, enough for many loads in flight */

/* Result k has its terms at kept(k) + reduced(line) + 0 .. width - 1 for all lines. */
struct gp_lines {
  gp_strides kept, reduced;
  int64_t results, terms, width;
  int64_t pieces; /* per result */
};

static inline int64_t gp_pieces_of(int64_t terms) {
  return terms > GP_PIECE ? (terms + GP_PIECE - 1) / GP_PIECE : 1;
}

/* All terms of one result, neighbours in memory. */
static inline gp_lines gp_lines_flat(int64_t terms) {
  gp_lines l = {};
  l.results = 1, l.terms = l.width = terms, l.pieces = gp_pieces_of(terms);
  return l;
}

/* Count the sums that must be kept between the passes. */
static inline size_t gp_lines_scratch(int64_t results, int64_t terms) {
  int64_t sums = 0;
  for (int64_t n = gp_pieces_of(terms); n > 1; n = gp_pieces_of(n)) sums += results * n;
  return (size_t)sums;
}

/* ---- kernel --------------------------------------------------------------------------------- */

/* Plain elements. A source has `sum` (the type of sums); paired(base): whether pair(at) can be used
 * for even distances from base; one(at) and pair(at), which return terms. */
template <typename T> struct gp_plain_terms {
  typedef typename gp_sum_of<T>::type sum;
  const T *x;
  __device__ bool paired(int64_t base) const {
    return ((uintptr_t)(x + base) & (2 * sizeof(T) - 1)) == 0;
  }
  __device__ sum one(int64_t at) const { return (sum)gp_load(x[at]); }
  __device__ gp_pair<sum> pair(int64_t at) const {
    const gp_pair<T> p = *reinterpret_cast<const gp_pair<T> *>(x + at);
    return {{(sum)gp_load(p.at[0]), (sum)gp_load(p.at[1])}};
  }
};

/* Sum terms [first, last) from base on that are neighbours; first is even. */
template <typename Source>
static __device__ typename Source::sum gp_sum_run(const Source &source, int64_t base, int64_t first,
                                                  int64_t last) {
  typename Source::sum even = 0, odd = 0;
  int64_t at = first + 2 * (int64_t)threadIdx.x;
  if (source.paired(base)) {
#pragma unroll 8
    for (; at + 1 < last; at += GP_WARP_LANES) {
      const gp_pair<typename Source::sum> pair = source.pair(base + at);
      even = gp_plus(even, pair.at[0]), odd = gp_plus(odd, pair.at[1]);
    }
  }
#pragma unroll 4
  for (; at < last; at += GP_WARP_LANES) {
    even = gp_plus(even, source.one(base + at));
    if (at + 1 < last) odd = gp_plus(odd, source.one(base + at + 1));
  }
  return gp_lanes_sum(even, odd);
}

/* Sum terms that lie in several lines. */
template <typename Source>
static __device__ typename Source::sum gp_sum_lines(const Source &source, const gp_lines &l,
                                                    int64_t base, int64_t first) {
  typename Source::sum lane[2] = {0, 0};
  const int64_t last = first + GP_PIECE < l.terms ? first + GP_PIECE : l.terms;
  for (int64_t at = first + 2 * (int64_t)threadIdx.x; at < last; at += GP_WARP_LANES)
#pragma unroll
    for (int k = 0; k < 2; k++) {
      if (at + k >= last) continue;
      const int64_t line = (at + k) / l.width, within = at + k - line * l.width;
      lane[k] = gp_plus(lane[k], source.one(base + gp_offset_of(l.reduced, line) + within));
    }
  return gp_lanes_sum(lane[0], lane[1]);
}

/* A warp adds a piece. */
template <typename Source>
static __global__ void gp_lines_kernel(Source source, gp_lines l, gp_sink out) {
  const int64_t unit = gp_short_row();
  if (unit >= l.results * l.pieces) return;
  const int64_t result = unit / l.pieces, first = (unit - result * l.pieces) * GP_PIECE;
  const int64_t last = first + GP_PIECE < l.terms ? first + GP_PIECE : l.terms;
  const int64_t base = gp_offset_of(l.kept, result);
  const typename Source::sum sum = l.reduced.rank == 0 ? gp_sum_run(source, base, first, last)
                                                       : gp_sum_lines(source, l, base, first);
  if (threadIdx.x == 0) gp_sink_put(out, unit, sum);
}

/* ---- launching ------------------------------------------------------------------------------ */

template <typename Source>
static gp_status gp_lines_launch(gp_gpu *gpu, const Source &source, const gp_lines &l,
                                 gp_sink out) {
  const int64_t units = l.results * l.pieces;
  if (units == 0) return GP_OK;
  return GP_LAUNCH(gpu, gp_lines_kernel<Source>, gp_short_grid(units), gp_short_block(), 0, source,
                   l, out);
}

/* Run all passes: the sums of pieces, [results, pieces] in scratch, are lines until one is left. */
template <typename Source>
static gp_status gp_lines_run(gp_gpu *gpu, const Source &source, const gp_lines &l, gp_sink out,
                              void *scratch) {
  typedef typename Source::sum A;
  if (l.pieces == 1) return gp_lines_launch(gpu, source, l, out);
  GP_GPU_TRY(gp_lines_launch(gpu, source, l, gp_sink{scratch, gp_sum_dtype(A()), false}));
  gp_lines next = {};
  gp_strides_push(&next.kept, l.results, l.pieces);
  next.results = l.results;
  next.terms = next.width = l.pieces;
  next.pieces = gp_pieces_of(l.pieces);
  const gp_plain_terms<A> again = {(const A *)scratch};
  return gp_lines_run(gpu, again, next, out, (A *)scratch + l.results * l.pieces);
}

#endif
