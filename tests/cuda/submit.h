/* tests/cuda/submit.h - what a stream is given: run at once, or kept in a graph while it is
 * captured. */
#ifndef GP_TESTS_CUDA_SUBMIT_H
#define GP_TESTS_CUDA_SUBMIT_H

#ifndef __cplusplus
#include <stdbool.h>
#endif

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The head of a piece of work; what it needs stands behind it. */
typedef struct gp_host_work {
  struct gp_host_work *next; /* in a graph */
  cudaError_t (*run)(struct gp_host_work *self);
  void (*free)(struct gp_host_work *self);
  bool is_kernel; /* on a GPU it would be one */
} gp_host_work;

/* work: taken; NULL stands for no memory. */
cudaError_t gp_host_submit(cudaStream_t stream, gp_host_work *work);
/* The same for a launch: what is wrong is found by cudaGetLastError. Refused: more than 48 KiB of
 * shared memory where the kernel was not allowed it; a launch that may begin early and does not
 * follow a kernel. */
void gp_host_submit_kernel(cudaStream_t stream, const void *kernel, size_t shared, bool early,
                           gp_host_work *work);
/* How many launches were allowed to begin early. */
long gp_host_early_launches(void);

#ifdef __cplusplus
}
#endif

#endif
