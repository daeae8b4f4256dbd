/* tests/cuda/submit.h - work given to a stream: it runs at once, or a graph keeps it while the
 * stream is captured. */
#ifndef GP_TESTS_CUDA_SUBMIT_H
#define GP_TESTS_CUDA_SUBMIT_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The head of a piece of work; its arguments stand behind it. */
typedef struct gp_host_work {
  struct gp_host_work *next; /* the next piece in a graph */
  cudaError_t (*run)(struct gp_host_work *self);
  void (*free)(struct gp_host_work *self);
} gp_host_work;

/* Give work (taken) to a stream; NULL stands for no memory. */
cudaError_t gp_host_submit(cudaStream_t stream, gp_host_work *work);
/* Do the same for a launch: cudaGetLastError reports what is wrong. Refused are more than 48 KiB of
 * shared memory where the kernel was not allowed that. */
void gp_host_submit_kernel(cudaStream_t stream, const void *kernel, size_t shared,
                           gp_host_work *work);

#ifdef __cplusplus
}
#endif

#endif
