/* tests/cuda/fibers_test.cpp - kernels whose results are known, run on the host: the conformance of
 * the real kernels rests on these. */
#include <pthread.h>

#include <cstdlib>
#include <vector>

#include "device/cuda/kernel/device.cuh"
#include "device/cuda/kernel/mma.cuh"

#include "launcher.h"
#include "test.h"

#define CHECK_FAULT(call, part)                                                                    \
  do {                                                                                             \
    CHECK((call) == GP_EDEVICE);                                                                   \
    CHECK_TEXT(gp_host_fault(), part);                                                             \
  } while (0)

/* ---- without waiting ------------------------------------------------------------------------- */

static __global__ void write_places(int64_t n, int64_t *to) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) to[i] = i;
}

TEST(runs_every_thread_of_every_block) {
  device d;
  for (int64_t n : {1, 255, 1000, 100000}) {
    array<int64_t> to((size_t)n);
    CHECK(GP_LAUNCH(&d.gpu, write_places, gp_blocks(n, 256), 256, 0, n, to.data) == GP_OK);
    for (int64_t i = 0; i < n; i++) CHECK(to[(size_t)i] == i);
  }
}

static __global__ void write_indices(int *to) {
  const dim3 t = {threadIdx.x, threadIdx.y, threadIdx.z}, b = {blockIdx.x, blockIdx.y, blockIdx.z};
  const unsigned block = (b.z * gridDim.y + b.y) * gridDim.x + b.x;
  const unsigned thread = (t.z * blockDim.y + t.y) * blockDim.x + t.x;
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] = (int)(100 * thread + block);
}

TEST(knows_indices_in_three_dimensions) {
  device d;
  array<int> to(12 * 30);
  CHECK(GP_LAUNCH(&d.gpu, write_indices, dim3(2, 3, 2), dim3(5, 3, 2), 0, to.data) == GP_OK);
  for (int block = 0; block < 12; block++) {
    for (int thread = 0; thread < 30; thread++)
      CHECK(to[(size_t)(block * 30 + thread)] == 100 * thread + block);
  }
}

template <typename T, int N> static __global__ void add_all(T *to, T value, gp_pack<T> more) {
  if (threadIdx.x < N) to[threadIdx.x] = gp_store<T>(gp_load(value) + gp_load(more.at[0]));
}

/* A thread that writes to its argument writes to its own copy. */
static __global__ void change_argument(int *to, int value) {
  value += (int)threadIdx.x;
  to[threadIdx.x] = value;
}

TEST(gives_each_thread_its_own_arguments) {
  device d;
  array<float> to(40);
  gp_pack<float> pack = {{2, 0, 0, 0}};
  CHECK(GP_LAUNCH(&d.gpu, (add_all<float, 7>), 1, 32, 0, to.data, 1.5f, pack) == GP_OK);
  CHECK(to[6] == 3.5f && to[7] != to[7]);
  array<int> numbers(64);
  CHECK(GP_LAUNCH(&d.gpu, change_argument, 1, 64, 0, numbers.data, 5) == GP_OK);
  for (int i = 0; i < 64; i++) CHECK(numbers[(size_t)i] == 5 + i);
}

/* ---- shared memory and barriers -------------------------------------------------------------- */

enum { TILE = 32 };

static __global__ void transpose(const float *from, float *to, int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  const int x = (int)(blockIdx.x * TILE + threadIdx.x), y = (int)(blockIdx.y * TILE + threadIdx.y);
  if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = from[y * columns + x];
  __syncthreads();
  const int u = (int)(blockIdx.y * TILE + threadIdx.x), v = (int)(blockIdx.x * TILE + threadIdx.y);
  if (u < rows && v < columns) to[v * rows + u] = tile[threadIdx.x][threadIdx.y];
}

static void check_transpose(gp_gpu *gpu, int rows, int columns) {
  array<float> from((size_t)(rows * columns)), to((size_t)(rows * columns));
  for (size_t i = 0; i < from.n; i++) from[i] = (float)i;
  const dim3 grid((unsigned)(columns + TILE - 1) / TILE, (unsigned)(rows + TILE - 1) / TILE);
  CHECK(GP_LAUNCH(gpu, transpose, grid, dim3(TILE, TILE), 0, from.data, to.data, rows, columns) ==
        GP_OK);
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < columns; c++) CHECK(to[(size_t)(c * rows + r)] == (float)(r * columns + c));
  }
}

