/* tests/cuda/cudart/stream.c - streams and events.
 *
 * Unless work is lazy (queue.c) it has happened when the call returns: an event is done when it is
 * recorded, and waiting for one does nothing. Threads: the program itself must order the threads of
 * the host. The fields of an event are atomic without ordering anything, so that thread sanitizer
 * sees what the program forgot. */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cudart.h"

struct CUevent_st {
  int device;
  bool timed;
  atomic_bool recorded;
  _Atomic double time;  /* seconds at its last record */
  gp_queue_point point; /* where work is lazy: the work up to its record */
  atomic_int asked;     /* queries since then */
};

enum { NOT_READY = 2 }; /* so many queries answer "not ready" before lazy work runs */

/* ---- streams --------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  GP_CUDART_ENTER();
  (void)flags;
  cudaStream_t made = calloc(1, sizeof *made);
  if (!made) return gp_cudart_set(cudaErrorMemoryAllocation);
  made->device = gp_cudart_device();
  made->queue = gp_queue_new();
  if (!made->queue) {
    free(made);
    return gp_cudart_set(cudaErrorMemoryAllocation);
  }
  *stream = made;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  GP_CUDART_ENTER();
  (void)priority;
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  GP_CUDART_ENTER();
  if (!stream) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  gp_queue_free(stream->queue);
  free(stream);
  return cudaSuccess;
}

/* A captured stream cannot be waited for. */
static cudaError_t check_wait(cudaStream_t stream) {
  if (!stream) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  if (!stream->captured) return cudaSuccess;
  stream->captured->spoilt = true;
  return gp_cudart_set(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  GP_CUDART_ENTER();
  const cudaError_t error = check_wait(stream);
  return error == cudaSuccess ? gp_cudart_set(gp_queue_finish(stream->queue)) : error;
}

/* The answer is always yes. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  GP_CUDART_ENTER();
  const cudaError_t error = check_wait(stream);
  return error == cudaSuccess ? gp_cudart_set(gp_queue_finish(stream->queue)) : error;
}

/* ---- work ------------------------------------------------------------------------------------ */

static cudaError_t append(cudaGraph_t graph, gp_host_work *work) {
  work->next = NULL;
  *graph->end = work;
  graph->end = &work->next;
  return cudaSuccess;
}

cudaError_t gp_host_submit(cudaStream_t stream, gp_host_work *work) {
  if (!work) return gp_cudart_set(cudaErrorMemoryAllocation);
  /* The plugin never uses the default stream, and makes the stream's device current first. */
  const bool ours = stream && stream->device == gp_cudart_device();
  if (ours && stream->captured) return append(stream->captured, work);
  if (ours) return gp_cudart_set(gp_queue_give(stream->queue, work));
  work->free(work);
  return gp_cudart_set(cudaErrorInvalidResourceHandle);
}

void gp_host_submit_kernel(cudaStream_t stream, const void *kernel, size_t shared,
                           gp_host_work *work) {
  cudaError_t error = gp_cudart_enter("cudaLaunchKernel");
  if (error == cudaSuccess && work && !gp_cudart_allowed(kernel, shared))
    error = gp_cudart_set(cudaErrorInvalidValue);
  if (error == cudaSuccess) {
    (void)gp_host_submit(stream, work);
  } else if (work) {
    work->free(work);
  }
}

/* A function of the host in the order of a stream. */
typedef struct call_work {
  gp_host_work work;
  cudaHostFn_t function;
  void *context;
} call_work;

static cudaError_t run_call(gp_host_work *work) {
  ((call_work *)work)->function(((call_work *)work)->context);
  return cudaSuccess;
}

static void free_call(gp_host_work *work) { free(work); }

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *context) {
  GP_CUDART_ENTER();
  call_work *made = malloc(sizeof *made);
  if (made) *made = (call_work){{.run = run_call, .free = free_call}, function, context};
  return gp_host_submit(stream, made ? &made->work : NULL);
}

/* The fake NCCL (tests/cuda/nccl) gives its work to a stream by this. */
__attribute__((visibility("default"))) int gp_test_launch(cudaStream_t stream,
                                                          cudaHostFn_t function, void *context);

int gp_test_launch(cudaStream_t stream, cudaHostFn_t function, void *context) {
  return (int)cudaLaunchHostFunc(stream, function, context);
}

