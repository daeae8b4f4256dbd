/* graph/param.c - parameters and buffers: drawn when first needed, then a view of the memory that
 * their owner gives them.
 *
 * A value depends on (seed, number) only, so a script may declare a model that no single machine
 * could hold: each stage draws its own parameters straight into its arena. */
#include "graph/param.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "base/tensor.h"

struct gp_param {
  _Atomic int references;
  gp_param_spec spec;
  gp_meta meta;
  gp_tensor *value, *grad; /* NULL until drawn; NULL without a gradient */
  const void *owner;       /* the pipeline that it belongs to */
  int32_t stage;           /* its stage in the owner */
  int32_t holder;          /* rank + 1 of the process that holds the value; 0: there is one */
  bool away;               /* that is another process */
};

/* Nothing is drawn yet: declaring a model needs no memory for values. */
gp_status gp_param_new(const gp_param_spec *spec, gp_param **param) {
  gp_param *made;
  gp_meta meta;
  const bool counts = spec->buffer && spec->dtype == GP_I64;
  if (!gp_dtype_is_float(spec->dtype) && !counts)
    return gp_fail(GP_EDTYPE, "parameter: dtype is %s, expected a float dtype%s",
                   gp_dtype_name(spec->dtype), spec->buffer ? ", or i64" : "");
  GP_TRY(gp_meta_make(spec->dtype, &spec->shape, &meta));
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->references = 1;
  made->spec = *spec;
  made->meta = meta;
  *param = made;
  return GP_OK;
}

gp_param *gp_param_retain(gp_param *param) {
  atomic_fetch_add(&param->references, 1);
  return param;
}

void gp_param_free(gp_param *param) {
  if (!param || atomic_fetch_sub(&param->references, 1) > 1) return;
  gp_tensor_free(param->value);
  gp_tensor_free(param->grad);
  gp_free(param);
}

const gp_meta *gp_param_meta(const gp_param *param) { return &param->meta; }
bool gp_param_is_buffer(const gp_param *param) { return param->spec.buffer; }
bool gp_param_is_frozen(const gp_param *param) { return param->spec.frozen; }
bool gp_param_is_borrowed(const gp_param *param) { return param->spec.borrowed; }

/* A parameter of a pipeline cannot change: gradients are laid out already. */
gp_status gp_param_set_frozen(gp_param *param, bool frozen) {
  if (param->owner && param->spec.frozen != frozen)
    return gp_fail(GP_ESTATE, "freeze: the parameter belongs to a pipeline; close it first");
  param->spec.frozen = frozen;
  return GP_OK;
}

/* The parameter's number selects the random stream, so adding one at the end changes no earlier
 * value. */
static gp_status draw(const gp_param *param, gp_tensor *to) {
  return gp_tensor_fill(to, &param->spec.init, param->spec.seed, param->spec.number);
}

gp_status gp_param_value(gp_param *param, gp_tensor **value) {
  if (param->away)
    return gp_fail(GP_ESTATE,
                   "parameter: its value is on rank %d, expected one of this rank "
                   "(pipe:state_dict() brings all of them)",
                   (int)param->holder - 1);
  if (!param->value) {
    gp_tensor *made;
    GP_TRY(gp_tensor_new(param->spec.dtype, &param->spec.shape, &made));
    gp_status status = draw(param, made);
    if (status) return gp_tensor_free(made), status;
    param->value = made;
  }
  *value = gp_tensor_retain(param->value);
  return GP_OK;
}

/* The old memory is freed with its last view. */
gp_status gp_param_move(gp_param *param, gp_tensor *to) {
  if (param->away)
    return gp_fail(GP_ESTATE,
                   "parameter: its value stayed on rank %d when a pipeline was closed, expected "
                   "it here",
                   (int)param->holder - 1);
  GP_TRY(param->value ? gp_tensor_copy(to, param->value) : draw(param, to));
  gp_tensor_free(param->value);
  param->value = gp_tensor_retain(to);
  return GP_OK;
}

void gp_param_share(gp_param *param, int32_t rank, bool here) {
  param->holder = rank + 1;
  param->away = !here;
  if (here) return;
  gp_tensor_free(param->value);
  param->value = NULL;
}

gp_status gp_param_bring(gp_param *param, const gp_tensor *from) {
  gp_tensor *made;
  GP_TRY(gp_tensor_new(param->spec.dtype, &param->spec.shape, &made));
  gp_status status = gp_tensor_copy(made, from);
  if (status) return gp_tensor_free(made), status;
  gp_tensor_free(param->value);
  param->value = made;
  param->away = false;
  return GP_OK;
}

int32_t gp_param_holder(const gp_param *param) { return param->holder - 1; }
int32_t gp_param_away(const gp_param *param) { return param->away ? param->holder - 1 : -1; }

void gp_param_hold(gp_param *param, gp_tensor *value) { param->value = gp_tensor_retain(value); }

bool gp_param_has_gradient(const gp_param *param) {
  return !param->spec.frozen && !param->spec.buffer && !param->owner;
}

void gp_param_clear_grad(gp_param *param) {
  if (!param->owner) gp_param_set_grad(param, NULL);
}

void gp_param_grad(const gp_param *param, gp_tensor **grad) {
  *grad = param->grad ? gp_tensor_retain(param->grad) : NULL;
}

void gp_param_set_grad(gp_param *param, gp_tensor *grad) {
  if (grad) gp_tensor_retain(grad);
  gp_tensor_free(param->grad);
  param->grad = grad;
}

/* The error addresses a user who made two pipelines of one model. */
gp_status gp_param_own(gp_param *param, const void *owner, int32_t stage) {
  if (owner && param->owner && param->owner != owner)
    return gp_fail(GP_ESTATE,
                   "gp.pipeline: the model belongs to a live pipeline, expected a free one: "
                   "close that pipeline first");
  param->owner = owner;
  param->stage = stage;
  return GP_OK;
}

const void *gp_param_owner(const gp_param *param) { return param->owner; }
int32_t gp_param_stage(const gp_param *param) { return param->stage; }
