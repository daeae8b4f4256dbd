/* ops/attention/beside_cudnn.cu - what cuDNN's graphs of attention leave to us, see
 * device/cuda/attention.h.
 *
 * The graphs cannot compute with infinities: a hidden key gets GP_MASK_HIDDEN, in which every score
 * disappears. A query whose keys are all hidden is known by its lse, and gets what mask.h promises;
 * backward, its lse of 0 makes all of its probabilities 0. */
#include "ops/attention/flash.cuh"
#include "ops/attention/flash_scores.cuh"

enum { THREADS = 256, LANES = 32, PACK = 8 /* halves in 16 bytes */ };

static int64_t blocks_for(int64_t n, int per_block) { return (n + per_block - 1) / per_block; }

/* ---- masks --------------------------------------------------------------------------------- */

/* Count the elements along a dimension: one if the mask is the same for all of it. */
static int64_t count_of(int64_t distance, int64_t size) { return distance == 0 ? 1 : size; }

/* The dimensions of a mask, 1 where it is the same for all; row: elements from one
 * row to the next. */
struct mask_extent {
  int64_t batches, heads, queries, row;
};

/* One thread copies one element; blocks of one row are neighbours. The gap between rows is filled
 * with hidden keys, since the library may fetch it with the row. */
template <typename T>
static __global__ void attention_stage_mask(gp_attention a, gp_attention_value to, mask_extent e) {
  const int64_t per_row = (e.row + THREADS - 1) / THREADS;
  const int64_t key = (int64_t)blockIdx.x % per_row * THREADS + threadIdx.x;
  const int64_t row = (int64_t)blockIdx.x / per_row, query = row % e.queries;
  const int64_t head = row / e.queries % e.heads, batch = row / e.queries / e.heads;
  if (key >= e.row) return;
  float bias = (float)GP_MASK_HIDDEN;
  if (key < a.keys) bias = bias_of<T>(a, mask_of<T>(a, batch, head), query, key);
  float *line = (float *)to.data + batch * to.batch + head * to.head + query * to.row;
  line[key] = bias < (float)GP_MASK_HIDDEN ? (float)GP_MASK_HIDDEN : bias;
}

gp_status gp_attention_stage_mask(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_value *to) {
  const mask_extent e = {count_of(to->batch, a->batches), count_of(to->head, a->heads),
                         count_of(to->row, a->queries), gp_attention_mask_row(a)};
  const int64_t blocks = e.batches * e.heads * e.queries * blocks_for(e.row, THREADS);
  if (blocks > INT32_MAX) return gp_flash_too_many(a);
  if (a->dtype == GP_F16)
    return GP_LAUNCH(gpu, attention_stage_mask<gp_f16>, (unsigned)blocks, THREADS, 0, *a, *to, e);
  return GP_LAUNCH(gpu, attention_stage_mask<gp_bf16>, (unsigned)blocks, THREADS, 0, *a, *to, e);
}

/* ---- dropout ------------------------------------------------------------------------------- */

/* A thread makes 32 elements of a chunk of 64 words, by eight blocks of Philox, where chunks begin
 * with the rows; it draws none for keys that the query does not see. */
template <typename T>
static __device__ inline void write_chunk(const gp_attention &a, const dropout<float> &d,
                                          int64_t pair, uint64_t word, T *to) {
  gp_pack<T> packs[GP_PHILOX_WORDS] = {};
  const bool seen = !a.causal || pair % a.keys <= pair / a.keys % a.queries;
  for (int e = 0; e < PACK && seen; e++) {
    uint32_t words[GP_PHILOX_WORDS];
    gp_philox_block(d.seed, d.step, d.random,
                    word / GP_PHILOX_CHUNK * GP_PHILOX_BLOCKS + word % GP_PHILOX_CHUNK + e, words);
    for (int i = 0; i < GP_PHILOX_WORDS; i++)
      packs[i].at[e] = gp_store<T>(words[i] >= d.threshold ? 1.0f : 0.0f);
  }
  for (int i = 0; i < GP_PHILOX_WORDS; i++)
    *reinterpret_cast<gp_pack<T> *>(to + i * GP_PHILOX_BLOCKS) = packs[i];
}

template <typename T>
static __global__ void attention_write_kept(gp_attention a, gp_attention_words w, T *to) {
  const dropout<float> d = dropout_of<float>(a, 0, 0);
  const int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t threads = (int64_t)gridDim.x * THREADS;
  const uint64_t first = d.first + (uint64_t)w.first;
  if (a.keys % GP_PHILOX_CHUNK == 0 && first % GP_PHILOX_CHUNK == 0) {
    for (int64_t i = thread; i < w.count / (PACK * GP_PHILOX_WORDS); i += threads) {
      const int64_t chunk = i / 2 * GP_PHILOX_CHUNK, at = chunk + i % 2 * PACK;
      write_chunk(a, d, w.first + chunk, first + (uint64_t)at, to + at);
    }
    return;
  }
  for (int64_t i = thread; i < w.count; i += threads) {
    const uint32_t word = gp_philox_word(d.seed, d.step, d.random, first + (uint64_t)i);
    to[i] = gp_store<T>(word >= d.threshold ? 1.0f : 0.0f);
  }
}

gp_status gp_attention_write_kept(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_words *words, void *to) {
  const unsigned blocks = gp_blocks(words->count / (PACK * GP_PHILOX_WORDS), THREADS);
  if (a->dtype == GP_F16)
    return GP_LAUNCH(gpu, attention_write_kept<gp_f16>, blocks, THREADS, 0, *a, *words,
                     (gp_f16 *)to);
  return GP_LAUNCH(gpu, attention_write_kept<gp_bf16>, blocks, THREADS, 0, *a, *words,
                   (gp_bf16 *)to);
}

/* ---- rows without keys --------------------------------------------------------------------- */

/* A warp clears a row. Only rows without keys have an lse anywhere near; cuDNN may compute it
 * to other bits. */
static __global__ void attention_clear_rows(gp_attention a) {
  const int64_t row = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
  const int64_t lane = threadIdx.x % LANES;
  if (row >= a.batches * a.heads * a.queries) return;
  const int64_t i = row % a.queries, h = row / a.queries % a.heads, b = row / a.queries / a.heads;
  float *lse = (float *)a.lse.data + b * a.lse.batch + h * a.lse.head + i * a.lse.row;
  const bool none = *lse <= (float)(GP_MASK_HIDDEN / 2);
  __syncwarp();
  if (!none) return;
  uint16_t *o = (uint16_t *)a.o.data + b * a.o.batch + h * a.o.head + i * a.o.row;
  for (int64_t c = lane; c < a.width; c += LANES) o[c] = 0;
  if (lane == 0) *lse = 0;
}

gp_status gp_attention_clear_rows(gp_gpu *gpu, const gp_attention *a) {
  const int64_t blocks = blocks_for(a->batches * a->heads * a->queries, THREADS / LANES);
  if (blocks > INT32_MAX) return gp_flash_too_many(a);
  return GP_LAUNCH(gpu, attention_clear_rows, (unsigned)blocks, THREADS, 0, *a);
}
