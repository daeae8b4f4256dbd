/* device/cuda/graph.c - captured work: launched again in one call instead of one call per kernel.
 *
 * Capture is thread-local: other threads may allocate or wait meanwhile. Work that cannot be
 * captured is no error: end returns NULL, the stream is as before, and the caller runs the work as
 * usual. Once a capture is invalid, calls on the stream fail; end must still be called. */
#include <stdlib.h>

#include "device/cuda/table.h"

struct gp_gpu_graph {
  cudaGraphExec_t exec;
  gp_gpu_spec spec;
};

/* Is it an error that says "not this work" or "not here", after which the work can still run
 * without capture? */
static bool is_refusal(cudaError_t error) {
  return error == cudaErrorNotSupported || error == cudaErrorNotPermitted ||
         error == cudaErrorMemoryAllocation ||
         (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread);
}

/* Return GP_OK and set *refused for a refusal, which leaves no error behind. */
static gp_status judge(const gp_gpu *gpu, cudaError_t error, const char *doing, bool *refused) {
  *refused = is_refusal(error);
  if (!*refused) return gp_gpu_check(gpu, error, doing);
  (void)cudaGetLastError();
  return GP_OK;
}

/* Thread-local mode refuses unsafe calls on this thread alone; relaxed mode would let them pass. */
gp_status gp_cuda_capture_begin(gp_gpu *gpu) {
  bool refused;
  GP_GPU_TRY(gp_cuda_use(gpu));
  cudaError_t error =
      cudaStreamBeginCapture(gpu->streams[GP_STREAM_COMPUTE], cudaStreamCaptureModeThreadLocal);
  GP_GPU_TRY(judge(gpu, error, "beginning to capture", &refused));
  if (refused)
    return gp_gpu_fail(GP_EUNSUPPORTED, "cuda:%d: no capture: %s", gpu->spec.ordinal,
                       cudaGetErrorString(error));
  gpu->capturing = true;
  gpu->spoiled = false;
  return GP_OK;
}

/* *exec receives NULL for a refusal. Uploading now saves the first launch from doing it. */
static gp_status instantiate(gp_gpu *gpu, cudaGraph_t graph, cudaGraphExec_t *exec) {
  bool refused;
  cudaGraphExec_t made = NULL;
  *exec = NULL;
  GP_GPU_TRY(judge(gpu, cudaGraphInstantiate(&made, graph, 0), "instantiating a graph", &refused));
  if (refused) return GP_OK;
  cudaError_t error = cudaGraphUpload(made, gpu->streams[GP_STREAM_COMPUTE]);
  gp_status status = judge(gpu, error, "uploading a graph", &refused);
  if (status != GP_OK || refused)
    (void)cudaGraphExecDestroy(made);
  else
    *exec = made;
  return status;
}

/* Keep the executable graph; the one that it was made from is gone. */
static gp_status keep(gp_gpu *gpu, cudaGraphExec_t exec, gp_gpu_graph **graph) {
  gp_gpu_graph *made = malloc(sizeof *made);
  if (!made) {
    (void)cudaGraphExecDestroy(exec);
    return gp_gpu_fail(GP_ENOMEM, "cuda: no memory for a graph");
  }
  *made = (gp_gpu_graph){.exec = exec, .spec = gpu->spec};
  *graph = made;
  return GP_OK;
}

void gp_cuda_capture_drop(gp_gpu *gpu) {
  cudaStream_t stream = gpu->streams[GP_STREAM_COMPUTE];
  enum cudaStreamCaptureStatus status;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
      status != cudaStreamCaptureStatusNone) {
    cudaGraph_t captured = NULL;
    (void)cudaStreamEndCapture(stream, &captured);
    if (captured) (void)cudaGraphDestroy(captured);
  }
  (void)cudaGetLastError();
  gpu->capturing = false;
}

/* End the capture; *captured receives NULL for a refusal. Either way the stream is no longer
 * capturing. */
static gp_status end(gp_gpu *gpu, cudaGraph_t *captured) {
  bool refused;
  *captured = NULL;
  cudaError_t error = cudaStreamEndCapture(gpu->streams[GP_STREAM_COMPUTE], captured);
  gp_status status = judge(gpu, error, "ending a capture", &refused);
  if (error != cudaSuccess) gp_cuda_capture_drop(gpu);
  gpu->capturing = false;
  return status;
}

gp_status gp_cuda_capture_end(gp_gpu *gpu, gp_gpu_graph **graph) {
  *graph = NULL;
  cudaGraph_t captured = NULL;
  cudaGraphExec_t exec;
  gp_status status = gp_cuda_use(gpu);
  if (status == GP_OK && !gpu->spoiled)
    status = end(gpu, &captured);
  else
    gp_cuda_capture_drop(gpu);
  if (!captured) return status;
  status = instantiate(gpu, captured, &exec);
  if (cudaGraphDestroy(captured) != cudaSuccess) /* else the next launch would report it */
    (void)cudaGetLastError();
  return status == GP_OK && exec ? keep(gpu, exec, graph) : status;
}

/* Launch the graph: one call, however many kernels. */
gp_status gp_cuda_launch(gp_gpu *gpu, gp_gpu_graph *graph) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  cudaError_t error = cudaGraphLaunch(graph->exec, gpu->streams[GP_STREAM_COMPUTE]);
  return gp_gpu_check(gpu, error, "launching a graph");
}

void gp_cuda_graph_free(gp_gpu_graph *graph) {
  if (!graph) return;
  (void)gp_cuda_switch(graph->spec.ordinal);
  cudaError_t error = cudaGraphExecDestroy(graph->exec);
  (void)gp_cuda_check_spec(&graph->spec, error, "giving back a graph");
  free(graph);
}