TEST(transposes_through_shared_memory) {
  device d;
  check_transpose(&d.gpu, 32, 32);
  check_transpose(&d.gpu, 70, 33);
  check_transpose(&d.gpu, 1, 100);
}

/* Sums in a tree over dynamic shared memory, with a barrier for each level. */
static __global__ void sum_tree(const double *from, double *to) {
  GP_SHARED(double, part);
  part[threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = part[0];
}

TEST(sums_by_a_tree_in_dynamic_shared_memory) {
  device d;
  for (unsigned block : {1u, 2u, 64u, 256u, 1024u}) {
    array<double> from(3 * block), to(3);
    for (size_t i = 0; i < from.n; i++) from[i] = (double)i;
    CHECK(GP_LAUNCH(&d.gpu, sum_tree, 3, block, block * sizeof(double), from.data, to.data) ==
          GP_OK);
    for (unsigned b = 0; b < 3; b++) {
      const double first = b * block, last = first + block - 1;
      CHECK(to[b] == (first + last) / 2 * block);
    }
  }
}

static __global__ void look_at_shared(int *wrong) {
  GP_SHARED(unsigned char, bytes);
  if (bytes[threadIdx.x] != 255) *wrong = 1;
  __syncthreads();
  bytes[threadIdx.x] = 1;
}

TEST(begins_each_block_with_fresh_shared_memory) {
  device d;
  array<int> wrong(1);
  wrong[0] = 0;
  CHECK(GP_LAUNCH(&d.gpu, look_at_shared, 3, 96, 96, wrong.data) == GP_OK);
  CHECK(wrong[0] == 0);
}

static __global__ void count_threads(int *to) {
  const int odd = __syncthreads_count(threadIdx.x % 2);
  const int some = __syncthreads_or(threadIdx.x == 5), all = __syncthreads_and(threadIdx.x < 64);
  const int none = __syncthreads_or(0), few = __syncthreads_and(threadIdx.x < 63);
  to[threadIdx.x] = odd == 32 && some && all && !none && !few;
}

TEST(counts_votes_of_a_block) {
  device d;
  array<int> to(64);
  CHECK(GP_LAUNCH(&d.gpu, count_threads, 1, 64, 0, to.data) == GP_OK);
  for (size_t i = 0; i < 64; i++) CHECK(to[i] == 1);
}

/* ---- warps ----------------------------------------------------------------------------------- */

template <typename T> static __global__ void sum_warps(const T *from, T *down, T *around) {
  const unsigned all = 0xffffffff;
  const T value = from[threadIdx.x];
  T a = value, b = value;
  for (int step = 16; step > 0; step /= 2) a += __shfl_down_sync(all, a, (unsigned)step);
  for (int flip = 1; flip < 32; flip *= 2) b += __shfl_xor_sync(all, b, flip);
  down[threadIdx.x] = __shfl_sync(all, a, 0);
  around[threadIdx.x] = b;
}

template <typename T> static void check_warp_sums(gp_gpu *gpu) {
  array<T> from(96), down(96), around(96);
  for (int i = 0; i < 96; i++) from[(size_t)i] = (T)i;
  CHECK(GP_LAUNCH(gpu, sum_warps<T>, 1, 96, 0, from.data, down.data, around.data) == GP_OK);
  for (int i = 0; i < 96; i++) {
    const int first = i / 32 * 32;
    CHECK(down[(size_t)i] == (T)(32 * first + 496));
    CHECK(around[(size_t)i] == (T)(32 * first + 496));
  }
}

TEST(sums_warps_by_shuffles) {
  device d;
  check_warp_sums<float>(&d.gpu);
  check_warp_sums<double>(&d.gpu);
  check_warp_sums<int>(&d.gpu);
  check_warp_sums<long long>(&d.gpu);
}

static __global__ void shuffle_groups(int *up, int *down, int *at, int *flip) {
  const unsigned all = 0xffffffff;
  const int i = (int)threadIdx.x;
  up[i] = __shfl_up_sync(all, i, 3, 8);
  down[i] = __shfl_down_sync(all, i, 3, 8);
  at[i] = __shfl_sync(all, i, 11, 8);
  flip[i] = __shfl_xor_sync(all, i, 5, 8);
}

TEST(shuffles_within_groups_of_lanes) {
  device d;
  array<int> up(32), down(32), at(32), flip(32);
  CHECK(GP_LAUNCH(&d.gpu, shuffle_groups, 1, 32, 0, up.data, down.data, at.data, flip.data) ==
        GP_OK);
  for (int i = 0; i < 32; i++) {
    const size_t k = (size_t)i;
    CHECK(up[k] == (i % 8 < 3 ? i : i - 3));
    CHECK(down[k] == (i % 8 > 4 ? i : i + 3));
    CHECK(at[k] == i / 8 * 8 + 3);
    CHECK(flip[k] == (i ^ 5));
  }
}

template <typename T> struct square { alignas(16) T at[16][24]; };

/* Computes c = a b of 16 x 16 halves in each warp of the block; b also as its transpose. */
template <typename T>
static __global__ void multiply_squares(const T *a, const T *b, float *c, bool transposed) {
  __shared__ square<T> left, right;
  for (int i = (int)threadIdx.x; i < 256; i += (int)blockDim.x) {
    left.at[i / 16][i % 16] = a[i];
    (transposed ? right.at[i % 16][i / 16] : right.at[i / 16][i % 16]) = b[i];
  }
  __syncthreads();
  const int lane = (int)threadIdx.x % 32;
  uint32_t x[4], y[4];
  float sum[2][4] = {};
  gp_load_matrices(x, &left.at[lane % 16][lane / 16 * 8]);
  if (transposed)
    gp_load_matrices(y, &right.at[lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
  else
    gp_load_transposed(y, &right.at[lane % 16][lane / 16 * 8]);
  for (int n = 0; n < 2; n++) gp_mma<T>(sum[n], x, y + 2 * n);
  for (int i = 0; i < 8; i++) {
    const int row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    c[threadIdx.x / 32 * 256 + (unsigned)(row * 16 + column)] = sum[i / 4][i % 4];
  }
}

template <typename T> static void check_squares(gp_gpu *gpu, bool transposed) {
  array<T> a(256), b(256);
  array<float> c(512);
  for (int i = 0; i < 256; i++)
    a[(size_t)i] = (T)(float)(i * 7 % 11 - 5), b[(size_t)i] = (T)(float)(i * 5 % 13 - 6);
  CHECK(GP_LAUNCH(gpu, multiply_squares<T>, 1, 64, 0, a.data, b.data, c.data, transposed) == GP_OK);
  for (size_t i = 0; i < 512; i++) {
    float want = 0;
    for (size_t k = 0; k < 16; k++)
      want += (float)a[i % 256 / 16 * 16 + k] * (float)b[k * 16 + i % 16];
    CHECK(c[i] == want);
  }
}

TEST(multiplies_matrices_as_tensor_cores_do) {
  device d;
  for (int transposed = 0; transposed < 2; transposed++) {
    check_squares<gp_bf16>(&d.gpu, transposed != 0);
    check_squares<gp_f16>(&d.gpu, transposed != 0);
  }
}

/* Halves of a warp go different ways and meet again. */
static __global__ void vote(unsigned *ballots, int *ok) {
  const int i = (int)threadIdx.x;
  const unsigned lower = 0x0000ffff, upper = 0xffff0000;
  unsigned ballot;
  if (i < 16) {
    ballot = __ballot_sync(lower, i % 3 == 0);
  } else {
    ballot = __ballot_sync(upper, i % 2 == 0);
    ballot += (unsigned)__shfl_sync(upper, 0, 16);
  }
  __syncwarp();
  ballots[i] = ballot;
  ok[i] = __any_sync(0xffffffff, i == 7) && !__any_sync(0xffffffff, 0) &&
          __all_sync(0xffffffff, 1) && !__all_sync(0xffffffff, i != 7) &&
          __reduce_add_sync(0xffffffff, (unsigned)i) == 496 &&
          __reduce_max_sync(0xffffffff, -i) == 0;
}

TEST(votes_in_whole_and_half_warps) {
  device d;
  array<unsigned> ballots(32);
  array<int> ok(32);
  CHECK(GP_LAUNCH(&d.gpu, vote, 1, 32, 0, ballots.data, ok.data) == GP_OK);
  CHECK(ballots[0] == 0x9249 && ballots[31] == 0x55550000);
  for (size_t i = 0; i < 32; i++) CHECK(ok[i] == 1);
}

/* ---- atomics, halves, arithmetic ------------------------------------------------------------- */

static __global__ void add_up(unsigned long long *sum, int *least, unsigned *most, uint64_t *key) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, i);
  atomicMin(least, 7 - (int)i);
  atomicMax(most, i);
  atomicMin(key, (uint64_t)5 << 32 | i);
  atomicCAS(most, 9999u, 1u);
}

TEST(has_atomics_on_integers) {
  device d;
  array<unsigned long long> sum(1);
  array<int> least(1);
  array<unsigned> most(1);
  array<uint64_t> key(1);
  sum[0] = 0, least[0] = 100, most[0] = 3;
  CHECK(key[0] == UINT64_MAX);
  CHECK(GP_LAUNCH(&d.gpu, add_up, 4, 250, 0, sum.data, least.data, most.data, key.data) == GP_OK);
  CHECK(sum[0] == 499500 && least[0] == 7 - 999 && most[0] == 999 && key[0] == (uint64_t)5 << 32);
}

template <typename T> static __global__ void halve(const float *from, float *to) {
  to[threadIdx.x] = gp_load(gp_store<T>(from[threadIdx.x]));
}

TEST(rounds_to_half_precision_as_the_toolkit_does) {
  device d;
  array<float> from(4), to(4);
  from[0] = 1.0f + 0x1p-8f, from[1] = 1.0f + 0x1.8p-8f, from[2] = 65520, from[3] = -0x1p-24f;
  CHECK(GP_LAUNCH(&d.gpu, halve<gp_bf16>, 1, 4, 0, from.data, to.data) == GP_OK);
  CHECK(to[0] == 1 && to[1] == 1.0f + 0x1p-7f && to[2] == 65536 && to[3] == -0x1p-24f);
  CHECK(GP_LAUNCH(&d.gpu, halve<gp_f16>, 1, 4, 0, from.data, to.data) == GP_OK);
  CHECK(to[0] == from[0] && to[2] == INFINITY && to[3] == -0x1p-24f);
}

TEST(has_the_arithmetic_that_cuda_has) {
  CHECK(min(3, 4u) == 3 && max(2.0f, NAN) == 2.0f && max(-1, (int64_t)5) == 5);
  CHECK(__float2int_rz(3e9f) == INT32_MAX && __float2int_rn(2.5f) == 2 && __float2int_rz(NAN) == 0);
  CHECK(__double2ll_rz(-1e30) == INT64_MIN && __float2uint_rz(-1) == 0);
  CHECK(__float_as_uint(1.0f) == 0x3f800000 && __clz(1) == 31 && __popc(255) == 8 && __ffs(8) == 4);
  CHECK(__umulhi(0xffffffff, 0xffffffff) == 0xfffffffe && __umul64hi(1ull << 63, 4) == 2);
  CHECK(rsqrtf(4) == 0.5f && __fmaf_rn(2, 3, 4) == 10);
}

/* ---- errors that launches report ------------------------------------------------------------- */

static __global__ void half_waits(int *to) {
  if (threadIdx.x < 20) __syncthreads();
  to[threadIdx.x] = 1;
}

static __global__ void two_barriers(int *to) {
  if (threadIdx.x < 20) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  to[threadIdx.x] = 1;
}

static __global__ void lanes_missing(int *to) {
  if (threadIdx.x < 20) to[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0);
}

static __global__ void not_in_mask(int *to) { to[threadIdx.x] = __shfl_sync(0xff, 1, 0); }

static __global__ void other_masks(int *to) {
  to[threadIdx.x] = threadIdx.x == 0 ? (int)__ballot_sync(1, 1) : __shfl_sync(0xfffffffe, 1, 0);
}

static __global__ void too_few_lanes(int *to) { to[threadIdx.x] = __any_sync(0xffffffff, 1); }

TEST(reports_threads_that_do_not_meet) {
  device d;
  array<int> to(64);
  CHECK_FAULT(GP_LAUNCH(&d.gpu, half_waits, 2, 64, 0, to.data),
              "kernel half_waits, block (0, 0, 0): of 64 threads 20 wait at the barrier of line");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, two_barriers, 1, 64, 0, to.data), "different barriers");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, lanes_missing, 1, 32, 0, to.data), "not all of them meet");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, not_in_mask, 1, 32, 0, to.data), "does not name the lane");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, other_masks, 1, 32, 0, to.data),
              "a lane that its mask does not name");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, too_few_lanes, 1, 40, 0, to.data), "ended or do not exist");
  check_transpose(&d.gpu, 40, 50); /* the next kernel works */
}

