/* tests/cuda/cudart/memory.c - memory of "devices", which is the host's: counted, with a known
 * owner.
 *
 * It begins as bytes of 255, which are NaN, so that a read of memory that was never written shows.
 * Every piece has exactly its size, so that address sanitizer sees the first byte beyond it. The
 * list stores disguised addresses, so that address sanitizer reports a piece as a leak when the
 * program has lost it. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cudart.h"

typedef struct piece {
  struct piece *next;
  uintptr_t disguised;
  size_t bytes;
  int device;
  int file;     /* -1: memory of this process alone (ipc.c) */
  bool adopted; /* another process's */
} piece;

static piece *pieces;
static size_t used[16]; /* bytes, by device */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t disguise(const void *memory) { return ~(uintptr_t)memory; }

/* ---- devices --------------------------------------------------------------------------------- */

/* Allocating and freeing are forbidden during a capture. */
static cudaError_t check_capture(void) {
  if (!gp_cudart_is_capturing()) return cudaSuccess;
  gp_cudart_spoil();
  return gp_cudart_set(cudaErrorStreamCaptureUnsupported);
}

static cudaError_t fill_piece(piece *made, void **memory, size_t bytes) {
  int file = -1;
  /* CUDA aligns to 256 bytes, too. */
  if (gp_cudart_shares())
    *memory = gp_cudart_map(bytes, &file);
  else if (posix_memalign(memory, 256, bytes) != 0)
    *memory = NULL;
  if (!*memory) return cudaErrorMemoryAllocation;
  memset(*memory, 255, bytes);
  *made = (piece){
      .disguised = disguise(*memory), .bytes = bytes, .device = gp_cudart_device(), .file = file};
  return cudaSuccess;
}

static void release(const piece *one, void *memory) {
  if (one->file < 0) {
    free(memory);
    return;
  }
  munmap(memory, one->bytes);
  close(one->file);
}

