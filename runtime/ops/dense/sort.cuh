/* ops/dense/sort.cuh - a stable radix sort of (id, position): ids together, positions ascending in
 * each.
 *
 * A pass sorts by one digit of the id, lowest first: blocks count the digits of their tiles, one
 * block adds the counts up, blocks put entries where they belong. Within a tile warps own
 * neighbouring entries and rank equal digits by votes, so nothing depends on which warp comes
 * first. Source: Merrill and Grimshaw, "High performance and scalable radix sorting" (2011),
 * without its fused scan. */
#ifndef GP_OPS_DENSE_SORT_CUH
#define GP_OPS_DENSE_SORT_CUH

#include "device/cuda/kernel/lanes.cuh"

enum {
  GP_SORT_THREADS = 256, /* at least as many as a digit has values */
  GP_SORT_WARPS = GP_SORT_THREADS / GP_WARP,
  GP_SORT_ROUNDS = 8, /* entries of a thread */
  GP_SORT_TILE = GP_SORT_THREADS * GP_SORT_ROUNDS,
  GP_SORT_DIGITS = 256,
  GP_SORT_SCAN = 1024 /* threads of the one block that adds the counts up */
};

/* id << 32 | position */
typedef uint64_t gp_entry;

static __host__ __device__ inline uint32_t gp_entry_id(gp_entry entry) {
  return (uint32_t)(entry >> 32);
}

/* A sort of n entries whose ids are 0 .. most; its passes alternate between two arrays. */
struct gp_sort {
  int64_t n, tiles;
  int passes, bits; /* bits: of a digit */
};

static inline gp_sort gp_sort_plan(int64_t n, uint64_t most) {
  gp_sort s = {n, (n + GP_SORT_TILE - 1) / GP_SORT_TILE, 1, 1};
  int bits = 1;
  while (bits < 32 && most >> bits) bits++;
  s.passes = (bits + 7) / 8;
  s.bits = (bits + s.passes - 1) / s.passes;
  return s;
}

static inline size_t gp_sort_counts(const gp_sort *s) {
  return (size_t)(s->tiles * GP_SORT_DIGITS);
}

/* ---- one pass ------------------------------------------------------------------------------- */

struct gp_sort_pass {
  const gp_entry *from;
  gp_entry *to;
  uint32_t *counts; /* [digit][tile] */
  int64_t n, tiles;
  int shift, bits;
};

static __device__ inline uint32_t gp_sort_digit(const gp_sort_pass &p, gp_entry entry) {
  return gp_entry_id(entry) >> p.shift & ((1u << p.bits) - 1);
}

static __global__ void gp_sort_count(gp_sort_pass p) {
  __shared__ uint32_t count[GP_SORT_DIGITS];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int r = 0; r < GP_SORT_ROUNDS; r++) {
    const int64_t at = (int64_t)blockIdx.x * GP_SORT_TILE + r * GP_SORT_THREADS + threadIdx.x;
    if (at < p.n) atomicAdd(&count[gp_sort_digit(p, p.from[at])], 1u);
  }
  __syncthreads();
  p.counts[threadIdx.x * p.tiles + blockIdx.x] = count[threadIdx.x];
}

/* Add up the values of the threads before this one; part: one value a warp. */
static __device__ inline uint32_t gp_sort_before(uint32_t mine, uint32_t *part) {
  const int lane = threadIdx.x % GP_WARP, warp = threadIdx.x / GP_WARP;
  uint32_t sum = mine;
  for (int step = 1; step < GP_WARP; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == GP_WARP - 1) part[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; w++) sum += part[w];
  return sum - mine;
}

/* Make counts[i] the sum of all counts before it. Runs on one block. */
static __global__ void gp_sort_add_up(uint32_t *counts, int64_t n) {
  __shared__ uint32_t part[GP_SORT_SCAN / GP_WARP];
  const int64_t each = (n + GP_SORT_SCAN - 1) / GP_SORT_SCAN;
  const int64_t begin = threadIdx.x * each, end = begin + each < n ? begin + each : n;
  uint32_t mine = 0;
  for (int64_t i = begin; i < end; i++) mine += counts[i];
  uint32_t before = gp_sort_before(mine, part);
  for (int64_t i = begin; i < end; i++) {
    const uint32_t count = counts[i];
    counts[i] = before;
    before += count;
  }
}

