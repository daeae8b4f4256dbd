/* device/cuda/nccl/wire.c - bytes from the GPU of one process to that of another, by NCCL.
 *
 * A wire is a communicator of two ranks that sends in one direction, on a stream of its own: rank 0
 * sends, rank 1 receives. Activations and gradients of a pair of GPUs have a wire each, so none
 * queues behind the other. NCCL matches sends and receives by their order, so both ends move the
 * same values in the same order; what is moved when is decided by device/link/ranks/queue/wire.c.
 *
 * The communicator never blocks the caller: calls that NCCL has not finished are asked for by
 * gp_cuda_wire_ready. It moves bytes and adds nothing: NCCL's sums depend on how many ranks there
 * are. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/nccl/library.h"
#include "device/cuda/table.h"

void gp_cuda_wire_note(gp_gpu *gpu, const char *name, const char *why) {
  gp_gpu_note_path(gpu, "link", name, why ? "by way of the host" : "NCCL", why);
}

#ifdef GP_HAS_NCCL

/* Blocks of a GPU that a transfer may keep while it waits for the other side. */
enum { LEAST_BLOCKS = 1, MOST_BLOCKS = 4 };

_Static_assert(GP_GPU_WIRE_ID == NCCL_UNIQUE_ID_BYTES, "an id of NCCL has another size");

struct gp_gpu_wire {
  gp_gpu *gpu; /* borrowed */
  const gp_nccl_library *library;
  cudaStream_t stream;
  ncclComm_t comm;
  pthread_mutex_t lock; /* an abort may come from any thread */
  bool sends, is_over;  /* is_over: aborted */
};

/* ---- errors ---------------------------------------------------------------------------------- */

static gp_status check(const gp_gpu_wire *w, ncclResult_t result, const char *doing) {
  char name[GP_CUDA_NAME];
  if (result == ncclSuccess || result == ncclInProgress) return GP_OK;
  const char *more = w->comm ? w->library->ncclGetLastError(w->comm) : NULL;
  return gp_gpu_fail(GP_EDEVICE, "%s: NCCL, %s: %s%s%s", gp_cuda_name(&w->gpu->spec, name), doing,
                     w->library->ncclGetErrorString(result), more && *more ? ": " : "",
                     more ? more : "");
}

static gp_status fail_over(const gp_gpu_wire *w) {
  char name[GP_CUDA_NAME];
  return gp_gpu_fail(GP_EDEVICE, "%s: NCCL: the communicator was aborted",
                     gp_cuda_name(&w->gpu->spec, name));
}

/* ---- life ------------------------------------------------------------------------------------ */

gp_status gp_cuda_wire_id(unsigned char id[GP_GPU_WIRE_ID]) {
  const char *why;
  ncclUniqueId made;
  const gp_nccl_library *library = gp_nccl_library_get(&why);
  if (!library) return gp_gpu_fail(GP_EUNSUPPORTED, "no NCCL: %s", why);
  const ncclResult_t result = library->ncclGetUniqueId(&made);
  if (result != ncclSuccess)
    return gp_gpu_fail(GP_EUNSUPPORTED, "NCCL: no id: %s", library->ncclGetErrorString(result));
  memcpy(id, made.internal, GP_GPU_WIRE_ID);
  return GP_OK;
}

static gp_status open_into(gp_gpu_wire *w, const unsigned char *id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId common;
  memcpy(common.internal, id, GP_GPU_WIRE_ID);
  config.blocking = 0;
  config.minCTAs = LEAST_BLOCKS;
  config.maxCTAs = MOST_BLOCKS;
  GP_GPU_TRY(gp_cuda_use(w->gpu));
  GP_GPU_TRY(gp_gpu_check(w->gpu, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking),
                          "making a stream"));
  return check(w,
               w->library->ncclCommInitRankConfig(&w->comm, 2, common, w->sends ? 0 : 1, &config),
               "making a communicator");
}

gp_status gp_cuda_wire_open(gp_gpu *gpu, const unsigned char id[GP_GPU_WIRE_ID], bool sends,
                            gp_gpu_wire **wire) {
  const char *why;
  const gp_nccl_library *library = gp_nccl_library_get(&why);
  if (!library) return gp_gpu_fail(GP_EUNSUPPORTED, "no NCCL: %s", why);
  gp_gpu_wire *made = calloc(1, sizeof *made);
  if (!made) return gp_gpu_fail(GP_ENOMEM, "NCCL: no memory on the host");
  *made = (gp_gpu_wire){.gpu = gpu, .library = library, .sends = sends};
  (void)pthread_mutex_init(&made->lock, NULL);
  gp_status status = open_into(made, id);
  if (status != GP_OK) {
    gp_cuda_wire_close(made);
    return status;
  }
  *wire = made;
  return GP_OK;
}

