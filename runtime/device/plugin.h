/* device/plugin.h - the interface between the core and a device plugin (libgpipe_cuda.so).
 *
 * The core links nothing of CUDA: it opens the plugin with dlopen and calls its one entry point to
 * get a table of functions. The plugin imports nothing from the core: the core hands it the
 * functions that it may call. Both are built from the same rows of ops.def and compare what these
 * mean (device/rows_version.h).
 *
 * A gp_gpu is a logical device: a GPU, or a part of one with streams of its own. Functions that
 * take one and a stream enqueue and return; only those marked "waits" wait. Threads: one at a time
 * per gp_gpu; each function makes the device current for its thread. Errors: GP_EDEVICE with CUDA's
 * name for it; GP_ENOMEM. After a sticky error every call on that GPU returns the text of the first
 * one. */
#ifndef GP_DEVICE_PLUGIN_H
#define GP_DEVICE_PLUGIN_H

#include "device/call.h"
#include "gpipe/device.h"
#include "gpipe/update.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GP_PLUGIN_VERSION = 7, GP_GPU_ALIGNMENT = 256 /* bytes, of every allocation */ };

typedef struct gp_gpu gp_gpu;
typedef struct gp_gpu_event gp_gpu_event;
typedef struct gp_gpu_graph gp_gpu_graph;
typedef struct gp_gpu_wire gp_gpu_wire;
enum { GP_GPU_WIRE_ID = 128 /* bytes */ };

/* The functions that a plugin may call. */
typedef struct gp_plugin_host {
  uint32_t version;
  uint64_t ops;                                          /* gp_rows_version() */
  gp_status (*fail)(gp_status status, const char *text); /* set the thread's error text */
} gp_plugin_host;

typedef enum gp_stream {
  GP_STREAM_COMPUTE,
  GP_STREAM_SEND,
  GP_STREAM_RECEIVE,
  GP_STREAMS
} gp_stream;

/* "cuda:1/0of4" is GPU 1, part 0 of 4; parts 1 is the whole GPU. */
typedef struct gp_gpu_spec {
  int ordinal, part, parts;
} gp_gpu_spec;

/* Precision of products of f32 matrices. */
typedef enum gp_gpu_math { GP_GPU_F32, GP_GPU_TF32 } gp_gpu_math;

/* In device memory: the first id out of range, or the first value that is not finite. Kernels lower
 * `key` with an atomic minimum, so the smallest (tag, position) remains. */
typedef struct gp_gpu_fault {
  uint64_t key;  /* tag << 32 | position of the element; GP_GPU_NO_FAULT: none */
  int64_t value; /* the id */
} gp_gpu_fault;
#define GP_GPU_NO_FAULT UINT64_MAX

/* An application of an op: what CPU kernels get, with addresses in device memory (also the step
 * block's, which the host must not read). */
typedef struct gp_gpu_call {
  gp_call op;
  void *scratch;       /* as large as prepare said, aligned to 256 bytes */
  gp_gpu_fault *fault; /* device memory */
  uint32_t tag;        /* names this application in *fault */
} gp_gpu_call;

/* Device memory as another process of the host finds it. */
typedef struct gp_gpu_offer {
  char handle[64]; /* of the allocation */
  uint64_t offset; /* of the memory in it */
  char gpu[64];    /* gp_gpu_info.id */
} gp_gpu_offer;

/* How a process opens it: for which link, and the part that it may write to meanwhile. */
typedef struct gp_gpu_window {
  const char *name;    /* for reports: "cuda:0 to 1/cuda:1" */
  const char *refused; /* why the owner offers none; NULL: it does */
  size_t at, bytes;
} gp_gpu_window;

/* n elements of one tensor in device memory. */
typedef struct gp_gpu_run {
  gp_dtype dtype;
  int64_t n;
  void *data;
} gp_gpu_run;

