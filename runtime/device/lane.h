/* device/lane.h - what one worker drives: a device's queue of work and the memory that it works on.
 *
 * A lane is a table of functions and the state of one kind of device: a team of threads of this
 * process (cpu/lane.c), or the streams of a GPU (gpu/lane.c). The engine asks a lane for memory and
 * for work in order, and never asks which kind it is; if a queue keeps the order, calls return at
 * once. Any code may pass addresses of a device's memory on, but only lanes touch what lies there.
 * To add a kind of device, write a file with such a table and add a row in lane.c.
 *
 * Threads: one at a time per lane. */
#ifndef GP_DEVICE_LANE_H
#define GP_DEVICE_LANE_H

#include "base/space.h"
#include "device/job.h"
#include "gpipe/device.h"

typedef struct gp_lane gp_lane;
/* An event in a lane's queue that others wait for. NULL if work is over before the call returns. */
typedef struct gp_lane_event gp_lane_event;
/* Captured work, which one call launches again. */
typedef struct gp_lane_graph gp_lane_graph;

typedef struct gp_lane_options {
  int threads;
  const int *cores; /* borrowed: thread i runs on cores[i % core_count]; count 0: anywhere */
  int core_count;
  bool spin; /* threads may spin before they sleep */
} gp_lane_options;

/* Captured work, on the compute stream. What is enqueued there between begin and end is recorded in
 * a graph and does not run; an event in a graph is recorded, or waited for, at each launch. end:
 * NULL if this device cannot capture it; the work is lost then, and the stream is as before. */
typedef struct gp_lane_graphs {
  gp_status (*begin)(const gp_lane *lane);
  gp_status (*end)(const gp_lane *lane, gp_lane_graph **graph);
  gp_status (*launch)(const gp_lane *lane, gp_lane_graph *graph);
  void (*free)(gp_lane_graph *graph);
} gp_lane_graphs;

/* The functions of one kind of lane. They enqueue work and return, except those marked "waits". */
typedef struct gp_lane_ops {
  void (*close)(gp_lane *lane); /* waits */

  /* Facts. reaches: fetch can read the other lane's memory without a detour through the host. */
  bool packs_weights; /* products are faster from a packed copy of the weights */
  bool sums_parts;    /* rows are summed in parts, while a kernel reads them for another purpose */
  bool writes_halves; /* update also writes a slice's halves */
  /* work is over when a call returns: pinned threads of this process do it */
  bool at_once;
  bool (*reaches)(const gp_lane *lane, const gp_lane *other);
  gp_status (*free_bytes)(const gp_lane *lane,
                          size_t *bytes); /* of its memory; SIZE_MAX: no limit */
  void (*set_precision)(const gp_lane *lane, bool tf32);

  /* Host memory that lanes of this kind copy from and to without blocking; it may outlive them.
   * NULL: any host memory serves. */
  gp_status (*host_alloc)(size_t bytes, void **memory);
  void (*host_free)(void *memory);

  /* Copies, in the order of a stream. copy: within the lane's memory, or between it and memory of
   * host_alloc. fetch: from the memory of a lane that it reaches. */
  gp_status (*copy)(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                    size_t bytes);
  gp_status (*fetch)(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                     const void *from, size_t bytes);
  gp_status (*fill)(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes);
  gp_status (*sync)(const gp_lane *lane, gp_stream stream); /* waits */

  /* Events. record: marks what the stream has so far. wait: the stream goes on once the event has
   * happened, on whichever lane it was recorded. is_done asks without waiting. seconds: the time
   * between two timed events that have happened. */
  gp_status (*event_new)(const gp_lane *lane, bool timed, gp_lane_event **event);
  void (*event_free)(const gp_lane *lane, gp_lane_event *event);
  gp_status (*record)(const gp_lane *lane, gp_stream stream, gp_lane_event *event);
  gp_status (*wait)(const gp_lane *lane, gp_stream stream, gp_lane_event *event);
  gp_status (*is_done)(const gp_lane *lane, gp_lane_event *event, bool *done);
  gp_status (*seconds)(const gp_lane *lane, gp_lane_event *from, gp_lane_event *to,
                       double *seconds);

  /* Work, in the order of its stream. prepare looks up what a launch would otherwise have to, and
   * returns the scratch bytes that it needs. run: all ops of a job. */
  gp_status (*prepare)(const gp_lane *lane, gp_op op, const gp_call *call, size_t *scratch);
  gp_status (*run)(const gp_lane *lane, const gp_lane_job *job);
  const gp_lane_graphs *graphs; /* NULL: work is over at once, so there is nothing to capture */
  gp_status (*pieces)(const gp_lane *lane, int64_t count, gp_piece piece,
                      void *context); /* waits */
  gp_status (*launch)(const gp_lane *lane, const gp_lane_call *call);
  gp_status (*check_finite)(const gp_lane *lane, const gp_arg *value, gp_lane_fault *fault,
                            uint32_t tag);
  /* blocks[count] get inverse_count = 1 / sum(counts[count]); 0 where the sum is 0. */
  gp_status (*settle)(const gp_lane *lane, const int64_t *counts, gp_step_block *blocks, int count);
  gp_status (*update)(const gp_lane *lane, const gp_lane_update *update);
  gp_status (*squares)(const gp_lane *lane, const gp_lane_sweep *sweep); /* waits */
  gp_status (*scale)(const gp_lane *lane, const gp_lane_sweep *sweep);
  size_t sum_scratch; /* 0: squares needs none */
  gp_status (*add)(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);

  /* Reports: the i-th way in which the lane works; false after the last. Threads: any. */
  bool (*path)(const gp_lane *lane, int i, gp_work_path *path);

  /* Named ranges for profilers, on the calling thread. NULL: no profiler would show them. */
  void (*range_push)(const char *name, int64_t payload);
  void (*range_pop)(void);
} gp_lane_ops;

