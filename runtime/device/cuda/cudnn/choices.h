/* device/cuda/cudnn/choices.h - which engines the clock has chosen, in this process and in a file
 * between processes.
 *
 * A choice that holds is never replaced, neither in the process nor in the file: so pipelines,
 * devices and processes that ask for the same kind of work get the same engine, and the same
 * bits. */
#ifndef GP_DEVICE_CUDA_CUDNN_CHOICES_H
#define GP_DEVICE_CUDA_CUDNN_CHOICES_H

#include "device/cuda/cudnn/plan.h"

enum { GP_CUDNN_KIND = 480 };

/* Find the engine that was chosen for a kind of work: a text of one line, shorter than
 * GP_CUDNN_KIND, that names the GPU, the library's version and the shape. Threads: the caller holds
 * the lock of the process's plans. */
bool gp_cudnn_choices_find(const char *kind, gp_cudnn_engine *engine);
/* Keep an engine for that kind, in $XDG_CACHE_HOME/gpipe-lua/convolutions (~/.cache/...). If
 * another process was first, *engine receives its choice. Without a file that can be written the
 * choice holds for this process alone. */
void gp_cudnn_choices_keep(const char *kind, gp_cudnn_engine *engine);

#endif