TEST(refuses_launches_that_no_gpu_takes) {
  device d;
  array<int64_t> to(1);
  const int64_t n = 1;
  CHECK_FAULT(GP_LAUNCH(&d.gpu, write_places, 1, 1025, 0, n, to.data), "cannot be launched");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, write_places, 0, 32, 0, n, to.data), "cannot be launched");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, write_places, dim3(1, 65536), 32, 0, n, to.data),
              "cannot be launched");
  CHECK_FAULT(GP_LAUNCH(&d.gpu, write_places, 1, dim3(1, 1, 65), 0, n, to.data),
              "cannot be launched");
  CHECK(GP_LAUNCH(&d.gpu, write_places, 1, 32, 228 << 10, n, to.data) == GP_EDEVICE);
  CHECK(GP_LAUNCH(&d.gpu, write_places, 1, 32, 227 << 10, n, to.data) == GP_OK);
}

/* ---- order, threads, graphs ------------------------------------------------------------------ */

static __global__ void write_last(int *to) {
  __syncwarp();
  to[0] = (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

TEST(runs_in_reverse_when_asked) {
  device d;
  array<int> to(1);
  CHECK(GP_LAUNCH(&d.gpu, write_last, 3, 32, 0, to.data) == GP_OK);
  const int forward = to[0];
  setenv("GPIPE_TEST_REVERSE", "1", 1);
  CHECK(GP_LAUNCH(&d.gpu, write_last, 3, 32, 0, to.data) == GP_OK);
  CHECK(forward / 32 == 2 && to[0] / 32 == 0);
  check_transpose(&d.gpu, 70, 33);
  check_warp_sums<float>(&d.gpu);
  unsetenv("GPIPE_TEST_REVERSE");
}

static void *launch_many(void *failures) {
  device d;
  for (int i = 0; i < 20; i++) {
    array<double> from(256), to(1);
    for (size_t k = 0; k < 256; k++) from[k] = (double)i;
    gp_status status =
        GP_LAUNCH(&d.gpu, sum_tree, 1, 256, 256 * sizeof(double), from.data, to.data);
    if (status != GP_OK || to[0] != 256.0 * i) ++*(int *)failures;
  }
  return NULL;
}

TEST(runs_kernels_of_several_threads_at_once) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int failures[THREADS] = {};
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, launch_many, &failures[i]) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) CHECK(failures[i] == 0);
}

