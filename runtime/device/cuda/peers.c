/* device/cuda/peers.c - which GPUs copy to each other directly.
 *
 * The driver's answer alone is not enough: behind an IOMMU, and in virtual machines, it has said
 * yes where copies then arrived wrong or never. So a pair is trusted only after a pattern has
 * arrived within a time limit; otherwise transfers go by way of the host. The process asks once for
 * each pair and remembers the answer. GPIPE_PEERS=0 lets no pair copy directly. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/table.h"

enum {
  WORDS = 1 << 18, /* of the pattern, 1 MiB: several packets of any bus */
  PATIENCE = 2000  /* milliseconds; it takes less than one */
};

/* ---- a copy that is checked ------------------------------------------------------------------ */

typedef struct trial {
  const gp_gpu *gpu, *other; /* reader, owner of the pattern */
  uint32_t *sent, *got;      /* pinned memory of the host */
  void *from, *to;
  cudaStream_t source, stream;
  cudaEvent_t done;
} trial;

static uint32_t word_at(uint32_t i) { return (i ^ i >> 15) * UINT32_C(2654435761) + 1; }

/* Put the pattern into the other GPU's memory. */
static cudaError_t make_pattern(trial *t) {
  const size_t bytes = WORDS * sizeof *t->sent;
  cudaError_t error = cudaHostAlloc((void **)&t->sent, bytes, cudaHostAllocPortable);
  if (error == cudaSuccess) error = cudaHostAlloc((void **)&t->got, bytes, cudaHostAllocPortable);
  if (error != cudaSuccess) return error;
  for (uint32_t i = 0; i < WORDS; i++) t->sent[i] = word_at(i), t->got[i] = 0;
  if (gp_cuda_switch(t->other->spec.ordinal) != GP_OK) return cudaErrorInvalidDevice;
  error = cudaStreamCreateWithFlags(&t->source, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = cudaMalloc(&t->from, bytes);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(t->from, t->sent, bytes, cudaMemcpyDefault, t->source);
  return error == cudaSuccess ? cudaStreamSynchronize(t->source) : error;
}

/* Enqueue the copy from the other GPU, and the one to the host behind it, on a stream of the
 * trial. */
static cudaError_t enqueue(trial *t) {
  const size_t bytes = WORDS * sizeof *t->sent;
  const int here = t->gpu->spec.ordinal, there = t->other->spec.ordinal;
  if (gp_cuda_switch(here) != GP_OK) return cudaErrorInvalidDevice;
  cudaError_t error = cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&t->done, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaMalloc(&t->to, bytes);
  if (error == cudaSuccess) error = cudaMemsetAsync(t->to, 0, bytes, t->stream);
  if (error == cudaSuccess)
    error = cudaMemcpyPeerAsync(t->to, here, t->from, there, bytes, t->stream);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(t->got, t->to, bytes, cudaMemcpyDefault, t->stream);
  return error == cudaSuccess ? cudaEventRecord(t->done, t->stream) : error;
}

/* Wait with patience; cudaErrorTimeout after that. */
static cudaError_t wait_for(const trial *t) {
  const struct timespec pause = {0, 1000000};
  cudaError_t error = cudaEventQuery(t->done);
  for (int ms = 0; error == cudaErrorNotReady; ms++) {
    (void)cudaGetLastError();
    if (ms == PATIENCE) return cudaErrorTimeout;
    nanosleep(&pause, NULL);
    error = cudaEventQuery(t->done);
  }
  return error;
}

static void give_back(const trial *t) {
  if (t->done) (void)cudaEventDestroy(t->done);
  if (t->stream) (void)cudaStreamDestroy(t->stream);
  if (t->to) (void)cudaFree(t->to);
  if (t->got) (void)cudaFreeHost(t->got);
  if (t->sent) (void)cudaFreeHost(t->sent);
  (void)gp_cuda_switch(t->other->spec.ordinal);
  if (t->source) (void)cudaStreamDestroy(t->source);
  if (t->from) (void)cudaFree(t->from);
  (void)gp_cuda_switch(t->gpu->spec.ordinal);
}

/* Copy the pattern. Returns why the pair is not trusted; NULL: it is. A copy that never ends keeps
 * what it uses: to free that would wait for it. */
static const char *distrust(const gp_gpu *gpu, const gp_gpu *other) {
  trial t = {.gpu = gpu, .other = other};
  cudaError_t error = make_pattern(&t);
  if (error == cudaSuccess) error = enqueue(&t);
  if (error == cudaSuccess) error = wait_for(&t);
  if (error == cudaErrorTimeout) return "a copy between them did not end within two seconds";
  const bool same = error == cudaSuccess && memcmp(t.sent, t.got, WORDS * sizeof *t.sent) == 0;
  if (error != cudaSuccess) (void)gp_gpu_check(gpu, error, "trying a copy from another GPU");
  give_back(&t);
  if (error != cudaSuccess) return "a copy between them failed";
  return same ? NULL : "a copy between them arrived with other bytes";
}

/* ---- access ---------------------------------------------------------------------------------- */

static bool is_turned_off(void) {
  const char *peers = getenv("GPIPE_PEERS");
  return peers && strcmp(peers, "0") == 0;
}

/* Let the GPU read the other one's memory; returns why not, or NULL. Access belongs to the process:
 * a library may have enabled it before. */
static const char *enable(const gp_gpu *gpu, const gp_gpu *other) {
  int can = 0;
  if (is_turned_off()) return "GPIPE_PEERS=0";
  if (gp_cuda_use(gpu) != GP_OK) return "the GPU is lost";
  cudaError_t error = cudaDeviceCanAccessPeer(&can, gpu->spec.ordinal, other->spec.ordinal);
  if (error == cudaSuccess && !can) return "the driver says that they do not reach each other";
  if (error == cudaSuccess) error = cudaDeviceEnablePeerAccess(other->spec.ordinal, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) error = cudaSuccess, (void)cudaGetLastError();
  if (gp_gpu_check(gpu, error, "asking for access to another GPU") != GP_OK)
    return "access was refused";
  const char *why = distrust(gpu, other);
  if (why && cudaDeviceDisablePeerAccess(other->spec.ordinal) != cudaSuccess)
    (void)cudaGetLastError();
  return why;
}

bool gp_cuda_reaches(gp_gpu *gpu, const gp_gpu *other) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct {
    bool asked;
    const char *why;
  } known[GP_CUDA_MOST][GP_CUDA_MOST]; /* [reader][owner of the memory] */
  char from[GP_CUDA_NAME], to[GP_CUDA_NAME], pair[2 * GP_CUDA_NAME + 8];
  if (gp_cuda_same_memory(gpu, other)) return true;
  pthread_mutex_lock(&lock);
  if (!known[gpu->spec.ordinal][other->spec.ordinal].asked) {
    known[gpu->spec.ordinal][other->spec.ordinal].asked = true;
    known[gpu->spec.ordinal][other->spec.ordinal].why = enable(gpu, other);
  }
  const char *why = known[gpu->spec.ordinal][other->spec.ordinal].why;
  pthread_mutex_unlock(&lock);
  if (!why) return true;
  snprintf(pair, sizeof pair, "%s to %s", gp_cuda_name(&other->spec, from),
           gp_cuda_name(&gpu->spec, to));
  gp_gpu_note_path(gpu, "peers", pair, "copies by way of the host", why);
  return false;
}
