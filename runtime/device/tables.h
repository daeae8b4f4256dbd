/* device/tables.h - the functions of one kind of lane, in small tables, one for each concern.
 *
 * A function enqueues work and returns, except those marked "waits"; addresses are in the lane's
 * memory. Each is called with the lane that the table belongs to.
 *
 * Threads: one at a time per lane. */
#ifndef GP_DEVICE_TABLES_H
#define GP_DEVICE_TABLES_H

#include "base/space.h"
#include "device/job.h"
#include "gpipe/device.h"

typedef struct gp_lane gp_lane;
/* An event in a lane's queue that others wait for. NULL if work is over before the call returns. */
typedef struct gp_lane_event gp_lane_event;
/* Captured work, which one call launches again. */
typedef struct gp_lane_graph gp_lane_graph;

/* What the engine and the planner ask instead of which kind a lane is. */
typedef struct gp_lane_facts {
  bool packs_weights; /* products are faster from a packed copy of the weights */
  bool sums_parts;    /* rows are summed in parts, while a kernel reads them for another purpose */
  bool writes_halves; /* update also writes a slice's halves */
  bool at_once;       /* work is over when a call returns: pinned threads of this process do it */
  size_t sum_scratch; /* bytes of scratch of `squares`; 0: it needs none */
} gp_lane_facts;

/* Memory, and copies in the order of a stream. */
typedef struct gp_lane_memory {
  /* Can fetch read the other lane's memory without a detour through the host? */
  bool (*reaches)(const gp_lane *lane, const gp_lane *other);
  /* Free bytes of its memory; SIZE_MAX: no limit. */
  gp_status (*free_bytes)(const gp_lane *lane, size_t *bytes);
  /* Host memory that lanes of this kind copy from and to without blocking; it may outlive them.
   * NULL: any host memory serves. */
  gp_status (*host_alloc)(size_t bytes, void **memory);
  void (*host_free)(void *memory);
  /* Let mapped memory, whole pages of it, serve as well as that of host_alloc, until host_unpin;
   * NULL as host_alloc is. */
  gp_status (*host_pin)(void *memory, size_t bytes);
  void (*host_unpin)(void *memory);
  /* copy: within the lane's memory, or between it and memory of host_alloc. fetch: from the memory
   * of a lane that it reaches. */
  gp_status (*copy)(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                    size_t bytes);
  gp_status (*fetch)(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                     const void *from, size_t bytes);
  gp_status (*fill)(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes);
} gp_lane_memory;

/* Memory of a lane as another process of the host finds it: bytes that only a lane understands. */
typedef struct gp_lane_offer {
  uint64_t words[24];
} gp_lane_offer;

/* How another process opens it: for which link, and the part that it may write to meanwhile. */
typedef struct gp_lane_window {
  const char *name;    /* for reports */
  const char *refused; /* why the owner offers none, which open then reports; NULL: it does */
  size_t at, bytes;
} gp_lane_window;

/* Memory that a lane of another process writes to by its copies. open tries a copy, so it may wait,
 * at most for seconds. The owner frees the memory when it is closed. Errors: GP_EUNSUPPORTED with
 * the reason. */
typedef struct gp_lane_sharing {
  gp_status (*offer)(const gp_lane *lane, const void *memory, gp_lane_offer *offer);
  gp_status (*open)(const gp_lane *lane, const gp_lane_offer *offer, const gp_lane_window *window,
                    void **memory);
  void (*close)(const gp_lane *lane, const gp_lane_offer *offer, void *memory);
} gp_lane_sharing;

/* A wire between a lane of this process and one of another, by a library of the device
 * (device/link/ranks/queue/wire.h): it moves bytes in order, on a stream of its own. None of these
 * waits; what was asked for has to be ready before more is asked for. abort: any thread. */
typedef struct gp_lane_wire gp_lane_wire;
enum { GP_LANE_WIRE_ID = 128 /* bytes */ };
typedef struct gp_lane_wires {
  gp_status (*id)(unsigned char id[GP_LANE_WIRE_ID]);
  gp_status (*open)(const gp_lane *lane, const unsigned char id[GP_LANE_WIRE_ID], bool sends,
                    gp_lane_wire **wire);
  gp_status (*ready)(gp_lane_wire *wire, bool *ready);
  gp_status (*move)(gp_lane_wire *wire, gp_lane_event *after, void *memory, size_t bytes);
  gp_status (*record)(gp_lane_wire *wire, gp_lane_event *event);
  /* Let the lane's report say whether a link uses it; why: the reason why not, or NULL. */
  void (*note)(const gp_lane *lane, const char *name, const char *why);
  void (*abort)(gp_lane_wire *wire);
  void (*close)(gp_lane_wire *wire);
} gp_lane_wires;

