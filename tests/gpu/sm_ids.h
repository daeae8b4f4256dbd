/* tests/gpu/sm_ids.h - the kernel of sm_ids.cu, for sm_ids.c. */
#ifndef GP_TESTS_GPU_SM_IDS_H
#define GP_TESTS_GPU_SM_IDS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_SMS = 1024 };

/* Set seen[i] to 1 for each multiprocessor i that runs a block of this launch; rounds: how long a
 * block lasts. */
cudaError_t note_sm_ids(cudaStream_t stream, unsigned char *seen, int rounds);

#ifdef __cplusplus
}
#endif

#endif
