/* tests/cuda/fibers.h - kernels run on the host: what code compiled from a .cu calls.
 *
 * The threads of a block are fibers of the calling thread, so a kernel needs no lock against itself
 * and `thread_local` memory is what a block shares. Rules of the hardware that a test should know
 * of are checked, strictly: a barrier that a thread passes by, a warp whose lanes do not meet, a
 * launch that no GPU takes. */
#ifndef GP_TESTS_CUDA_FIBERS_H
#define GP_TESTS_CUDA_FIBERS_H

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

/* What the running thread of a kernel sees. */
struct gp_host_view {
  uint3 thread, block;
  dim3 block_size, grid_size;
  int lane;
  void *shared; /* as large as the launch said, all bytes 255 when the block begins */
};

/* Of the calling thread; NULL where no kernel runs. Not thread_local, which would ask at every use
 * whether it was constructed. */
extern __thread gp_host_view *gp_host_now;

struct gp_host_geometry {
  dim3 grid, block;
  size_t shared; /* bytes */
};

struct gp_host_kernel {
  const char *name;
  void (*run)(const void *arguments); /* one thread of it */
  const void *arguments;
};

/* Run all blocks, one after the other; the last one first with GPIPE_TEST_REVERSE=1, threads too.
 * Errors:
 * cudaErrorInvalidConfiguration for a geometry that no GPU takes; cudaErrorUnknown where threads do
 * not meet.
 * gp_host_fault says more. */
cudaError_t gp_host_run(const gp_host_kernel &kernel, const gp_host_geometry &geometry);
/* Text of the calling thread's last error, "kernel k, block (0, 0, 0): ..."; "" before the
 * first. */
extern "C" const char *gp_host_fault(void);

/* ---- called by running kernels --------------------------------------------------------------- */

/* Wait for all threads of the block; returns how many came with `holds`. line: in the source. */
int gp_host_barrier(bool holds, int line);

enum gp_host_exchange { GP_HOST_SYNC, GP_HOST_SHUFFLE, GP_HOST_BALLOT };

/* Wait for the lanes of mask. Returns the value of lane `source` (shuffle), or a bit for each lane
 * whose value is not 0 (ballot). */
uint64_t gp_host_meet(gp_host_exchange what, unsigned mask, uint64_t value, int source, int line);

#endif
