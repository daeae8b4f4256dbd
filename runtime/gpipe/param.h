/* gpipe/param.h - parameters and buffers of a model. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_PARAM_H
#define GP_PUBLIC_PARAM_H

#include "gpipe/random.h"

/* A parameter or buffer of a model: its first value is drawn from (seed, number) when it is first
 * needed. Reference-counted; a pipeline moves the value into the arena of its stage. */
typedef struct gp_param gp_param;

typedef struct gp_param_spec {
  gp_dtype dtype; /* float */
  gp_shape shape;
  gp_init init;
  uint64_t seed, number; /* number: how many parameters were declared before it */
  bool buffer;           /* state without gradient, written by `assign` in forward */
  bool frozen;           /* no gradient and no moments */
  bool borrowed;         /* it stands for a tensor of the script: gp_leaf_new */
} gp_param_spec;

/* Declare one; nothing is drawn yet. Errors: GP_EDTYPE, GP_ESHAPE. */
gp_status gp_param_new(const gp_param_spec *spec, gp_param **param);
gp_param *gp_param_retain(gp_param *param);
void gp_param_free(gp_param *param);
const gp_meta *gp_param_meta(const gp_param *param);
bool gp_param_is_buffer(const gp_param *param);
bool gp_param_is_frozen(const gp_param *param);
bool gp_param_is_borrowed(const gp_param *param);
/* Errors: GP_ESTATE while a pipeline owns it. */
gp_status gp_param_set_frozen(gp_param *param, bool frozen);
/* Return the current value, drawn if it does not exist yet; receives a new reference. It shows
 * later updates until a pipeline takes the parameter and moves its value. */
gp_status gp_param_value(gp_param *param, gp_tensor **value);
/* The rank that holds the value; -1 if no pipeline over ranks has had the parameter. */
int32_t gp_param_holder(const gp_param *param);
/* The same if that is another process; else -1. */
int32_t gp_param_away(const gp_param *param);
/* Take a copy of the value that another rank holds. From then on it is here as well, until the next
 * pipeline notes who holds it. Errors: GP_ENOMEM, a tensor of another shape. */
gp_status gp_param_bring(gp_param *param, const gp_tensor *from);
/* Return the gradient of the last step; receives a new reference, or NULL if there is none. */
void gp_param_grad(const gp_param *param, gp_tensor **grad);
/* Drop the gradient, unless the parameter is in a pipeline. */
void gp_param_clear_grad(gp_param *param);
/* Tell whether eager ops record their history for its gradient: it is neither frozen nor a buffer,
 * and in no pipeline. */
bool gp_param_has_gradient(const gp_param *param);

#endif
