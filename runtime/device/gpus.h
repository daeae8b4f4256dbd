/* device/gpus.h - the GPUs of this process: the plugin that drives them, and their memory as
 * spaces.
 *
 * The plugin is looked for once, when a GPU is first asked for: a file named by GPIPE_CUDA_PLUGIN,
 * else libgpipe_cuda.so beside the program or module, or in ../lib/gpipe from there. A GPU is
 * opened when its memory is first needed by a script; pipelines open logical devices of their own
 * (lane.h). */
#ifndef GP_DEVICE_GPUS_H
#define GP_DEVICE_GPUS_H

#include "base/space.h"
#include "device/plugin.h"
#include "gpipe/device.h"

/* A device as people name it: "cpu", "cpu:1", "cuda:0", "cuda:0/1of4". */
typedef struct gp_device_name {
  bool gpu;
  gp_gpu_spec spec; /* of a CPU device only the ordinal counts */
} gp_device_name;

/* Errors: GP_EINVAL says how names look. */
gp_status gp_device_parse(const char *text, gp_device_name *name);

/* The plugin's functions. Errors: GP_EDEVICE with the reason why there is none. Threads: any. */
gp_status gp_gpus_api(const gp_gpu_api **api);
/* The memory of a GPU, opened at the first call. Errors: GP_EDEVICE; GP_ERANGE where there are
 * fewer. */
gp_status gp_gpus_space(int ordinal, gp_space **space);
/* What drives that memory from the script's thread. */
gp_gpu *gp_space_gpu(gp_space *space);
/* Memory of the space for one use at a time, kept for the next. */
gp_status gp_space_scratch(gp_space *space, size_t bytes, void **scratch);

#endif
