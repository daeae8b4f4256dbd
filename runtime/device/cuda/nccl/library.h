/* device/cuda/nccl/library.h - libnccl's functions, found with dlopen.
 *
 * The plugin works without the library, and is built without its header: values of GPUs on other
 * hosts then pass through the host's memory. */
#ifndef GP_DEVICE_CUDA_NCCL_LIBRARY_H
#define GP_DEVICE_CUDA_NCCL_LIBRARY_H

#if defined(__has_include)
#if __has_include(<nccl.h>)
#include <nccl.h>
#define GP_HAS_NCCL 1
#endif
#endif

#include <stdbool.h>
#include <stddef.h>

#ifdef GP_HAS_NCCL

#define GP_NCCL_FUNCTIONS(X)                                                                       \
  X(ncclGetVersion)                                                                                \
  X(ncclGetUniqueId)                                                                               \
  X(ncclCommInitRankConfig)                                                                        \
  X(ncclCommGetAsyncError)                                                                         \
  X(ncclCommDestroy)                                                                               \
  X(ncclCommAbort)                                                                                 \
  X(ncclGetErrorString)                                                                            \
  X(ncclGetLastError)                                                                              \
  X(ncclSend)                                                                                      \
  X(ncclRecv)

typedef struct gp_nccl_library {
#define MEMBER(name) __typeof__(&name) name;
  GP_NCCL_FUNCTIONS(MEMBER)
#undef MEMBER
} gp_nccl_library;

#else
typedef struct gp_nccl_library gp_nccl_library;
#endif

/* The library, opened at the first call; NULL: there is none, and *why (optional) receives the
 * reason. GPIPE_NCCL_LIBRARY names another file. Threads: any. */
const gp_nccl_library *gp_nccl_library_get(const char **why);

#endif