/* Return the lanes of the warp that are in use and have this digit. */
static __device__ inline uint32_t gp_sort_peers(uint32_t digit, bool used, int bits) {
  uint32_t peers = __ballot_sync(0xffffffffu, used);
  for (int b = 0; b < bits; b++) {
    const uint32_t set = __ballot_sync(0xffffffffu, digit >> b & 1);
    peers &= digit >> b & 1 ? set : ~set;
  }
  return peers;
}

/* Read entry r of this thread; return whether there is one. */
static __device__ inline bool gp_sort_entry(const gp_sort_pass &p, int r, gp_entry *entry) {
  const int64_t warp = (int64_t)blockIdx.x * GP_SORT_WARPS + threadIdx.x / GP_WARP;
  const int64_t at = (warp * GP_SORT_ROUNDS + r) * GP_WARP + threadIdx.x % GP_WARP;
  *entry = at < p.n ? p.from[at] : 0;
  return at < p.n;
}

/* Return the place of this thread's entry. next[digit] belongs to this warp: a count at first, then
 * where its next entry of that digit goes. The lowest lane of those with one digit advances it. */
static __device__ inline uint32_t gp_sort_advance(uint32_t *next, uint32_t digit, uint32_t peers) {
  const uint32_t lane = threadIdx.x % GP_WARP, below = peers & ((1u << lane) - 1);
  const bool used = peers >> lane & 1;
  const uint32_t place = used ? next[digit] + __popc(below) : 0;
  __syncwarp();
  if (used && below == 0) next[digit] += __popc(peers);
  __syncwarp();
  return place;
}

static __global__ void gp_sort_scatter(gp_sort_pass p) {
  __shared__ uint32_t next[GP_SORT_WARPS][GP_SORT_DIGITS];
  const int warp = threadIdx.x / GP_WARP;
  gp_entry entry;
  for (int w = 0; w < GP_SORT_WARPS; w++) next[w][threadIdx.x] = 0;
  __syncthreads();
  for (int r = 0; r < GP_SORT_ROUNDS; r++) {
    const bool used = gp_sort_entry(p, r, &entry);
    const uint32_t digit = gp_sort_digit(p, entry);
    gp_sort_advance(next[warp], digit, gp_sort_peers(digit, used, p.bits));
  }
  __syncthreads();
  uint32_t place = p.counts[threadIdx.x * p.tiles + blockIdx.x];
  for (int w = 0; w < GP_SORT_WARPS; w++) {
    const uint32_t count = next[w][threadIdx.x];
    next[w][threadIdx.x] = place;
    place += count;
  }
  __syncthreads();
  for (int r = 0; r < GP_SORT_ROUNDS; r++) {
    const bool used = gp_sort_entry(p, r, &entry);
    const uint32_t digit = gp_sort_digit(p, entry);
    const uint32_t to = gp_sort_advance(next[warp], digit, gp_sort_peers(digit, used, p.bits));
    if (used) p.to[to] = entry;
  }
}

/* ---- launching ------------------------------------------------------------------------------ */

/* Sort entries, with a second array as large and counts; *sorted is where they end. */
static inline gp_status gp_sort_run(gp_gpu *gpu, const gp_sort &s, gp_entry *const arrays[2],
                                    uint32_t *counts, const gp_entry **sorted) {
  const unsigned tiles = (unsigned)s.tiles;
  *sorted = arrays[s.passes % 2];
  for (int k = 0; k < s.passes; k++) {
    const gp_sort_pass p = {arrays[k % 2], arrays[(k + 1) % 2], counts, s.n,
                            s.tiles,       k * s.bits,          s.bits};
    GP_GPU_TRY(GP_LAUNCH(gpu, gp_sort_count, tiles, GP_SORT_THREADS, 0, p));
    GP_GPU_TRY(
        GP_LAUNCH(gpu, gp_sort_add_up, 1, GP_SORT_SCAN, 0, counts, s.tiles * GP_SORT_DIGITS));
    GP_GPU_TRY(GP_LAUNCH(gpu, gp_sort_scatter, tiles, GP_SORT_THREADS, 0, p));
  }
  return GP_OK;
}

#endif
