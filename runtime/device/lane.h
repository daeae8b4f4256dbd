/* device/lane.h - what one worker drives: a device's queue of work and the memory that it works on.
 *
 * A lane is a table of functions and the state of one kind of device: a team of threads of this
 * process (cpu/lane.c), or the streams of a GPU (gpu/lane.c). The engine asks a lane for memory and
 * for work in order and never what kind it is; where a queue keeps the order, calls return at once.
 * Addresses of a device's memory may be handed about, but only lanes touch what lies there. A
 * further kind of device is a new file with such a table and a row in lane.c.
 * Threads: one at a time per lane. */
#ifndef GP_DEVICE_LANE_H
#define GP_DEVICE_LANE_H

#include "base/space.h"
#include "device/job.h"
#include "gpipe/device.h"

typedef struct gp_lane gp_lane;
/* Something in a lane's queue that others wait for. NULL where work is over before the call
 * returns. */
typedef struct gp_lane_event gp_lane_event;
/* What a lane keeps of a job to run it again in less time. NULL where that gains nothing. */
typedef struct gp_lane_replay gp_lane_replay;

typedef struct gp_lane_options {
  int threads;
  const int *cores; /* borrowed: of thread i cores[i % core_count]; count 0: anywhere */
  int core_count;
  bool spin; /* threads may spin before they sleep */
} gp_lane_options;

/* The functions of one kind of lane. All but those whose comment says so enqueue and return. */
typedef struct gp_lane_ops {
  void (*close)(gp_lane *lane); /* waits */

  /* Facts. reaches: fetch takes what lies with the other without a detour through the host. */
  bool packs_weights; /* products are faster from a packed copy of the weights */
  bool sums_parts;    /* rows are added up by parts, on the way of what else they are read for */
  bool writes_halves; /* update writes a slice's halves, too */
  /* work is over when a call returns: done by threads of this process, which are pinned */
  bool at_once;
  bool (*reaches)(const gp_lane *lane, const gp_lane *other);
  gp_status (*free_bytes)(const gp_lane *lane,
                          size_t *bytes); /* of its memory; SIZE_MAX: no limit */
  void (*set_precision)(const gp_lane *lane, bool tf32);

  /* Memory of the host that lanes of the kind copy from and to without holding anybody up; it may
   * outlive them. NULL: any memory of the host is. */
  gp_status (*host_alloc)(size_t bytes, void **memory);
  void (*host_free)(void *memory);

  /* In the order of a stream. copy: in the lane's memory, or between it and host_alloc's. fetch:
   * from the memory of a lane that it reaches. */
  gp_status (*copy)(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                    size_t bytes);
  gp_status (*fetch)(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                     const void *from, size_t bytes);
  gp_status (*fill)(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes);
  gp_status (*sync)(const gp_lane *lane, gp_stream stream); /* waits */

  /* Events. record: after what the stream has so far. wait: the stream goes on when the event
   * happened, whosever it is. is_done asks. seconds: between two timed events that happened. */
  gp_status (*event_new)(const gp_lane *lane, bool timed, gp_lane_event **event);
  void (*event_free)(const gp_lane *lane, gp_lane_event *event);
  gp_status (*record)(const gp_lane *lane, gp_stream stream, gp_lane_event *event);
  gp_status (*wait)(const gp_lane *lane, gp_stream stream, gp_lane_event *event);
  gp_status (*is_done)(const gp_lane *lane, gp_lane_event *event, bool *done);
  gp_status (*seconds)(const gp_lane *lane, gp_lane_event *from, gp_lane_event *to,
                       double *seconds);

  /* A second queue of ops, GP_STREAM_SIDE, for jobs: open_side makes what it needs beside a stream,
   * once. inner_event_new: one that is recorded and waited for in one run of a job, and that a
   * replay keeps to. NULL: the lane has one queue. */
  gp_status (*open_side)(const gp_lane *lane);
  gp_status (*inner_event_new)(const gp_lane *lane, gp_lane_event **event);

  /* Work, in the order of its stream. prepare settles what a launch would have to look up,
   * and gives the scratch that it needs. run: a job; with replay (optional) one whose addresses are
   * those of the last time. */
  gp_status (*prepare)(const gp_lane *lane, gp_op op, const gp_call *call, size_t *scratch);
  gp_status (*run)(const gp_lane *lane, const gp_lane_job *job, gp_lane_replay *replay);
  gp_status (*replay_new)(const gp_lane *lane, gp_lane_replay **replay);
  /* again: of the same job; it need not wait for a first run where `like` had one. */
  gp_status (*replay_again)(const gp_lane *lane, const gp_lane_replay *like,
                            gp_lane_replay **replay);
  void (*replay_forget)(const gp_lane *lane, gp_lane_replay *replay); /* addresses have changed */
  void (*replay_free)(const gp_lane *lane, gp_lane_replay *replay);
  gp_status (*pieces)(const gp_lane *lane, int64_t count, gp_piece piece,
                      void *context); /* waits */
  gp_status (*launch)(const gp_lane *lane, const gp_lane_call *call);
  gp_status (*check_finite)(const gp_lane *lane, const gp_arg *value, gp_lane_fault *fault,
                            uint32_t tag);
  /* blocks[count] get inverse_count = 1 / sum(counts[count]); 0 where the sum is 0. */
  gp_status (*settle)(const gp_lane *lane, const int64_t *counts, gp_step_block *blocks, int count);
  gp_status (*update)(const gp_lane *lane, const gp_lane_update *update);
  gp_status (*squares)(const gp_lane *lane, const gp_lane_sweep *sweep); /* waits: job.h */
  gp_status (*scale)(const gp_lane *lane, const gp_lane_sweep *sweep);
  size_t sum_scratch; /* 0: squares needs none */
  /* Of queues (NULL on others): what becomes of gradients is decided in the lane's memory
   * (device/verdict.h). write_factors makes factor_bytes bytes of a group of an update's, on the
   * host. */
  gp_status (*decide)(const gp_lane *lane, const gp_verdict_terms *terms, const double *words,
                      gp_verdict *verdict);
  gp_status (*write_factors)(const gp_lane *lane, const gp_optim_hyper *hyper, int64_t step,
                             void *factors);
  size_t factor_bytes;
  gp_status (*add)(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);

  /* Reports: the i-th way in which the lane does work; false after the last. Threads: any. */
  bool (*path)(const gp_lane *lane, int i, gp_work_path *path);

  /* Named ranges for profilers, on the calling thread. NULL: nobody would see them. */
  void (*range_push)(const char *name, int64_t payload);
  void (*range_pop)(void);
} gp_lane_ops;

