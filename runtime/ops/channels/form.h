/* ops/channels/form.h - what tells the ops that normalise channels apart, so that one set of loops
 * serves them all: alone (channel_norm.c), or with a ReLU and a sum behind the norm
 * (channel_norm_relu.c). */
#ifndef GP_OPS_CHANNELS_FORM_H
#define GP_OPS_CHANNELS_FORM_H

#include "device/call.h"
#include "ops/channels/channels.h"

typedef struct gp_norm_form {
  double eps;
  bool given; /* gradients: the statistics are constants */
  bool relu;  /* y = max(.., 0); gradients: that of y, whose sign is computed again from x */
  /* Numbers of operands; 0: there is none. The variance follows the mean. */
  int image, mean, sums, weight, bias, addend;
  int gate, second; /* y, whose sign decides which gradients pass; a summand of the gradient */
} gp_norm_form;

/* The data of an operand; NULL if the op has none or the call leaves it out. */
static inline const void *gp_norm_data(const gp_call *call, int operand) {
  return operand > 0 && operand < call->n_in ? call->in[operand].data : NULL;
}

#endif
