/* tests/gpu/sm_ids.cu - a kernel whose blocks say on which multiprocessor they run. */
#include "sm_ids.h"

namespace {

/* There are several blocks for each multiprocessor of any GPU, each busy for a while, so that every
 * multiprocessor gets one. */
constexpr int BLOCKS = 2048, THREADS = 32;

__global__ void note(unsigned char *seen, int rounds) {
  unsigned id, busy = threadIdx.x;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  for (int i = 0; i < rounds; i++)
    asm volatile("mad.lo.u32 %0, %0, 1664525, 1013904223;" : "+r"(busy));
  if (threadIdx.x == 0 && id < MOST_SMS) seen[id] = 1;
}

} // namespace

extern "C" cudaError_t note_sm_ids(cudaStream_t stream, unsigned char *seen, int rounds) {
  note<<<BLOCKS, THREADS, 0, stream>>>(seen, rounds);
  return cudaGetLastError();
}
