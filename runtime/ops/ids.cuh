/* ops/ids.cuh - class and token ids on a GPU: read in any integer dtype, checked one by one.
 *
 * A bad id cannot stop a kernel, and the context must stay alive. So the kernel leaves that row out
 * and lowers the fault's key to (tag, position): the first fault stays, whatever the order of the
 * threads. A kernel of one thread then notes which id that is, so that key and value agree. The
 * host writes the error text. */
#ifndef GP_OPS_IDS_CUH
#define GP_OPS_IDS_CUH

#include "device/cuda/kernel/meta.cuh"

struct gp_ids {
  const void *data;
  gp_dtype dtype;
  gp_strides at;
  int64_t count; /* ids are 0 .. count - 1 */
  bool has_ignore;
  int64_t ignore;
  gp_gpu_fault *fault;
  uint32_t tag;
};

/* The ids of input k of a call; none is ignored. */
static inline gp_ids gp_ids_of(const gp_gpu_call *call, int k, int64_t count) {
  const gp_arg *in = &call->op.in[k];
  return {in->data,    in->meta->dtype, gp_strides_of(in->meta, in->meta->shape.rank),
          count,       false,           0,
          call->fault, call->tag};
}

static __device__ inline int64_t gp_id_at(const gp_ids &ids, int64_t position) {
  return gp_get<int64_t>(ids.data, ids.dtype, gp_offset_of(ids.at, position));
}

/* Return the id, or -1 if it is ignored or out of range; `first`: this thread reports that. */
static __device__ inline int64_t gp_id_check(const gp_ids &ids, int64_t position, bool first) {
  const int64_t id = gp_id_at(ids, position);
  if (ids.has_ignore && id == ids.ignore) return -1;
  if (id >= 0 && id < ids.count) return id;
  if (first)
    atomicMin((unsigned long long *)&ids.fault->key,
              (unsigned long long)ids.tag << 32 | (uint32_t)position);
  return -1;
}

/* Note the id that the key stands for, if this application lowered the key. Runs on one thread. */
static __global__ void gp_ids_note(gp_ids ids) {
  const uint64_t key = ids.fault->key;
  if (key != GP_GPU_NO_FAULT && key >> 32 == ids.tag)
    ids.fault->value = gp_id_at(ids, (int64_t)(uint32_t)key);
}

/* Launch this after the kernel that checks. */
static inline gp_status gp_ids_finish(gp_gpu *gpu, const gp_ids &ids) {
  return GP_LAUNCH(gpu, gp_ids_note, 1, 1, 0, ids);
}

#endif
