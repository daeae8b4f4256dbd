/* device/cuda/event.c - points in a stream that other streams, and the host, can wait for.
 *
 * The host sleeps while it waits (blocking synchronisation): a spinning wait would take a core from
 * the stages that run on the CPU. In captured work, an event becomes a node that refers to the
 * event outside the graph: each launch waits for it, or records it. */
#include <stdlib.h>

#include "device/cuda/table.h"

struct gp_gpu_event {
  cudaEvent_t event;
  gp_gpu_spec spec; /* where it is recorded; the event may outlive that device */
};

gp_status gp_cuda_event_new(gp_gpu *gpu, bool timed, gp_gpu_event **event) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  gp_gpu_event *made = malloc(sizeof *made);
  if (!made) return gp_gpu_fail(GP_ENOMEM, "cuda: no memory for an event");
  made->spec = gpu->spec;
  unsigned flags = cudaEventBlockingSync | (timed ? 0 : (unsigned)cudaEventDisableTiming);
  gp_status status =
      gp_gpu_check(gpu, cudaEventCreateWithFlags(&made->event, flags), "making an event");
  if (status != GP_OK) {
    free(made);
    return status;
  }
  *event = made;
  return GP_OK;
}

void gp_cuda_event_free(gp_gpu_event *event) {
  if (!event) return;
  (void)gp_cuda_switch(event->spec.ordinal);
  (void)gp_cuda_check_spec(&event->spec, cudaEventDestroy(event->event), "giving back an event");
  free(event);
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool is_captured(const gp_gpu *gpu, gp_stream stream) {
  return gpu->capturing && stream == GP_STREAM_COMPUTE;
}

gp_status gp_cuda_record(gp_gpu *gpu, gp_stream stream, gp_gpu_event *event) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  unsigned flags = is_captured(gpu, stream) ? cudaEventRecordExternal : cudaEventRecordDefault;
  cudaError_t error = cudaEventRecordWithFlags(event->event, gpu->streams[stream], flags);
  return gp_gpu_check(gpu, error, "recording an event");
}

gp_status gp_cuda_wait(gp_gpu *gpu, gp_stream stream, gp_gpu_event *event) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  unsigned flags = is_captured(gpu, stream) ? cudaEventWaitExternal : cudaEventWaitDefault;
  cudaError_t error = cudaStreamWaitEvent(gpu->streams[stream], event->event, flags);
  return gp_gpu_check(gpu, error, "letting a stream wait for an event");
}

gp_status gp_cuda_record_on(const gp_gpu *gpu, cudaStream_t stream, gp_gpu_event *event) {
  cudaError_t error = cudaEventRecordWithFlags(event->event, stream, cudaEventRecordDefault);
  return gp_gpu_check(gpu, error, "recording an event");
}

gp_status gp_cuda_wait_on(const gp_gpu *gpu, cudaStream_t stream, gp_gpu_event *event) {
  cudaError_t error = cudaStreamWaitEvent(stream, event->event, cudaEventWaitDefault);
  return gp_gpu_check(gpu, error, "letting a stream wait for an event");
}

/* ---- host ------------------------------------------------------------------------------------ */

static gp_status use_event(const gp_gpu_event *event) {
  GP_GPU_TRY(gp_cuda_alive(event->spec.ordinal));
  return gp_cuda_switch(event->spec.ordinal);
}

gp_status gp_cuda_finish(gp_gpu_event *event) {
  GP_GPU_TRY(use_event(event));
  return gp_cuda_check_spec(&event->spec, cudaEventSynchronize(event->event),
                            "waiting for an event");
}

gp_status gp_cuda_done(gp_gpu_event *event, bool *done) {
  GP_GPU_TRY(use_event(event));
  cudaError_t error = cudaEventQuery(event->event);
  bool pending = error == cudaErrorNotReady;
  if (pending) (void)cudaGetLastError(); /* else the thread's next launch would report it */
  if (!pending) GP_GPU_TRY(gp_cuda_check_spec(&event->spec, error, "asking for an event"));
  *done = !pending;
  return GP_OK;
}

/* CUDA reports times as milliseconds in single precision. */
gp_status gp_cuda_seconds(gp_gpu_event *from, gp_gpu_event *to, double *seconds) {
  GP_GPU_TRY(use_event(from));
  float milliseconds = 0;
  cudaError_t error = cudaEventElapsedTime(&milliseconds, from->event, to->event);
  GP_GPU_TRY(gp_cuda_check_spec(&from->spec, error, "asking for a time"));
  *seconds = (double)milliseconds * 1e-3;
  return GP_OK;
}
