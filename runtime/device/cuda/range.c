/* device/cuda/range.c - named ranges for NVIDIA's profilers.
 *
 * NVTX consists of headers only, and costs a pointer test if no profiler listens. If the toolkit
 * came without them, ranges do nothing. */
#include "device/cuda/table.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <pthread.h>

#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t domain; /* written once, under pthread_once */

static void make_domain(void) { domain = nvtxDomainCreateA("gpipe"); }

static nvtxDomainHandle_t get_domain(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_domain);
  return domain;
}

void gp_cuda_range_push(const char *name, int64_t payload) {
  nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                      .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                      .payloadType = NVTX_PAYLOAD_TYPE_INT64,
                                      .payload.llValue = payload,
                                      .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                      .message.ascii = name};
  nvtxDomainRangePushEx(get_domain(), &attributes);
}

void gp_cuda_range_pop(void) { nvtxDomainRangePop(get_domain()); }

#else
void gp_cuda_range_push(const char *name, int64_t payload) { (void)name, (void)payload; }

void gp_cuda_range_pop(void) {}
#endif
