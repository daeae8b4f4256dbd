/* tests/c/ops/op_call.h - one call of a kernel, by hand: shapes, operands, and running it in
 * pieces.
 *
 * Both kernel.h (op definitions alone) and op_support.h (ops through the eager layer) need it. */
#ifndef GP_TESTS_OP_CALL_H
#define GP_TESTS_OP_CALL_H

#include <stdlib.h>

#include "base/tensor.h"
#include "ops/op.h"
#include "test.h"

#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define SHAPE(...)                                                                                 \
  ((gp_shape){.rank = (int)(sizeof DIMS(__VA_ARGS__) / sizeof(int64_t)), .dim = {__VA_ARGS__}})
#define SCALAR ((gp_shape){0})

/* Makes a tensor of zeros that the caller frees. */
static inline gp_tensor *new_tensor(gp_dtype dtype, gp_shape shape) {
  gp_tensor *tensor = NULL;
  CHECK_STATUS(gp_tensor_new(dtype, &shape, &tensor), GP_OK);
  return tensor;
}

static inline gp_arg arg_of(gp_tensor *tensor) {
  return (gp_arg){gp_tensor_data(tensor), gp_tensor_meta(tensor)};
}

/* Binds the operands of a call whose n_in and n_out are set. */
static inline void bind_call(gp_call *call, gp_tensor *const *in, gp_tensor *const *out) {
  for (int i = 0; i < call->n_in; i++) call->in[i] = arg_of(in[i]);
  for (int k = 0; k < call->n_out; k++) call->out[k] = arg_of(out[k]);
}

/* Runs units [first, last), with scratch of NaN bytes, so that a kernel that reads what it has not
 * written is visible. */
static inline gp_status run_span(const gp_call *call, const gp_cpu_kernel *cpu, int64_t first,
                                 int64_t last) {
  size_t bytes = cpu->scratch ? cpu->scratch(call) : 0;
  gp_span span = {.first = first, .last = last};
  if (bytes > 0) {
    span.scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(span.scratch, 0xff, bytes);
  }
  gp_status status = cpu->run(call, span);
  free(span.scratch);
  return status;
}

/* Runs all units in pieces of `piece` (0: all at once), last piece first, because pieces may run in
 * any order. */
static inline gp_status run_pieces(const gp_call *call, const gp_cpu_kernel *cpu, int64_t piece) {
  int64_t units = cpu->cut(call).units;
  gp_status status = GP_OK;
  if (piece == 0) return run_span(call, cpu, 0, units);
  for (int64_t first = (units - 1) / piece * piece; first >= 0 && units > 0 && !status;
       first -= piece)
    status = run_span(call, cpu, first, first + piece < units ? first + piece : units);
  return status;
}

#endif
