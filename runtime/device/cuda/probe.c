/* device/cuda/probe.c - tries what a step needs of streams, before a step depends on it.
 *
 * The documentation of green contexts does not say everything: an event of the primary context may
 * be refused on a stream of a part, and so may a capture. A part that refuses one of them at its
 * opening can still be opened as plain streams; in the middle of a training it could not. */
#include <stdio.h>

#include "device/cuda/table.h"

typedef struct probe {
  gp_gpu *gpu;
  cudaEvent_t event;
  cudaGraph_t captured;
  cudaGraphExec_t exec;
  const char *doing; /* the step that failed */
} probe;

#define PROBE(p, step, call)                                                                       \
  do {                                                                                             \
    (p)->doing = step;                                                                             \
    const cudaError_t probed_ = (call);                                                            \
    if (probed_ != cudaSuccess) return probed_;                                                    \
  } while (0)

/* Every stream records the event, and the next one waits for it. */
static cudaError_t try_events(probe *p) {
  const unsigned flags = cudaEventBlockingSync | cudaEventDisableTiming;
  PROBE(p, "making an event", cudaEventCreateWithFlags(&p->event, flags));
  for (int i = 0; i < GP_STREAMS; i++) {
    cudaStream_t stream = p->gpu->streams[i], next = p->gpu->streams[(i + 1) % GP_STREAMS];
    PROBE(p, "recording an event", cudaEventRecordWithFlags(p->event, stream, 0));
    PROBE(p, "waiting for an event", cudaStreamWaitEvent(next, p->event, 0));
  }
  return cudaSuccess;
}

/* Ends the capture whatever happened in it, so that the stream is usable. */
static cudaError_t try_capture(probe *p) {
  cudaStream_t stream = gp_gpu_stream(p->gpu);
  PROBE(p, "beginning to capture",
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const cudaError_t inside = cudaEventRecordWithFlags(p->event, stream, cudaEventRecordExternal);
  const cudaError_t ended = cudaStreamEndCapture(stream, &p->captured);
  PROBE(p, "recording an event in a capture", inside);
  PROBE(p, "ending a capture", ended);
  return cudaSuccess;
}

static cudaError_t try_replay(probe *p) {
  cudaStream_t stream = gp_gpu_stream(p->gpu);
  PROBE(p, "instantiating a graph", cudaGraphInstantiate(&p->exec, p->captured, 0));
  for (int i = 0; i < 2; i++) PROBE(p, "launching a graph", cudaGraphLaunch(p->exec, stream));
  PROBE(p, "waiting for a replayed event", cudaEventSynchronize(p->event));
  PROBE(p, "waiting for a stream", cudaStreamSynchronize(stream));
  return cudaSuccess;
}

static void give_back(const probe *p) {
  if (p->exec) (void)cudaGraphExecDestroy(p->exec);
  if (p->captured) (void)cudaGraphDestroy(p->captured);
  if (p->event) (void)cudaEventDestroy(p->event);
  (void)cudaGetLastError();
}

/* An error after which the GPU is lost is kept by gp_gpu_check. */
bool gp_cuda_probe(gp_gpu *gpu, char why[GP_CUDA_PROBE]) {
  probe p = {.gpu = gpu};
  cudaError_t error = try_events(&p);
  if (error == cudaSuccess) error = try_capture(&p);
  if (error == cudaSuccess) error = try_replay(&p);
  if (error != cudaSuccess) {
    snprintf(why, GP_CUDA_PROBE, "%s on its streams: %s", p.doing, cudaGetErrorString(error));
    (void)gp_gpu_check(gpu, error, p.doing);
  }
  give_back(&p);
  return error == cudaSuccess;
}