/* The plugin's functions, in groups with a comment above each. */
typedef struct gp_gpu_api {
  uint32_t version;
  const char *kind; /* "cuda" */

  /* The machine. count fails if there is no GPU, and says why (GP_EDEVICE). */
  gp_status (*count)(int *count);
  gp_status (*describe)(int ordinal, gp_gpu_info *info);

  /* Open and close a logical device. close waits for its work. */
  gp_status (*open)(const gp_gpu_spec *spec, gp_gpu **gpu);
  void (*close)(gp_gpu *gpu);
  void (*info)(const gp_gpu *gpu, gp_gpu_info *info);
  void (*set_math)(gp_gpu *gpu, gp_gpu_math math);

  /* Memory. host_alloc returns pinned host memory that every device reaches; host_pin pins memory
   * that the caller has mapped, whole pages of it. The free bytes are those of the whole GPU at
   * this moment. */
  gp_status (*alloc)(gp_gpu *gpu, size_t bytes, void **memory);
  void (*free)(gp_gpu *gpu, void *memory);
  gp_status (*host_alloc)(size_t bytes, void **memory);
  void (*host_free)(void *memory);
  gp_status (*host_pin)(void *memory, size_t bytes);
  void (*host_unpin)(void *memory);
  gp_status (*free_bytes)(gp_gpu *gpu, size_t *bytes);

  /* Memory that another process writes to. offer describes it; the other process opens it, which
   * tries a copy (waits, at most seconds), and closes it before its owner frees it. Errors:
   * GP_EUNSUPPORTED with the reason, which paths tell, too. */
  gp_status (*ipc_offer)(gp_gpu *gpu, const void *memory, gp_gpu_offer *offer);
  gp_status (*ipc_open)(gp_gpu *gpu, const gp_gpu_offer *offer, const gp_gpu_window *window,
                        void **memory);
  void (*ipc_close)(gp_gpu *gpu, const gp_gpu_offer *offer, void *memory);

  /* Streams. copy: between host and device, or within the device; host memory should be pinned,
   * else it blocks. copy_peer: from another GPU; reaches says whether that works without a detour
   * through the host. */
  gp_status (*copy)(gp_gpu *gpu, gp_stream stream, void *to, const void *from, size_t bytes);
  gp_status (*copy_peer)(gp_gpu *gpu, gp_stream stream, void *to, const gp_gpu *source,
                         const void *from, size_t bytes);
  gp_status (*fill)(gp_gpu *gpu, gp_stream stream, void *to, int byte, size_t bytes);
  bool (*reaches)(gp_gpu *gpu, const gp_gpu *other);
  bool (*same_memory)(const gp_gpu *a, const gp_gpu *b); /* logical devices of one GPU */
  gp_status (*sync)(gp_gpu *gpu, gp_stream stream);      /* waits */
  /* Let a thread of the driver call a function when the stream gets there. The function must not
   * call this table, nor wait for a GPU. If the GPU is lost before, it is never called. */
  gp_status (*call)(gp_gpu *gpu, gp_stream stream, void (*function)(void *context), void *context);

  /* Events. wait: the stream waits for the work before the event's last record, on any device.
   * finish waits on the host; done asks without waiting. seconds: the time between two timed events
   * that have happened. */
  gp_status (*event_new)(gp_gpu *gpu, bool timed, gp_gpu_event **event);
  void (*event_free)(gp_gpu_event *event);
  gp_status (*record)(gp_gpu *gpu, gp_stream stream, gp_gpu_event *event);
  gp_status (*wait)(gp_gpu *gpu, gp_stream stream, gp_gpu_event *event);
  gp_status (*finish)(gp_gpu_event *event);
  gp_status (*done)(gp_gpu_event *event, bool *done);
  gp_status (*seconds)(gp_gpu_event *from, gp_gpu_event *to, double *seconds);

  /* Wires: bytes from the GPU of one process to that of another, in order, by NCCL. One end makes
   * an id, both open a wire with it; none of these waits. ready: all that was asked for before is
   * connected and enqueued; only then may be asked for more. move: sends or receives, on the wire's
   * own stream, after an event (optional). abort ends what is under way; any thread. Errors:
   * GP_EUNSUPPORTED with the reason why there is no NCCL. */
  gp_status (*wire_id)(unsigned char id[GP_GPU_WIRE_ID]);
  gp_status (*wire_open)(gp_gpu *gpu, const unsigned char id[GP_GPU_WIRE_ID], bool sends,
                         gp_gpu_wire **wire);
  gp_status (*wire_ready)(gp_gpu_wire *wire, bool *ready);
  gp_status (*wire_move)(gp_gpu_wire *wire, gp_gpu_event *after, void *memory, size_t bytes);
  gp_status (*wire_record)(gp_gpu_wire *wire, gp_gpu_event *event);
  void (*wire_note)(gp_gpu *gpu, const char *name,
                    const char *why); /* for paths; NULL: it is used */
  void (*wire_abort)(gp_gpu_wire *wire);
  void (*wire_close)(gp_gpu_wire *wire);

  /* Ops, on the compute stream. prepare looks up everything that run would have to (plans and
   * algorithms of libraries), and returns the scratch bytes that run needs; the call's addresses
   * may be NULL. */
  gp_status (*prepare)(gp_gpu *gpu, gp_op op, const gp_call *call, size_t *scratch);
  gp_status (*run)(gp_gpu *gpu, gp_op op, const gp_gpu_call *call);
  /* Lower fault->key if one of the values is not finite. */
  gp_status (*check_finite)(gp_gpu *gpu, const gp_arg *value, gp_gpu_fault *fault, uint32_t tag);
  /* blocks[count] (device) get inverse_count = 1 / sum(counts[count]); 0 where the sum is 0. */
  gp_status (*settle)(gp_gpu *gpu, const int64_t *counts, gp_step_block *blocks, int count);

  /* Updates, on the compute stream: as in optim/optim.h, but many tensors in few launches.
   * sum_squares writes one f64 for each run to sums (device); scratch holds GP_GPU_SUM_SCRATCH
   * bytes. */
  gp_status (*update)(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                      const gp_optim_slice *slices, int count);
  gp_status (*add)(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *to, const void *from);
  gp_status (*scale)(gp_gpu *gpu, const gp_gpu_run *runs, int count, double factor);
  gp_status (*sum_squares)(gp_gpu *gpu, const gp_gpu_run *runs, int count, double *sums,
                           void *scratch);

  /* Graphs: work that is enqueued on the compute stream between begin and end is recorded and does
   * not run. begin returns GP_EUNSUPPORTED if this device records nothing; end returns NULL if it
   * cannot record this work, which is lost then: run it again. */
  gp_status (*capture_begin)(gp_gpu *gpu);
  gp_status (*capture_end)(gp_gpu *gpu, gp_gpu_graph **graph);
  gp_status (*launch)(gp_gpu *gpu, gp_gpu_graph *graph);
  void (*graph_free)(gp_gpu_graph *graph);

  /* Reports: the i-th library, and the i-th way in which this device works; false after the last.
   * Threads: any. */
  bool (*library)(int i, gp_gpu_library *library);
  bool (*path)(const gp_gpu *gpu, int i, gp_work_path *path);

  /* Named ranges for profilers (NVTX), on the calling thread. */
  void (*range_push)(const char *name, int64_t payload);
  void (*range_pop)(void);
} gp_gpu_api;

enum { GP_GPU_SUM_SCRATCH = 1 << 19 };

/* The entry point has this name. Errors: GP_EUNSUPPORTED if versions or hashes differ. */
typedef gp_status (*gp_plugin_open)(const gp_plugin_host *host, const gp_gpu_api **api);
#define GP_PLUGIN_ENTRY "gp_cuda_plugin_open"

#ifdef __cplusplus
}
#endif

#endif