/* Transfers that wait for the other side end; the communicator is of no use afterwards. */
void gp_cuda_wire_abort(gp_gpu_wire *w) {
  (void)pthread_mutex_lock(&w->lock);
  if (w->comm) (void)w->library->ncclCommAbort(w->comm);
  w->comm = NULL;
  w->is_over = true;
  (void)pthread_mutex_unlock(&w->lock);
}

void gp_cuda_wire_close(gp_gpu_wire *w) {
  if (!w) return;
  (void)gp_cuda_switch(w->gpu->spec.ordinal);
  ncclResult_t state = ncclInProgress;
  if (w->comm) (void)w->library->ncclCommGetAsyncError(w->comm, &state);
  const bool is_done = w->stream && cudaStreamQuery(w->stream) == cudaSuccess;
  (void)cudaGetLastError();
  /* to destroy one that is not ready, or still waits for the other side, could wait for ever */
  if (w->comm && state == ncclSuccess && is_done) {
    (void)w->library->ncclCommDestroy(w->comm);
  } else if (w->comm) {
    (void)w->library->ncclCommAbort(w->comm);
  }
  if (w->stream) (void)cudaStreamDestroy(w->stream);
  (void)pthread_mutex_destroy(&w->lock);
  free(w);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static gp_status ask(gp_gpu_wire *w, bool *ready) {
  ncclResult_t state = ncclSuccess;
  if (w->is_over) return fail_over(w);
  GP_GPU_TRY(check(w, w->library->ncclCommGetAsyncError(w->comm, &state), "asking for errors"));
  *ready = state == ncclSuccess;
  return check(w, state, w->sends ? "sending" : "receiving");
}

gp_status gp_cuda_wire_ready(gp_gpu_wire *w, bool *ready) {
  GP_GPU_TRY(gp_cuda_use(w->gpu));
  (void)pthread_mutex_lock(&w->lock);
  const gp_status status = ask(w, ready);
  (void)pthread_mutex_unlock(&w->lock);
  return status;
}

static gp_status move(gp_gpu_wire *w, void *memory, size_t bytes) {
  if (w->is_over) return fail_over(w);
  const ncclResult_t result =
      w->sends ? w->library->ncclSend(memory, bytes, ncclUint8, 1, w->comm, w->stream)
               : w->library->ncclRecv(memory, bytes, ncclUint8, 0, w->comm, w->stream);
  return check(w, result, w->sends ? "sending" : "receiving");
}

gp_status gp_cuda_wire_move(gp_gpu_wire *w, gp_gpu_event *after, void *memory, size_t bytes) {
  GP_GPU_TRY(gp_cuda_use(w->gpu));
  if (after) GP_GPU_TRY(gp_cuda_wait_on(w->gpu, w->stream, after));
  (void)pthread_mutex_lock(&w->lock);
  const gp_status status = move(w, memory, bytes);
  (void)pthread_mutex_unlock(&w->lock);
  return status;
}

gp_status gp_cuda_wire_record(gp_gpu_wire *w, gp_gpu_event *event) {
  GP_GPU_TRY(gp_cuda_use(w->gpu));
  return gp_cuda_record_on(w->gpu, w->stream, event);
}

#else

static gp_status refuse(void) {
  const char *why;
  (void)gp_nccl_library_get(&why);
  return gp_gpu_fail(GP_EUNSUPPORTED, "no NCCL: %s", why);
}

gp_status gp_cuda_wire_id(unsigned char id[GP_GPU_WIRE_ID]) { return (void)id, refuse(); }
gp_status gp_cuda_wire_open(gp_gpu *gpu, const unsigned char id[GP_GPU_WIRE_ID], bool sends,
                            gp_gpu_wire **wire) {
  (void)gpu, (void)id, (void)sends, (void)wire;
  return refuse();
}
gp_status gp_cuda_wire_ready(gp_gpu_wire *w, bool *ready) { return (void)w, (void)ready, refuse(); }
gp_status gp_cuda_wire_move(gp_gpu_wire *w, gp_gpu_event *after, void *memory, size_t bytes) {
  (void)w, (void)after, (void)memory, (void)bytes;
  return refuse();
}
gp_status gp_cuda_wire_record(gp_gpu_wire *w, gp_gpu_event *e) {
  return (void)w, (void)e, refuse();
}
void gp_cuda_wire_abort(gp_gpu_wire *w) { (void)w; }
void gp_cuda_wire_close(gp_gpu_wire *w) { (void)w; }

#endif
