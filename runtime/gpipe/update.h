/* gpipe/update.h - the rules of optimizers and their numbers. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_UPDATE_H
#define GP_PUBLIC_UPDATE_H

#include <stdbool.h>

typedef enum gp_optim_kind { GP_OPTIM_SGD, GP_OPTIM_ADAM, GP_OPTIM_ADAMW } gp_optim_kind;

/* Names and meaning as in torch.optim; what a kind does not use is ignored. */
typedef struct gp_optim_hyper {
  gp_optim_kind kind;
  double lr, weight_decay, momentum, beta1, beta2, eps;
  bool nesterov;
} gp_optim_hyper;

#endif
