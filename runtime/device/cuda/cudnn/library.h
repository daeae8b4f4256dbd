/* device/cuda/cudnn/library.h - libcudnn's functions, found with dlopen. */
#ifndef GP_DEVICE_CUDA_CUDNN_LIBRARY_H
#define GP_DEVICE_CUDA_CUDNN_LIBRARY_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>

/* Every function that we call. */
#define GP_CUDNN_FUNCTIONS(X)                                                                      \
  X(cudnnGetVersion)                                                                               \
  X(cudnnGetErrorString)                                                                           \
  X(cudnnGetLastErrorString)                                                                       \
  X(cudnnCreate)                                                                                   \
  X(cudnnDestroy)                                                                                  \
  X(cudnnSetStream)                                                                                \
  X(cudnnBackendCreateDescriptor)                                                                  \
  X(cudnnBackendDestroyDescriptor)                                                                 \
  X(cudnnBackendSetAttribute)                                                                      \
  X(cudnnBackendGetAttribute)                                                                      \
  X(cudnnBackendFinalize)                                                                          \
  X(cudnnBackendExecute)

typedef struct gp_cudnn_library {
#define GP_CUDNN_FIELD(name) typeof(name) *name;
  GP_CUDNN_FUNCTIONS(GP_CUDNN_FIELD)
#undef GP_CUDNN_FIELD
} gp_cudnn_library;

/* Get the library of this process, opened at the first call and never closed. NULL if there is
 * none; *why (optional) receives the reason. Threads: any. */
const gp_cudnn_library *gp_cudnn_library_get(const char **why);
/* Fill in the functions; if that fails, write the reason into text. The library stays loaded. */
bool gp_cudnn_library_open(gp_cudnn_library *library, char *text, size_t size);

#endif
