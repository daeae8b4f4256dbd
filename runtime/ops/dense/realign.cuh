/* ops/dense/realign.cuh - copies rows whose beginnings are aligned differently in both places, 16
 * bytes at a time.
 *
 * Rows of 50,257 halves begin at any even address. Copied element by element they move two bytes in
 * each access. Here a thread writes 16 aligned bytes of the target, put together from the two
 * aligned pieces of the source that hold them; several are under way. Pieces that would reach
 * beyond the row are copied element by element: no byte outside the rows is read. */
#ifndef GP_OPS_DENSE_REALIGN_CUH
#define GP_OPS_DENSE_REALIGN_CUH

#include "device/cuda/kernel/device.cuh"

enum { GP_REALIGN_THREADS = 256, GP_REALIGN_EACH = 4 /* pieces of a thread */ };

/* Rows of `columns` elements, which begin `ld` elements apart. */
template <typename W> struct gp_realign {
  W *to;
  const W *from;
  int64_t to_ld, from_ld, rows, columns;
};

struct alignas(16) gp_piece {
  uint32_t word[4];
};

/* A row as bytes: piece c of the target is bytes [head + 16 c, head + 16 c + 16), c from -1. */
template <typename W> struct gp_realign_row {
  W *to;
  const W *from;
  int64_t columns, head;
  int shift; /* bytes by which a piece's source misses an aligned address */

  __device__ int64_t first_of(int64_t piece) const { return head + 16 * piece; }

  /* Can both pieces of the source be read? */
  __device__ bool is_inside(int64_t piece) const {
    const int64_t first = first_of(piece), begin = first - shift;
    return first >= 0 && begin >= 0 && begin + 32 <= columns * (int64_t)sizeof(W);
  }

  __device__ void read(int64_t piece, gp_piece *low, gp_piece *high) const {
    const char *at = reinterpret_cast<const char *>(from) + first_of(piece) - shift;
    *low = *reinterpret_cast<const gp_piece *>(at);
    *high = *reinterpret_cast<const gp_piece *>(at + 16);
  }

  /* Write the 16 bytes that begin `shift` bytes behind the beginning of both pieces. */
  __device__ void write(int64_t piece, const gp_piece &low, const gp_piece &high) const {
    uint32_t w[8];
    gp_piece out;
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = low.word[i], w[4 + i] = high.word[i];
#pragma unroll
    for (int i = 0; i < 6; i++) w[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = shift & 4 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
      out.word[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> 8 * (shift & 3));
    *reinterpret_cast<gp_piece *>(reinterpret_cast<char *>(to) + first_of(piece)) = out;
  }

  __device__ void copy_elements(int64_t piece) const {
    const int64_t first = first_of(piece) / (int64_t)sizeof(W);
    for (int64_t i = first; i < first + 16 / (int64_t)sizeof(W); i++)
      if (i >= 0 && i < columns) to[i] = from[i];
  }
};

template <typename W>
static __device__ inline gp_realign_row<W> gp_realign_row_of(const gp_realign<W> &r, int64_t row) {
  gp_realign_row<W> at;
  at.to = r.to + row * r.to_ld, at.from = r.from + row * r.from_ld, at.columns = r.columns;
  at.head = (int64_t)(-(uintptr_t)at.to & 15);
  at.shift = (int)(((uintptr_t)at.from + (uintptr_t)at.head) & 15);
  return at;
}

template <typename W>
static __global__ void __launch_bounds__(GP_REALIGN_THREADS) gp_realign_kernel(gp_realign<W> r) {
  const int64_t first =
      (int64_t)blockIdx.x * GP_REALIGN_THREADS * GP_REALIGN_EACH + threadIdx.x - 1;
  for (int64_t row = blockIdx.y; row < r.rows; row += gridDim.y) {
    const gp_realign_row<W> at = gp_realign_row_of(r, row);
    gp_piece low[GP_REALIGN_EACH], high[GP_REALIGN_EACH];
#pragma unroll
    for (int i = 0; i < GP_REALIGN_EACH; i++) {
      const int64_t piece = first + i * GP_REALIGN_THREADS;
      if (at.is_inside(piece)) at.read(piece, &low[i], &high[i]);
    }
#pragma unroll
    for (int i = 0; i < GP_REALIGN_EACH; i++) {
      const int64_t piece = first + i * GP_REALIGN_THREADS;
      if (at.is_inside(piece))
        at.write(piece, low[i], high[i]);
      else
        at.copy_elements(piece);
    }
  }
}

template <typename W> static gp_status gp_realign_run(gp_gpu *gpu, const gp_realign<W> &r) {
  const int64_t most = 65535, each = GP_REALIGN_THREADS * GP_REALIGN_EACH;
  const int64_t pieces = (r.columns * (int64_t)sizeof(W) + 15) / 16 + 1;
  const dim3 grid((unsigned)((pieces + each - 1) / each),
                  (unsigned)(r.rows < most ? r.rows : most));
  if (r.rows == 0 || r.columns == 0) return GP_OK;
  return GP_LAUNCH(gpu, gp_realign_kernel<W>, grid, GP_REALIGN_THREADS, 0, r);
}

#endif
