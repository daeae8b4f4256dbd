/* tests/cuda/cudart/green.c - the driver's green contexts: GPUs that can be split.
 *
 * With GPIPE_TEST_GREEN=1 the plugin gets these functions when it asks the driver for them; without
 * it the driver has none, and parts of a GPU share it. As on a GPU, groups stay within its
 * clusters, so that there are fewer groups of a size than division says. Sizes of groups are
 * multiples of 8. */
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "cudart.h"

enum { SM_COUNT = 132, GRAIN = 8, CLUSTERED = 24 /* larger groups waste the end of a cluster */ };

struct CUdevResourceDesc_st {
  unsigned sms;
};

struct CUgreenCtx_st {
  CUdevice device;
  struct CUdevResourceDesc_st resource;
};

/* The driver's errors have the runtime's numbers. */
#define ENTER()                                                                                    \
  do {                                                                                             \
    CUresult enter_ = (CUresult)gp_cudart_enter(__func__);                                         \
    if (enter_ != CUDA_SUCCESS) return enter_;                                                     \
  } while (0)

static CUresult get_device(CUdevice *device, int ordinal) {
  ENTER();
  *device = ordinal;
  return CUDA_SUCCESS;
}

static CUresult get_resource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
  ENTER();
  (void)device;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  memset(resource, 0, sizeof *resource);
  resource->type = type;
  resource->sm.smCount = SM_COUNT;
#if CUDART_VERSION >= 13000
  resource->sm.minSmPartitionSize = resource->sm.smCoscheduledAlignment = GRAIN;
#endif
  return CUDA_SUCCESS;
}

static CUresult split(CUdevResource *groups, unsigned *count, const CUdevResource *all,
                      CUdevResource *rest, unsigned flags, unsigned least) {
  ENTER();
  (void)rest, (void)flags;
  if (least < GRAIN || least % GRAIN) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned made = all->sm.smCount / least - (least > CLUSTERED);
  if (made < *count) *count = made;
  for (unsigned i = 0; i < *count; i++) {
    groups[i] = *all;
    groups[i].sm.smCount = least;
  }
  return CUDA_SUCCESS;
}

/* Descriptions live as long as the process: the driver frees none either. */
static CUresult describe(CUdevResourceDesc *described, CUdevResource *groups, unsigned count) {
  static struct CUdevResourceDesc_st of_size[SM_COUNT + 1];
  ENTER();
  if (count != 1 || groups->sm.smCount > SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  *described = &of_size[groups->sm.smCount];
  (*described)->sms = groups->sm.smCount;
  return CUDA_SUCCESS;
}

static CUresult create(CUgreenCtx *context, CUdevResourceDesc described, CUdevice device,
                       unsigned flags) {
  ENTER();
  (void)flags;
  CUgreenCtx made = malloc(sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  made->device = device;
  made->resource = *described;
  *context = made;
  return CUDA_SUCCESS;
}

static CUresult destroy(CUgreenCtx context) {
  ENTER();
  free(context);
  return CUDA_SUCCESS;
}

static CUresult make_stream(CUstream *stream, CUgreenCtx context, unsigned flags, int priority) {
  ENTER();
  (void)priority;
  if (context->device != gp_cudart_device()) return CUDA_ERROR_INVALID_CONTEXT;
  return (CUresult)cudaStreamCreateWithFlags(stream, flags);
}

/* ---- finding them -------------------------------------------------------------------------- */

void *gp_cudart_driver(const char *name) {
  static const struct {
    const char *name;
    void (*function)(void);
  } list[] = {{"cuDeviceGet", (void (*)(void))get_device},
              {"cuDeviceGetDevResource", (void (*)(void))get_resource},
              {"cuDevSmResourceSplitByCount", (void (*)(void))split},
              {"cuDevResourceGenerateDesc", (void (*)(void))describe},
              {"cuGreenCtxCreate", (void (*)(void))create},
              {"cuGreenCtxDestroy", (void (*)(void))destroy},
              {"cuGreenCtxStreamCreate", (void (*)(void))make_stream}};
  const char *wanted = getenv("GPIPE_TEST_GREEN");
  void *address = NULL;
  for (size_t i = 0; wanted && i < sizeof list / sizeof *list; i++)
    if (strcmp(list[i].name, name) == 0) memcpy(&address, &list[i].function, sizeof address);
  return address;
}