/* Adds the piece to the list if the GPU has room for it. */
static cudaError_t add_piece(piece *made) {
  cudaError_t error = cudaErrorMemoryAllocation;
  pthread_mutex_lock(&lock);
  if (made->bytes <= gp_cudart_capacity() - used[made->device]) {
    made->next = pieces;
    pieces = made;
    used[made->device] += made->bytes;
    error = cudaSuccess;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  GP_CUDART_ENTER();
  cudaError_t error = check_capture();
  if (error != cudaSuccess) return error;
  *memory = NULL;
  if (bytes == 0) return cudaSuccess;
  if (bytes > gp_cudart_capacity()) return gp_cudart_set(cudaErrorMemoryAllocation);
  piece *made = malloc(sizeof *made);
  if (!made) return gp_cudart_set(cudaErrorMemoryAllocation);
  void *found = NULL;
  error = fill_piece(made, &found, bytes);
  if (error == cudaSuccess) error = add_piece(made);
  if (error == cudaSuccess) {
    *memory = found;
  } else {
    if (found) release(made, found);
    free(made);
  }
  return gp_cudart_set(error);
}

/* Removes the piece that begins at memory from the list; NULL: there is none. */
static piece *take_piece(const void *memory) {
  pthread_mutex_lock(&lock);
  piece **at = &pieces, *found;
  while (*at && (*at)->disguised != disguise(memory)) at = &(*at)->next;
  found = *at;
  if (found) {
    *at = found->next;
    used[found->device] -= found->bytes;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

cudaError_t cudaFree(void *memory) {
  GP_CUDART_ENTER();
  cudaError_t error = check_capture();
  if (error != cudaSuccess || !memory) return error;
  gp_queue_finish_all(); /* as CUDA does */
  piece *found = take_piece(memory);
  if (!found) return gp_cudart_set(cudaErrorInvalidValue);
  release(found, memory);
  free(found);
  return cudaSuccess;
}

/* ---- other processes ------------------------------------------------------------------------- */

/* The piece that holds an address; the caller holds the lock. */
static piece *find_piece(const void *memory) {
  for (piece *one = pieces; one; one = one->next) {
    const uintptr_t begin = ~one->disguised, at = (uintptr_t)memory;
    if (at >= begin && at - begin < one->bytes) return one;
  }
  return NULL;
}

void *gp_cudart_allocation(const void *memory, size_t *bytes) {
  pthread_mutex_lock(&lock);
  const piece *one = find_piece(memory);
  void *begin = one ? (void *)~one->disguised : NULL;
  if (one) *bytes = one->bytes;
  pthread_mutex_unlock(&lock);
  return begin;
}

bool gp_cudart_file(const void *memory, int *file, size_t *bytes) {
  pthread_mutex_lock(&lock);
  const piece *one = find_piece(memory);
  const bool has = one && one->file >= 0;
  if (has) *file = one->file, *bytes = one->bytes;
  pthread_mutex_unlock(&lock);
  return has;
}

bool gp_cudart_adopt(void *memory, size_t bytes) {
  piece *made = malloc(sizeof *made);
  if (!made) return false;
  pthread_mutex_lock(&lock);
  *made = (piece){pieces, disguise(memory), bytes, gp_cudart_device(), -1, true};
  pieces = made;
  pthread_mutex_unlock(&lock);
  return true;
}

size_t gp_cudart_abandon(void *memory) {
  size_t bytes = 0;
  pthread_mutex_lock(&lock);
  piece **at = &pieces, *found;
  while (*at && ((*at)->disguised != disguise(memory) || !(*at)->adopted)) at = &(*at)->next;
  found = *at;
  if (found) *at = found->next, bytes = found->bytes;
  pthread_mutex_unlock(&lock);
  free(found);
  return bytes;
}

int gp_cudart_owner(const void *memory, size_t bytes) {
  int device = -1;
  pthread_mutex_lock(&lock);
  for (const piece *one = pieces; one && device < 0; one = one->next) {
    const uintptr_t begin = ~one->disguised, at = (uintptr_t)memory;
    if (at >= begin && at - begin <= one->bytes && bytes <= one->bytes - (at - begin)) {
      device = one->device;
    }
  }
  pthread_mutex_unlock(&lock);
  return device;
}

cudaError_t cudaMemGetInfo(size_t *vacant, size_t *total) {
  GP_CUDART_ENTER();
  pthread_mutex_lock(&lock);
  *total = gp_cudart_capacity();
  *vacant = *total - used[gp_cudart_device()];
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

/* ---- the host -------------------------------------------------------------------------------- */

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
  GP_CUDART_ENTER();
  (void)flags;
  cudaError_t error = check_capture();
  if (error != cudaSuccess) return error;
  if (posix_memalign(memory, 256, bytes) != 0) return gp_cudart_set(cudaErrorMemoryAllocation);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

cudaError_t cudaFreeHost(void *memory) {
  GP_CUDART_ENTER();
  gp_queue_finish_all();
  free(memory);
  return check_capture();
}

/* Pages that are pinned already are refused, as by CUDA. */
static struct {
  void *memory;
  size_t bytes;
} pinned[256];

static bool overlaps(int i, const char *memory, size_t bytes) {
  const char *begin = pinned[i].memory;
  return begin && memory < begin + pinned[i].bytes && begin < memory + bytes;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags) {
  GP_CUDART_ENTER();
  (void)flags;
  int found = -1;
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < (int)(sizeof pinned / sizeof *pinned); i++) {
    if (overlaps(i, memory, bytes)) error = cudaErrorHostMemoryAlreadyRegistered;
    if (!pinned[i].memory) found = i;
  }
  if (found < 0) error = cudaErrorMemoryAllocation;
  if (error == cudaSuccess) pinned[found].memory = memory, pinned[found].bytes = bytes;
  pthread_mutex_unlock(&lock);
  return gp_cudart_set(error);
}

cudaError_t cudaHostUnregister(void *memory) {
  GP_CUDART_ENTER();
  cudaError_t error = cudaErrorHostMemoryNotRegistered;
  gp_queue_finish_all();
  pthread_mutex_lock(&lock);
  for (int i = 0; i < (int)(sizeof pinned / sizeof *pinned); i++) {
    if (pinned[i].memory != memory) continue;
    pinned[i].memory = NULL;
    error = cudaSuccess;
  }
  pthread_mutex_unlock(&lock);
  return gp_cudart_set(error);
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct copy {
  gp_host_work work;
  void *to;
  const void *from; /* NULL: fill with byte */
  size_t bytes;
  int byte;
} copy;

static cudaError_t run_copy(gp_host_work *work) {
  const copy *self = (const copy *)work;
  if (self->from) {
    memmove(self->to, self->from, self->bytes);
  } else {
    memset(self->to, self->byte, self->bytes);
  }
  return cudaSuccess;
}

static void free_copy(gp_host_work *work) { free(work); }

static cudaError_t submit_copy(cudaStream_t stream, const copy *what) {
  copy *made = malloc(sizeof *made);
  if (made) {
    *made = *what;
    made->work = (gp_host_work){.run = run_copy, .free = free_copy};
  }
  return gp_host_submit(stream, made ? &made->work : NULL);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  GP_CUDART_ENTER();
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((to_device && gp_cudart_owner(to, bytes) < 0) ||
      (from_device && gp_cudart_owner(from, bytes) < 0)) {
    return gp_cudart_set(cudaErrorInvalidValue);
  }
  return submit_copy(stream, &(copy){.to = to, .from = from, .bytes = bytes});
}

cudaError_t cudaMemcpyPeerAsync(void *to, int device, const void *from, int source, size_t bytes,
                                cudaStream_t stream) {
  GP_CUDART_ENTER();
  if (gp_cudart_owner(to, bytes) != device || gp_cudart_owner(from, bytes) != source) {
    return gp_cudart_set(cudaErrorInvalidValue);
  }
  const size_t lost = getenv("GPIPE_TEST_BAD_PEER") && bytes > 0;
  return submit_copy(stream, &(copy){.to = to, .from = from, .bytes = bytes - lost});
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
  GP_CUDART_ENTER();
  if (gp_cudart_owner(to, bytes) < 0) return gp_cudart_set(cudaErrorInvalidValue);
  return submit_copy(stream, &(copy){.to = to, .byte = byte, .bytes = bytes});
}

/* Fills row by row. */
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t height,
                              cudaStream_t stream) {
  GP_CUDART_ENTER();
  for (size_t row = 0; row < height; row++) {
    char *at = (char *)to + row * pitch;
    if (gp_cudart_owner(at, width) < 0) return gp_cudart_set(cudaErrorInvalidValue);
    const cudaError_t error = submit_copy(stream, &(copy){.to = at, .byte = byte, .bytes = width});
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
