/* gpipe/op.h - the ops by name, and running one at once. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_OP_H
#define GP_PUBLIC_OP_H

#include "gpipe/attrs.h"
#include "gpipe/tensor.h"

/* A value in a trace; GP_NONE is "no value". */
typedef int32_t gp_ref;
enum { GP_NONE = -1 };

enum { GP_MAX_INPUTS = 8, GP_MAX_OUTPUTS = 4 }; /* tensors that an op takes and makes */

#define GP_OP(name, ...) GP_OP_##name,
typedef enum gp_op {
#include "ops/rows.def"
  GP_OP_COUNT
} gp_op;
#undef GP_OP

const char *gp_op_name(gp_op op); /* "?" for none */
/* Errors: GP_EINVAL. */
gp_status gp_op_find(const char *name, gp_op *op);
/* Run an op at once, on the calling thread. outputs[GP_MAX_OUTPUTS] receives *n_outputs new
 * tensors; that of a view shares its input's storage. Errors: those of the op, after its name. */
gp_status gp_eager_apply(gp_op op, const gp_attrs *attrs, gp_tensor *const *inputs, int n_inputs,
                         gp_tensor **outputs, int *n_outputs);
/* Seed the random ops that the calling thread runs eagerly; each application of one
 * advances their clock. */
void gp_eager_seed(uint64_t seed);
/* The state of the calling thread's random ops. */
typedef struct gp_random_state {
  uint64_t seed;
  uint32_t clock;
} gp_random_state;
gp_random_state gp_eager_random(void);
/* Go back to a state: random ops then draw the same numbers as they did from there. */
void gp_eager_set_random(gp_random_state state);

#endif
