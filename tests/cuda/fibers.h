/* tests/cuda/fibers.h - kernels run on the host: what code compiled from a .cu calls.
 *
 * The threads of a block are fibers of the calling thread, so a kernel needs no lock against
 * itself, and the block shares `thread_local` memory. Rules of the hardware are checked strictly:
 * every thread reaches a barrier, the lanes of a warp meet, a GPU accepts the launch. */
#ifndef GP_TESTS_CUDA_FIBERS_H
#define GP_TESTS_CUDA_FIBERS_H

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

/* The running thread of a kernel sees these. */
struct gp_host_view {
  uint3 thread, block;
  dim3 block_size, grid_size;
  int lane;
  void *shared; /* as large as the launch said, all bytes 255 when the block begins */
};

/* The view of the calling thread; NULL where no kernel runs. It is not thread_local, because that
 * would check at every use whether it was constructed. */
extern __thread gp_host_view *gp_host_now;

struct gp_host_geometry {
  dim3 grid, block;
  size_t shared; /* bytes */
};

struct gp_host_kernel {
  const char *name, *types;           /* types: of the parameters, in the compiler's own writing */
  void (*run)(const void *arguments); /* runs one thread of the kernel */
  const void *arguments;
};

/* Run all blocks, one after the other; with GPIPE_TEST_REVERSE=1 the last block and the last thread
 * go first. Errors: cudaErrorInvalidConfiguration for a geometry that no GPU takes;
 * cudaErrorUnknown where threads do not meet. gp_host_fault says more. */
cudaError_t gp_host_run(const gp_host_kernel &kernel, const gp_host_geometry &geometry);
/* Called before a kernel runs; NULL, as it is unless bytes are counted: nothing is (bytes.cpp). */
extern void (*gp_host_watch)(const gp_host_kernel &kernel);
/* Return the text of the calling thread's last error, "kernel k, block (0, 0, 0): ..."; "" before
 * the first. */
extern "C" const char *gp_host_fault(void);

/* ---- called by running kernels --------------------------------------------------------------- */

/* Wait for all threads of the block; returns how many came with `holds`. line: of the source. */
int gp_host_barrier(bool holds, int line);

enum gp_host_exchange { GP_HOST_SYNC, GP_HOST_SHUFFLE, GP_HOST_BALLOT };

/* Wait for the lanes of mask. Returns the value of lane `source` (shuffle), or a bit for each lane
 * whose value is not 0 (ballot). */
uint64_t gp_host_meet(gp_host_exchange what, unsigned mask, uint64_t value, int source, int line);

#endif
