/* device/cuda/table.h - the functions of the table, grouped by file, and what those files share.
 *
 * device/plugin.h says what they promise. Each first makes its GPU the thread's current one
 * (gp_cuda_use), which also fails if the GPU is lost. */
#ifndef GP_DEVICE_CUDA_TABLE_H
#define GP_DEVICE_CUDA_TABLE_H

#include "device/cuda/gpu.h"

enum { GP_CUDA_MOST = 64 }; /* most GPUs of a machine; further ones are ignored */

/* ---- error.c ------------------------------------------------------------------------------- */

/* Like gp_gpu_check, for objects that may outlive their gp_gpu; spec NULL: no GPU in particular. */
gp_status gp_cuda_check_spec(const gp_gpu_spec *spec, cudaError_t error, const char *doing);
/* Does the error leave a context in which nothing runs any more? */
bool gp_cuda_is_sticky(cudaError_t error);
/* Return GP_OK, or the text of the error after which this GPU cannot be used. */
gp_status gp_cuda_alive(int ordinal);
/* Write "cuda:1/0of4", or "cuda" for NULL; returns text. */
enum { GP_CUDA_NAME = 48 };
const char *gp_cuda_name(const gp_gpu_spec *spec, char text[GP_CUDA_NAME]);

/* ---- machine.c ----------------------------------------------------------------------------- */

gp_status gp_cuda_count(int *count);
gp_status gp_cuda_describe(int ordinal, gp_gpu_info *info);

/* ---- gpu.c --------------------------------------------------------------------------------- */

gp_status gp_cuda_open(const gp_gpu_spec *spec, gp_gpu **gpu);
void gp_cuda_close(gp_gpu *gpu);
void gp_cuda_info(const gp_gpu *gpu, gp_gpu_info *info);
void gp_cuda_set_math(gp_gpu *gpu, gp_gpu_math math);
/* Make the GPU current for this thread. Cost: a comparison if it is current. Errors: it is lost. */
gp_status gp_cuda_use(const gp_gpu *gpu);
/* The same for the GPU of this number, even if it is lost: to free resources. */
gp_status gp_cuda_switch(int ordinal);
/* The GPU that this thread used last, else the one that the process opened last, else 0. */
int gp_cuda_current(void);

/* ---- partition.c --------------------------------------------------------------------------- */

/* Make the streams of a part, on SMs of its own if the driver can; sets green, isolated and
 * sm_count. On failure nothing is left to free. */
gp_status gp_cuda_part_open(gp_gpu *gpu);
/* Free what part_open made, except the streams, which must be destroyed already. */
void gp_cuda_part_close(gp_gpu *gpu);
/* Make streams that share all SMs. On failure nothing is left to free. */
gp_status gp_cuda_streams_open(gp_gpu *gpu);
void gp_cuda_streams_close(gp_gpu *gpu);

/* ---- probe.c ------------------------------------------------------------------------------- */

/* Do the streams take what a step gives them: events that are recorded, waited for and captured,
 * and a graph that is replayed? If not, why receives what failed. Leaves nothing behind. */
enum { GP_CUDA_PROBE = 160 };
bool gp_cuda_probe(gp_gpu *gpu, char why[GP_CUDA_PROBE]);

/* ---- memory.c ------------------------------------------------------------------------------ */

gp_status gp_cuda_alloc(gp_gpu *gpu, size_t bytes, void **memory);
void gp_cuda_free(gp_gpu *gpu, void *memory);
gp_status gp_cuda_host_alloc(size_t bytes, void **memory);
void gp_cuda_host_free(void *memory);
gp_status gp_cuda_host_pin(void *memory, size_t bytes);
void gp_cuda_host_unpin(void *memory);
gp_status gp_cuda_free_bytes(gp_gpu *gpu, size_t *bytes);

/* ---- copy.c -------------------------------------------------------------------------------- */

gp_status gp_cuda_copy(gp_gpu *gpu, gp_stream stream, void *to, const void *from, size_t bytes);
gp_status gp_cuda_copy_peer(gp_gpu *gpu, gp_stream stream, void *to, const gp_gpu *source,
                            const void *from, size_t bytes);
gp_status gp_cuda_fill(gp_gpu *gpu, gp_stream stream, void *to, int byte, size_t bytes);
bool gp_cuda_same_memory(const gp_gpu *a, const gp_gpu *b);
gp_status gp_cuda_sync(gp_gpu *gpu, gp_stream stream);

/* ---- call.c -------------------------------------------------------------------------------- */

gp_status gp_cuda_call(gp_gpu *gpu, gp_stream stream, void (*function)(void *context),
                       void *context);

/* ---- ipc.c --------------------------------------------------------------------------------- */

