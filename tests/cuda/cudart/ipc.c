/* tests/cuda/cudart/ipc.c - memory of a "device" that another process opens.
 *
 * With GPIPE_TEST_IPC=1 every allocation is a file in memory (memory.c) that other processes of the
 * host find by this process's number and the file's descriptor; without it memory cannot be shared,
 * as on systems whose driver refuses that. What another process has opened belongs to the device
 * that was current when it was opened. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda.h>

#include "cudart.h"

static const char name[] = "gpipe-test-gpu";

bool gp_cudart_shares(void) {
  const char *text = getenv("GPIPE_TEST_IPC");
  return text && strcmp(text, "1") == 0;
}

/* What stands in a handle. */
typedef struct ticket {
  int process, file;
  size_t bytes;
} ticket;

/* ---- files ----------------------------------------------------------------------------------- */

/* A process that ends leaves nothing behind: the kernel frees such files. */
void *gp_cudart_map(size_t bytes, int *file) {
  *file = memfd_create(name, MFD_CLOEXEC);
  if (*file < 0) return NULL;
  void *memory = MAP_FAILED;
  if (!ftruncate(*file, (off_t)bytes))
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
  if (memory != MAP_FAILED) return memory;
  close(*file);
  return NULL;
}

/* ---- the owner ------------------------------------------------------------------------------- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory) {
  GP_CUDART_ENTER();
  ticket made = {.process = (int)getpid()};
  if (!gp_cudart_shares()) return gp_cudart_set(cudaErrorNotSupported);
  if (!gp_cudart_file(memory, &made.file, &made.bytes)) return gp_cudart_set(cudaErrorInvalidValue);
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &made, sizeof made);
  return cudaSuccess;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
  size_t size;
  void *begin = gp_cudart_allocation((const void *)(uintptr_t)address, &size);
  if (!begin) return CUDA_ERROR_NOT_FOUND;
  *base = (CUdeviceptr)(uintptr_t)begin;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

void *gp_ipc_driver(const char *symbol) {
  CUresult (*function)(CUdeviceptr *, size_t *, CUdeviceptr) = address_range;
  void *address = NULL;
  if (strcmp(symbol, "cuMemGetAddressRange") == 0) memcpy(&address, &function, sizeof address);
  return address;
}

/* ---- the other process ----------------------------------------------------------------------- */

cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags) {
  GP_CUDART_ENTER();
  (void)flags;
  ticket found;
  char path[64];
  memcpy(&found, &handle, sizeof found);
  snprintf(path, sizeof path, "/proc/%d/fd/%d", found.process, found.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return gp_cudart_set(cudaErrorInvalidValue);
  void *mapped = mmap(NULL, found.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return gp_cudart_set(cudaErrorMapBufferObjectFailed);
  if (!gp_cudart_adopt(mapped, found.bytes)) {
    munmap(mapped, found.bytes);
    return gp_cudart_set(cudaErrorMemoryAllocation);
  }
  *memory = mapped;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *memory) {
  GP_CUDART_ENTER();
  gp_queue_finish_all();
  const size_t bytes = gp_cudart_abandon(memory);
  if (!bytes) return gp_cudart_set(cudaErrorInvalidValue);
  munmap(memory, bytes);
  return cudaSuccess;
}