/* ---- events ---------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  GP_CUDART_ENTER();
  cudaEvent_t made = calloc(1, sizeof *made);
  if (!made) return gp_cudart_set(cudaErrorMemoryAllocation);
  made->device = gp_cudart_device();
  made->timed = !(flags & cudaEventDisableTiming);
  *event = made;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  GP_CUDART_ENTER();
  if (!event) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  gp_point_reach(&event->point); /* its record may not have run yet */
  gp_point_set(&event->point, NULL);
  free(event);
  return cudaSuccess;
}

static cudaError_t record(cudaEvent_t event) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  atomic_store_explicit(&event->time, seconds, memory_order_relaxed);
  atomic_store_explicit(&event->recorded, true, memory_order_relaxed);
  return cudaSuccess;
}

/* An event in a graph is recorded at each launch. */
typedef struct record_work {
  gp_host_work work;
  cudaEvent_t event;
} record_work;

static cudaError_t run_record(gp_host_work *work) { return record(((record_work *)work)->event); }

static void free_record(gp_host_work *work) { free(work); }

/* The plugin captures one stream, so an event within a captured stretch means one outside of it. */
static cudaError_t check_event(cudaStream_t stream, cudaEvent_t event, bool external) {
  if (!stream || !event) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  if (!stream->captured || external) return cudaSuccess;
  stream->captured->spoilt = true;
  return gp_cudart_set(cudaErrorStreamCaptureUnsupported);
}

/* Where work is lazy the event stands for what the stream was given so far. */
static void note_record(cudaEvent_t event, cudaStream_t stream) {
  if (!gp_queue_is_lazy()) return;
  gp_point_set(&event->point, stream->queue);
  atomic_store_explicit(&event->asked, 0, memory_order_relaxed);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  GP_CUDART_ENTER();
  cudaError_t error = check_event(stream, event, flags & cudaEventRecordExternal);
  if (error != cudaSuccess) return error;
  if (event->device != stream->device) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  record_work *made = malloc(sizeof *made);
  if (made) *made = (record_work){{.run = run_record, .free = free_record}, event};
  error = gp_host_submit(stream, made ? &made->work : NULL);
  if (error == cudaSuccess && !stream->captured) note_record(event, stream);
  return error;
}

/* The events of a graph stand for its whole launch, which is later than they need to be. */
void gp_events_launched(cudaGraph_t graph, cudaStream_t stream) {
  for (gp_host_work *work = graph->first; work; work = work->next)
    if (work->run == run_record) note_record(((record_work *)work)->event, stream);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  GP_CUDART_ENTER();
  cudaError_t error = check_event(stream, event, flags & cudaEventWaitExternal);
  if (error != cudaSuccess) return error;
  if (!gp_queue_is_lazy()) return cudaSuccess;
  if (stream->captured) { /* lazy work does not support it */
    stream->captured->spoilt = true;
    return gp_cudart_set(cudaErrorStreamCaptureUnsupported);
  }
  return gp_cudart_set(gp_queue_wait(stream->queue, &event->point));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  GP_CUDART_ENTER();
  if (!event) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  gp_point_reach(&event->point);
  return cudaSuccess;
}

/* A program that asks again and again makes the work run. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
  GP_CUDART_ENTER();
  if (!event) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  if (!gp_point_is_reached(&event->point) && atomic_fetch_add(&event->asked, 1) < NOT_READY)
    return gp_cudart_set(cudaErrorNotReady);
  gp_point_reach(&event->point);
  return cudaSuccess;
}

static bool has_time(cudaEvent_t event) {
  return event && event->timed && atomic_load_explicit(&event->recorded, memory_order_relaxed);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  GP_CUDART_ENTER();
  if (from && to) {
    gp_point_reach(&from->point);
    gp_point_reach(&to->point);
  }
  if (!has_time(from) || !has_time(to)) return gp_cudart_set(cudaErrorInvalidResourceHandle);
  const double begin = atomic_load_explicit(&from->time, memory_order_relaxed);
  const double end = atomic_load_explicit(&to->time, memory_order_relaxed);
  *milliseconds = (float)((end - begin) * 1e3);
  return cudaSuccess;
}