/* Streams and events. call: a thread of the device's driver calls the function when the stream gets
 * there; the function must not call the lane. If the device is lost before, it is never called.
 * NULL if work is over before the call returns. record: marks what the stream has so far. wait: the
 * stream goes on once the event has happened, on whichever lane it was recorded; NULL has happened.
 * is_done asks without waiting. seconds: the time between two timed events that have happened. */
typedef struct gp_lane_streams {
  gp_status (*sync)(const gp_lane *lane, gp_stream stream); /* waits */
  gp_status (*call)(const gp_lane *lane, gp_stream stream, void (*function)(void *context),
                    void *context);
  gp_status (*event_new)(const gp_lane *lane, bool timed, gp_lane_event **event);
  void (*event_free)(const gp_lane *lane, gp_lane_event *event);
  gp_status (*record)(const gp_lane *lane, gp_stream stream, gp_lane_event *event);
  gp_status (*wait)(const gp_lane *lane, gp_stream stream, gp_lane_event *event);
  gp_status (*is_done)(const gp_lane *lane, gp_lane_event *event, bool *done);
  gp_status (*seconds)(const gp_lane *lane, gp_lane_event *from, gp_lane_event *to,
                       double *seconds);
} gp_lane_streams;

/* Ops, in the order of the compute stream. */
typedef struct gp_lane_work {
  void (*set_precision)(const gp_lane *lane, bool tf32); /* of products of f32 */
  /* Look up what a launch would otherwise have to; returns the scratch bytes that it needs. */
  gp_status (*prepare)(const gp_lane *lane, gp_op op, const gp_call *call, size_t *scratch);
  gp_status (*run)(const gp_lane *lane, const gp_lane_job *job); /* all ops of a job */
  gp_status (*pieces)(const gp_lane *lane, int64_t count, gp_piece piece,
                      void *context); /* waits */
  gp_status (*launch)(const gp_lane *lane, const gp_lane_call *call);
  gp_status (*check_finite)(const gp_lane *lane, const gp_arg *value, gp_lane_fault *fault,
                            uint32_t tag);
  /* blocks[count] get inverse_count = 1 / sum(counts[count]); 0 where the sum is 0. */
  gp_status (*settle)(const gp_lane *lane, const int64_t *counts, gp_step_block *blocks, int count);
} gp_lane_work;

/* Sums and updates, in the order of the compute stream. */
typedef struct gp_lane_sums {
  /* to += from, n elements of f32 or f64. */
  gp_status (*add)(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);
  gp_status (*squares)(const gp_lane *lane, const gp_lane_sweep *sweep); /* waits */
  gp_status (*scale)(const gp_lane *lane, const gp_lane_sweep *sweep);
  gp_status (*update)(const gp_lane *lane, const gp_lane_update *update);
} gp_lane_sums;

/* Captured work, on the compute stream. What is enqueued there between begin and end is recorded in
 * a graph and does not run; an event in a graph is recorded, or waited for, at each launch. end:
 * NULL if this device cannot capture it; the work is lost then, and the stream is as before. */
typedef struct gp_lane_graphs {
  gp_status (*begin)(const gp_lane *lane);
  gp_status (*end)(const gp_lane *lane, gp_lane_graph **graph);
  gp_status (*launch)(const gp_lane *lane, gp_lane_graph *graph);
  void (*free)(gp_lane_graph *graph);
} gp_lane_graphs;

typedef struct gp_lane_reports {
  /* The i-th way in which the lane works; false after the last. Threads: any. */
  bool (*path)(const gp_lane *lane, int i, gp_work_path *path);
  /* Named ranges for profilers, on the calling thread. NULL: no profiler would show them. */
  void (*range_push)(const char *name, int64_t payload);
  void (*range_pop)(void);
} gp_lane_reports;

struct gp_lane {
  const gp_lane_facts *facts; /* NULL: the lane is not open */
  const gp_lane_memory *memory;
  const gp_lane_sharing *sharing; /* NULL: no other process reaches its memory */
  const gp_lane_wires *wires;     /* NULL: there is no such library */
  const gp_lane_streams *streams;
  const gp_lane_work *work;
  const gp_lane_sums *sums;
  const gp_lane_graphs *graphs; /* NULL: work is over at once, so there is nothing to capture */
  const gp_lane_reports *reports;
  void (*close)(gp_lane *lane); /* waits */
  char name[32];                /* "cpu:0", "cuda:1/0of2" */
  gp_space *space;              /* the memory space that it works on; NULL: the host's */
  int32_t rank;                 /* of the process that drives it; 0 where there is one */
  void *self;                   /* state of this kind */
  void *recorder;               /* the recorder that times its work (engine/profile), or NULL */
};

#endif
