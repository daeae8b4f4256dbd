/* engine/gpu/wiring.h - what a plan needs of GPUs beside its memory: events, pinned memory, graphs, couriers.
 *
 * Made when the plan is built, so that a step creates nothing. A plan without GPUs has none.
 *
 *   wiring.c       making and giving it back; guests of stages
 *   link.c         values that cross from the device that made them to one that reads them
 *   desk.c         mini-batches to the GPU, losses and faults back
 *   execute.c      one program on a GPU, launched or replayed
 *   marks.c        when tasks of a GPU began and ended, by its own clock
 */
#ifndef GP_ENGINE_WIRING_H
#define GP_ENGINE_WIRING_H

#include "engine/pipeline.h"

/* A slot of an edge that joins devices of which one is a GPU at least. Events per device; what is not a
 * party has none. Written by one side before it publishes or releases the slot, read by the other after. */
typedef struct gp_link {
  int32_t maker;          /* device that made what lies in the slot; -1: nothing to wait for */
  bool *has;              /* per device: it has fetched what lies in the slot */
  bool *used;             /* per device: `freed` says when its last use is over */
  gp_gpu_event **made;    /* after the task that made it: on its compute stream */
  gp_gpu_event **arrived; /* after it came to the reader */
  gp_gpu_event **freed;   /* after the device's last use */
} gp_link;

/* Somebody to fetch from a GPU that the device cannot reach: a stream there, and what it brought last. */
typedef struct gp_courier {
  gp_gpu *gpu; /* NULL where not needed */
  gp_gpu_event *brought;
} gp_courier;

/* A task that is captured once it has run. */
typedef struct gp_replay {
  gp_gpu_graph *graph;
  int64_t runs; /* so far */
  bool tried;   /* once, also where the device cannot */
} gp_replay;

/* One device's part. */
typedef struct gp_wired_device {
  char *pinned;            /* like its desk, for all mini-batches under way */
  gp_gpu_event **arrived;  /* per micro-batch: its rows are on the desk */
  gp_gpu_event **computed; /* per micro-batch: its output is; where the plan has outputs */
  int64_t sent, end;       /* micro-batches of the stream: sent so far, and known */
  char **staging;          /* per edge: pinned slots for values that pass through the host */
  gp_courier *courier;     /* per device that it fetches from */
  gp_replay *replays;      /* per task of the device; NULL in streams, whose addresses change */
} gp_wired_device;

typedef struct gp_wiring {
  gp_pipeline *pipeline;
  const gp_gpu_api *api;
  int32_t device_count, edge_count;
  gp_link **links; /* per edge: slots; NULL where no GPU has to do with it */
  gp_wired_device *devices;
  int32_t task_bits; /* of a tag: task of the device << instr_bits | instruction << 1 | kind */
} gp_wiring;

/* What drives a device of the plan. */
static inline const gp_lane *gp_wiring_lane(const gp_wiring *wiring, int32_t device) {
  return &wiring->pipeline->workers[device].lane;
}

/* Part of binding a plan; nothing where no device is a GPU. */
gp_status gp_wiring_new(gp_binding *binding);
void gp_wiring_free(gp_binding *binding);
/* Give back the graphs: an address that tasks were captured with has changed. */
void gp_wiring_forget(gp_binding *binding);
/* Bring what a device's stages read of other devices up to date: before a mini-batch. */
gp_status gp_guests_refresh(gp_worker *worker, const gp_binding *binding);

/* link.c: what a task does for one of its edges, in this order; all of them enqueue only, but for the CPU's
 * side of a link. */
gp_status gp_link_acquire(gp_worker *worker, const gp_binding *binding, int32_t edge, int32_t slot);
gp_status gp_link_receive(gp_worker *worker, const gp_binding *binding, int32_t edge, int32_t slot,
                          int32_t copy);
gp_status gp_link_publish(gp_worker *worker, const gp_binding *binding, int32_t edge, int32_t slot);
gp_status gp_link_release(gp_worker *worker, const gp_binding *binding, int32_t edge, int32_t slot);

/* desk.c */
/* Tasks first .. end - 1 of a device, as mini-batch `step` of the stream runs them. */
typedef struct gp_span_of_tasks {
  uint32_t step;
  int32_t first, end;
  int64_t repeats, limit; /* mini-batches after the stored ones; micro-batches that there are */
  size_t first_event;     /* of the worker's */
} gp_span_of_tasks;

/* The frame's part of a mini-batch. */
void gp_desk_bind(gp_worker *worker, const gp_feed *feed, const gp_task *task, int64_t micro);
/* Begin a mini-batch: its first rows. */
gp_status gp_desk_upload(gp_worker *worker, const gp_run *run, uint32_t step);
/* Let the device wait for the rows of a micro-batch, which counts through the stream. */
gp_status gp_desk_await(gp_worker *worker, const gp_run *run, int64_t micro);
/* Send the rows of the next micro-batch of the mini-batch; those of all that are left. */
gp_status gp_desk_prefetch(gp_worker *worker, const gp_run *run);
gp_status gp_desk_flush(gp_worker *worker, const gp_run *run);
/* Take the output of a task, if it has one, to the host: enqueued. */
gp_status gp_desk_return(gp_worker *worker, const gp_run *run, const gp_task *task, int64_t micro);
/* Wait for the device; take in what the tasks left, and note the first fault. */
gp_status gp_desk_collect(gp_worker *worker, gp_run *run, const gp_span_of_tasks *span);
/* On the device: what the losses are divided by. */
gp_status gp_desk_settle(gp_worker *worker, const gp_plan *plan, int64_t micro, int32_t copy);
/* The step block and the fault word of a micro-batch, on the device. */
const gp_step_block *gp_desk_block(const gp_worker *worker, const gp_plan *plan, int64_t micro,
                                   int32_t copy);
gp_gpu_fault *gp_desk_fault(const gp_worker *worker, const gp_plan *plan, int64_t micro);

/* execute.c */
gp_status gp_execute_gpu(gp_worker *worker, const gp_task *task, int64_t micro);
/* What a tag says: the task, its instruction, and whether a value was not finite. */
typedef struct gp_tag {
  int32_t task, instr;
  bool finite;
} gp_tag;
gp_tag gp_tag_read(const gp_binding *binding, int32_t device, uint32_t tag);

/* marks.c */
/* Of a GPU, whose tasks run later than they are enqueued: mark the begin of a range, and begin (0) and end (1)
 * of event `number` of the stream; when the range is over, write the times of the events from `first` on. */
gp_status gp_record_marks_new(gp_worker *worker, size_t events);
void gp_record_marks_free(gp_worker *worker);
gp_status gp_record_range(gp_worker *worker);
gp_status gp_record_mark(gp_worker *worker, size_t number, int end);
gp_status gp_record_settle(gp_worker *worker, size_t first);

#endif
