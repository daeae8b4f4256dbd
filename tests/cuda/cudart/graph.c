/* tests/cuda/cudart/graph.c - what was enqueued while a stream was captured, run when launched.
 *
 * Arguments are copied when the work is captured, as CUDA does: if a program passes by value what
 * changes from launch to launch, its kernels get the old values here too. */
#include <stdlib.h>

#include "cudart.h"

struct CUgraphExec_st {
  cudaGraph_t graph;
};

static _Thread_local cudaGraph_t capturing; /* the graph that this thread captures */

bool gp_cudart_is_capturing(void) { return capturing != NULL; }

void gp_cudart_spoil(void) { capturing->spoilt = true; }

static void release(cudaGraph_t graph) {
  if (--graph->uses > 0) return;
  for (gp_host_work *work = graph->first, *next; work; work = next) {
    next = work->next;
    work->free(work);
  }
  free(graph);
}

/* ---- capturing ------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  GP_CUDART_ENTER();
  (void)mode;
  if (!stream || stream->captured || capturing) return gp_cudart_set(cudaErrorInvalidValue);
  cudaGraph_t made = calloc(1, sizeof *made);
  if (!made) return gp_cudart_set(cudaErrorMemoryAllocation);
  made->end = &made->first;
  made->uses = 1;
  made->device = stream->device;
  stream->captured = capturing = made;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  GP_CUDART_ENTER();
  *graph = NULL;
  if (!stream || !stream->captured) return gp_cudart_set(cudaErrorInvalidValue);
  if (stream->captured != capturing) return gp_cudart_set(cudaErrorStreamCaptureWrongThread);
  cudaGraph_t made = capturing;
  cudaError_t error = cudaSuccess;
  stream->captured = capturing = NULL;
  if (made->spoilt) error = cudaErrorStreamCaptureInvalidated;
  if (error != cudaSuccess) {
    release(made);
    return gp_cudart_set(error);
  }
  *graph = made;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  GP_CUDART_ENTER();
  if (!stream) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  *status = !stream->captured          ? cudaStreamCaptureStatusNone
            : stream->captured->spoilt ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  GP_CUDART_ENTER();
  (void)flags;
  cudaGraphExec_t made = malloc(sizeof *made);
  if (!made) return gp_cudart_set(cudaErrorMemoryAllocation);
  made->graph = graph;
  graph->uses++;
  *exec = made;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  GP_CUDART_ENTER();
  return gp_cudart_set(exec && stream ? cudaSuccess : cudaErrorInvalidValue);
}

/* A launch: all that was captured runs in order. */
typedef struct launch_work {
  gp_host_work work;
  cudaGraph_t graph; /* counted */
} launch_work;

static cudaError_t run_launch(gp_host_work *self) {
  cudaError_t error = cudaSuccess;
  gp_host_work *work = ((launch_work *)self)->graph->first;
  for (; work && error == cudaSuccess; work = work->next) error = work->run(work);
  return error;
}

static void free_launch(gp_host_work *self) {
  release(((launch_work *)self)->graph);
  free(self);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  GP_CUDART_ENTER();
  if (!exec || !stream || stream->captured || stream->device != exec->graph->device) {
    return gp_cudart_set(cudaErrorInvalidValue);
  }
  launch_work *made = malloc(sizeof *made);
  if (made) *made = (launch_work){{.run = run_launch, .free = free_launch}, exec->graph};
  if (made) exec->graph->uses++;
  cudaError_t error = gp_host_submit(stream, made ? &made->work : NULL);
  if (error == cudaSuccess) gp_events_launched(exec->graph, stream);
  return error;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  GP_CUDART_ENTER();
  if (!exec) return gp_cudart_set(cudaErrorInvalidValue);
  release(exec->graph);
  free(exec);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  GP_CUDART_ENTER();
  if (!graph) return gp_cudart_set(cudaErrorInvalidValue);
  release(graph);
  return cudaSuccess;
}
