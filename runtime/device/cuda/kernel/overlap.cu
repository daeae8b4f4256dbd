/* device/cuda/kernel/overlap.cu - kernels that begin while the previous one ends.
 *
 * From compute capability 9.0 on ("programmatic dependent launch") the blocks of a kernel may start
 * as soon as each block of the previous kernel has begun or ended; they wait in gp_kernel_begin
 * until that kernel has ended and all its writes are visible. This saves the time from the end of
 * one kernel to the first instruction of the next.
 *
 * It is correct only if every kernel waits, even one that does not depend on the previous kernel:
 * the end of a kernel implies that all kernels before it have ended. So it needs code for 9.0,
 * where gp_kernel_begin is not empty, and a kernel right before it in the stream: ours, which wait,
 * or a library's. A library's kernel is either launched in the ordinary way, after all earlier work
 * has ended, or waits as ours do; if it does not ask for early successors, ours begins when all its
 * blocks have ended. After a copy, an event or a graph, a launch is an ordinary one. In captured
 * work the relation becomes an edge of the graph, which drivers support from CUDA 12.3 on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernel/device.cuh"

enum {
  OLDEST = 90,              /* compute capability, of the GPU and of the code: 9.0 */
  DRIVER_OF_GRAPHS = 12030, /* the first to support such edges in graphs */
  WHY = 96
};

/* This kernel's code stands for all kernels: they are compiled together. */
static __global__ void code_of_all() { gp_kernel_begin(); }

/* Say why kernels of this GPU cannot begin early; NULL if they can. */
static const char *find_obstacle(const gp_gpu *gpu, char why[WHY]) {
  const int capability = gpu->info.major * 10 + gpu->info.minor;
  struct cudaFuncAttributes attributes = {};
  if (capability < OLDEST) {
    snprintf(why, WHY, "compute capability %d.%d, expected 9.0 or more", gpu->info.major,
             gpu->info.minor);
    return why;
  }
  if (cudaFuncGetAttributes(&attributes, (const void *)code_of_all) != cudaSuccess) {
    (void)cudaGetLastError();
    return "the driver does not say what kernels were compiled for";
  }
  if (attributes.ptxVersion >= OLDEST) return NULL;
  snprintf(why, WHY, "kernels were compiled for %d.%d, expected 9.0 or more",
           attributes.ptxVersion / 10, attributes.ptxVersion % 10);
  return why;
}

static bool graphs_can(void) {
  int driver = 0;
  return CUDART_VERSION >= DRIVER_OF_GRAPHS && cudaDriverGetVersion(&driver) == cudaSuccess &&
         driver >= DRIVER_OF_GRAPHS;
}

/* What kernels may begin early after. GPIPE_GPU_PDL=1: any kernel; own: our own kernels; else
 * none. */
static gp_gpu_last wish(void) {
  const char *text = getenv("GPIPE_GPU_PDL");
  if (text && strcmp(text, "1") == 0) return GP_GPU_LIBRARY;
  return text && strcmp(text, "own") == 0 ? GP_GPU_KERNEL : GP_GPU_OTHER;
}

void gp_gpu_overlap_open(gp_gpu *gpu) {
  const gp_gpu_last after = wish();
  if (after == GP_GPU_OTHER) return;
  char text[WHY];
  const char *why = find_obstacle(gpu, text);
  if (!why) gpu->overlaps = after;
  gpu->captures_overlap = !why && graphs_can();
  if (!why && !gpu->captures_overlap) why = "not in captured work: the driver is older than 12.3";
  gp_gpu_note_path(gpu, "launches", after == GP_GPU_KERNEL ? "after own kernels" : "after kernels",
                   gpu->overlaps ? "early" : "one after the other", why);
}