gp_status gp_cuda_ipc_offer(gp_gpu *gpu, const void *memory, gp_gpu_offer *offer);
gp_status gp_cuda_ipc_open(gp_gpu *gpu, const gp_gpu_offer *offer, const gp_gpu_window *window,
                           void **memory);
void gp_cuda_ipc_close(gp_gpu *gpu, const gp_gpu_offer *offer, void *memory);

/* ---- peers.c ------------------------------------------------------------------------------- */

bool gp_cuda_reaches(gp_gpu *gpu, const gp_gpu *other);

/* ---- nccl/ --------------------------------------------------------------------------------- */

gp_status gp_cuda_wire_id(unsigned char id[GP_GPU_WIRE_ID]);
gp_status gp_cuda_wire_open(gp_gpu *gpu, const unsigned char id[GP_GPU_WIRE_ID], bool sends,
                            gp_gpu_wire **wire);
gp_status gp_cuda_wire_ready(gp_gpu_wire *wire, bool *ready);
gp_status gp_cuda_wire_move(gp_gpu_wire *wire, gp_gpu_event *after, void *memory, size_t bytes);
gp_status gp_cuda_wire_record(gp_gpu_wire *wire, gp_gpu_event *event);
void gp_cuda_wire_note(gp_gpu *gpu, const char *name, const char *why);
void gp_cuda_wire_abort(gp_gpu_wire *wire);
void gp_cuda_wire_close(gp_gpu_wire *wire); /* NULL is fine */
void gp_cuda_describe_nccl(gp_gpu_library *library);

/* ---- event.c ------------------------------------------------------------------------------- */

gp_status gp_cuda_event_new(gp_gpu *gpu, bool timed, gp_gpu_event **event);
void gp_cuda_event_free(gp_gpu_event *event);
gp_status gp_cuda_record(gp_gpu *gpu, gp_stream stream, gp_gpu_event *event);
gp_status gp_cuda_wait(gp_gpu *gpu, gp_stream stream, gp_gpu_event *event);
/* The same for a stream that is none of the GPU's three. */
gp_status gp_cuda_record_on(const gp_gpu *gpu, cudaStream_t stream, gp_gpu_event *event);
gp_status gp_cuda_wait_on(const gp_gpu *gpu, cudaStream_t stream, gp_gpu_event *event);
gp_status gp_cuda_finish(gp_gpu_event *event);
gp_status gp_cuda_done(gp_gpu_event *event, bool *done);
gp_status gp_cuda_seconds(gp_gpu_event *from, gp_gpu_event *to, double *seconds);

/* ---- kernels.c ----------------------------------------------------------------------------- */

gp_status gp_cuda_prepare(gp_gpu *gpu, gp_op op, const gp_call *call, size_t *scratch);
gp_status gp_cuda_run(gp_gpu *gpu, gp_op op, const gp_gpu_call *call);
/* The functions of work.h, with the GPU made current. */
gp_status gp_cuda_check_finite(gp_gpu *gpu, const gp_arg *value, gp_gpu_fault *fault, uint32_t tag);
gp_status gp_cuda_settle(gp_gpu *gpu, const int64_t *counts, gp_step_block *blocks, int count);
gp_status gp_cuda_update(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                         const gp_optim_slice *slices, int count);
gp_status gp_cuda_add(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *to, const void *from);
gp_status gp_cuda_scale(gp_gpu *gpu, const gp_gpu_run *runs, int count, double factor);
gp_status gp_cuda_sum_squares(gp_gpu *gpu, const gp_gpu_run *runs, int count, double *sums,
                              void *scratch);

/* ---- graph.c ------------------------------------------------------------------------------- */

gp_status gp_cuda_capture_begin(gp_gpu *gpu);
gp_status gp_cuda_capture_end(gp_gpu *gpu, gp_gpu_graph **graph);
gp_status gp_cuda_launch(gp_gpu *gpu, gp_gpu_graph *graph);
void gp_cuda_graph_free(gp_gpu_graph *graph);
/* Leave a capture that will not be ended, or could not be: its work is lost. */
void gp_cuda_capture_drop(gp_gpu *gpu);

/* ---- libraries.c, paths.c ------------------------------------------------------------------ */

bool gp_cuda_library(int i, gp_gpu_library *library);
bool gp_cuda_path(const gp_gpu *gpu, int i, gp_work_path *path);
void gp_cuda_paths_close(gp_gpu *gpu); /* NULL in gpu->paths is fine */

/* ---- range.c ------------------------------------------------------------------------------- */

void gp_cuda_range_push(const char *name, int64_t payload);
void gp_cuda_range_pop(void);

#endif
