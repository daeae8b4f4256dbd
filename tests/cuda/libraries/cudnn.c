/* tests/cuda/libraries/cudnn.c - no cuDNN: what it could compute is computed by kernels of our own. */
#include "device/cuda/cudnn.h"

void gp_cudnn_close(gp_gpu *gpu) { (void)gpu; }
