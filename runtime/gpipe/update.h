/* gpipe/update.h - the rules of optimizers and their numbers. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_UPDATE_H
#define GP_PUBLIC_UPDATE_H

#include <stdbool.h>

typedef enum gp_optim_kind {
  GP_OPTIM_SGD,
  GP_OPTIM_ADAM,
  GP_OPTIM_ADAMW,
  GP_OPTIM_RMSPROP,
  GP_OPTIM_ADAGRAD,
  GP_OPTIM_LION
} gp_optim_kind;
enum { GP_OPTIM_KINDS = GP_OPTIM_LION + 1 };

/* Moments of one element at most: those of RMSprop that is centered and has momentum. */
enum { GP_OPTIM_MOMENTS = 3 };

/* Names and meaning as in torch.optim; what a kind does not use is ignored. RMSprop's alpha is both
 * betas. */
typedef struct gp_optim_hyper {
  gp_optim_kind kind;
  double lr, weight_decay, momentum, beta1, beta2, eps;
  double lr_decay; /* Adagrad: the rate is lr / (1 + lr_decay (step - 1)) */
  bool nesterov, centered;
} gp_optim_hyper;

#endif
