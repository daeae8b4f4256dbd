/* device/gpus.h - the GPUs of this process: the plugin that drives them, and their memory as
 * spaces.
 *
 * The plugin is looked for once, when a GPU is first asked for: the file that GPIPE_CUDA_PLUGIN
 * names, else libgpipe_cuda.so beside the program or module, or in ../lib/gpipe from there. A GPU
 * is opened when a script first needs its memory; pipelines open logical devices of their own
 * (lane.h). */
#ifndef GP_DEVICE_GPUS_H
#define GP_DEVICE_GPUS_H

#include "base/space.h"
#include "device/plugin.h"
#include "gpipe/device.h"

/* A device as scripts name it: "cpu", "cpu:1", "cuda:0", "cuda:0/1of4". */
typedef struct gp_device_name {
  bool gpu;
  gp_gpu_spec spec; /* a CPU device has only an ordinal */
} gp_device_name;

/* Parse a device's name. Errors: GP_EINVAL says what names look like. */
gp_status gp_device_parse(const char *text, gp_device_name *name);

/* Get the plugin's functions. Errors: GP_EDEVICE with the reason why there is no plugin. Threads:
 * any. */
gp_status gp_gpus_api(const gp_gpu_api **api);
/* Get the memory space of a GPU, opened at the first call. Errors: GP_EDEVICE; GP_ERANGE if the
 * machine has fewer GPUs. */
gp_status gp_gpus_space(int ordinal, gp_space **space);
/* The gp_gpu that moves that memory for the script's thread. */
gp_gpu *gp_space_gpu(gp_space *space);
/* Get scratch memory of the space for one use at a time; it is kept for the next use. */
gp_status gp_space_scratch(gp_space *space, size_t bytes, void **scratch);

#endif