struct gp_lane {
  const gp_lane_ops *ops;
  char name[32];   /* "cpu:0", "cuda:1/0of2" */
  gp_space *space; /* the memory space that it works on; NULL: the host's */
  void *self;      /* state of this kind */
  void *recorder;  /* the recorder that times its work (engine/profile), or NULL */
};

/* Open the device with that name. Errors: GP_EINVAL, GP_EDEVICE, GP_ERANGE. */
gp_status gp_lane_open(const char *name, const gp_lane_options *options, gp_lane *lane);
void gp_lane_close(gp_lane *lane); /* does nothing if the lane is all zeros */

/* The first core of each device's threads; its other threads take the cores that follow
 * (cpu/places.h). */
void gp_lane_places(const gp_device_spec *devices, int32_t count, int cores, int *first);

/* Can b's kernels read what lies in a's memory? */
static inline bool gp_lane_shares(const gp_lane *a, const gp_lane *b) {
  return a->space == b->space;
}

/* Allocate zeroed memory; waits. Threads: the script's. */
gp_status gp_lane_alloc(const gp_lane *lane, size_t bytes, void **memory);
void gp_lane_free(const gp_lane *lane, void *memory, size_t bytes);

/* Copy and fill in the order of the compute stream. Both addresses are in the lane's memory. */
gp_status gp_lane_copy(const gp_lane *lane, void *to, const void *from, size_t bytes);
gp_status gp_lane_fill(const gp_lane *lane, void *to, int byte, size_t bytes);
/* Copy from another lane's memory, which no thread may write meanwhile, into this one's. A lane
 * that works in host memory waits for the copy. */
gp_status gp_lane_take(const gp_lane *lane, void *to, const gp_lane *other, const void *from,
                       size_t bytes);
/* to += from, n elements of f32 or f64, both in the lane's memory. */
gp_status gp_lane_add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);
/* Capture what `enqueue` enqueues. *graph receives NULL if the device cannot capture it; then the
 * caller enqueues it as usual, and what failed in `enqueue` fails again unless the capture was the
 * cause. */
gp_status gp_lane_capture(const gp_lane *lane, gp_status (*enqueue)(void *context), void *context,
                          gp_lane_graph **graph);
/* Wait for everything enqueued so far. */
gp_status gp_lane_sync(const gp_lane *lane);

/* The kinds. */
gp_status gp_lane_open_cpu(const char *name, const gp_lane_options *options, gp_lane *lane);
gp_status gp_lane_open_gpu(const char *name, const gp_lane_options *options, gp_lane *lane);

#endif
