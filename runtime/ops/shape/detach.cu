/* ops/shape/detach.cu - a view: there is nothing for a GPU to do. */
#include "device/cuda/kernel/kernel.h"

const gp_gpu_kernel gp_gpu_detach = {NULL, NULL};