static __global__ void increment(int *value, int by) { *value += by; }

TEST(keeps_captured_work_and_launches_it) {
  device d;
  array<int> value(1);
  cudaStream_t stream = d.gpu.streams[GP_STREAM_COMPUTE];
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaMemsetAsync(value.data, 0, 4, stream) == cudaSuccess);
  for (int by = 1; by < 4; by++)
    CHECK(GP_LAUNCH(&d.gpu, increment, 1, 1, 0, value.data, by) == GP_OK);
  CHECK(value[0] == -1); /* still as it was allocated */
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && value[0] == 6);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

TEST_MAIN(runs_every_thread_of_every_block, knows_indices_in_three_dimensions,
          gives_each_thread_its_own_arguments, transposes_through_shared_memory,
          sums_by_a_tree_in_dynamic_shared_memory, begins_each_block_with_fresh_shared_memory,
          counts_votes_of_a_block, sums_warps_by_shuffles, shuffles_within_groups_of_lanes,
          multiplies_matrices_as_tensor_cores_do, votes_in_whole_and_half_warps,
          has_atomics_on_integers, rounds_to_half_precision_as_the_toolkit_does,
          has_the_arithmetic_that_cuda_has, reports_threads_that_do_not_meet,
          refuses_launches_that_no_gpu_takes, runs_in_reverse_when_asked,
          runs_kernels_of_several_threads_at_once, keeps_captured_work_and_launches_it)