struct gp_lane {
  const gp_lane_ops *ops;
  char name[32];   /* "cpu:0", "cuda:1/0of2" */
  gp_space *space; /* the memory that it works on; NULL: the host's */
  void *self;      /* of the kind */
  void *recorder;  /* of who times its work (engine/profile); NULL */
};

/* Open the device of that name. Errors: GP_EINVAL, GP_EDEVICE, GP_ERANGE. */
gp_status gp_lane_open(const char *name, const gp_lane_options *options, gp_lane *lane);
void gp_lane_close(gp_lane *lane); /* of a zero one: nothing */

/* The first core of each device's threads, which take those that follow (cpu/places.h). */
void gp_lane_places(const gp_device_spec *devices, int32_t count, int cores, int *first);

/* Can b's kernels read what lies in a's memory? */
static inline bool gp_lane_shares(const gp_lane *a, const gp_lane *b) {
  return a->space == b->space;
}

/* Zeroed memory; waits. Threads: the script's. */
gp_status gp_lane_alloc(const gp_lane *lane, size_t bytes, void **memory);
void gp_lane_free(const gp_lane *lane, void *memory, size_t bytes);

/* In the order of the compute stream. From and to are both in its memory. */
gp_status gp_lane_copy(const gp_lane *lane, void *to, const void *from, size_t bytes);
gp_status gp_lane_fill(const gp_lane *lane, void *to, int byte, size_t bytes);
/* From another lane's memory, which nobody writes meanwhile, into this one's. A lane that works in
 * the host's memory waits for it. */
gp_status gp_lane_take(const gp_lane *lane, void *to, const gp_lane *other, const void *from,
                       size_t bytes);
/* to += from, n elements of f32 or f64, both in its memory. */
gp_status gp_lane_add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);
/* Wait for everything so far. */
gp_status gp_lane_sync(const gp_lane *lane);

/* The kinds. */
gp_status gp_lane_open_cpu(const char *name, const gp_lane_options *options, gp_lane *lane);
gp_status gp_lane_open_gpu(const char *name, const gp_lane_options *options, gp_lane *lane);

#endif
