/* ops/convolution/walk/conv_call.c - see conv_call.h. */
#include "ops/convolution/walk/conv_call.h"

#include "base/tensor.h"

enum { PIECES = 8 }; /* pieces of a call, if each has to pack the weight for itself */

/* Describe a call. The weight is that of the call if it is packed, else NULL until gp_conv_run
 * has packed it. */
static gp_conv_job job_of(const gp_call *call, bool transposed) {
  const bool packed = transposed ? call->attr->conv_transpose2d.packed.rank > 0
                                 : call->attr->conv2d.packed.rank > 0;
  return (gp_conv_job){.c = transposed ? gp_conv_transposed(call) : gp_conv_forward(call),
                       .dtype = call->out[0].meta->dtype,
                       .transposed = transposed,
                       .source = call->in[0].data,
                       .weight = packed ? call->in[1].data : NULL,
                       .bias = call->n_in == 3 ? call->in[2].data : NULL,
                       .result = call->out[0].data};
}

/* Tell packed weights by their meta: calls that are only cut have no addresses. */
static bool is_packed(const gp_call *call) { return call->in[1].meta->dtype == GP_U8; }

gp_cut gp_conv_cut(const gp_call *call, bool transposed) {
  const gp_conv_job job = job_of(call, transposed);
  const int64_t blocks = gp_conv_blocks(&job);
  return (gp_cut){blocks, is_packed(call) ? 1 : (blocks + PIECES - 1) / PIECES};
}

static size_t align_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Return the scratch of a block, and behind it that of a weight that is not packed yet. */
size_t gp_conv_call_scratch(const gp_call *call, bool transposed) {
  const gp_conv_job job = job_of(call, transposed);
  const size_t bytes = align_up(gp_conv_scratch(&job));
  return is_packed(call) ? bytes : bytes + gp_meta_bytes(call->in[1].meta);
}

gp_status gp_conv_run(const gp_call *call, bool transposed, gp_span span) {
  gp_conv_job job = job_of(call, transposed);
  if (!job.weight && span.first < span.last) {
    const gp_shape *w = &call->in[1].meta->shape;
    void *packed = (char *)span.scratch + align_up(gp_conv_scratch(&job));
    const int64_t rows = w->dim[2] * w->dim[3] * w->dim[job.transposed ? 0 : 1];
    gp_conv_pack(w, job.transposed, job.dtype, call->in[1].data, packed, (gp_span){.last = rows});
    job.weight = packed;
  }
  for (int64_t unit = span.first; unit < span.last; unit++)
    GP_TRY(gp_conv_run_block(&job, unit, span.scratch));
  return GP_OK;
}
