/* gpipe/update.h - the rules of optimizers and their numbers. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_UPDATE_H
#define GP_PUBLIC_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gp_optim_kind {
  GP_OPTIM_SGD,
  GP_OPTIM_ADAM,
  GP_OPTIM_ADAMW,
  GP_OPTIM_RMSPROP,
  GP_OPTIM_ADAGRAD,
  GP_OPTIM_LION,
  GP_OPTIM_ADAMAX,
  GP_OPTIM_ADADELTA,
  GP_OPTIM_NADAM,
  GP_OPTIM_RADAM,
  GP_OPTIM_RPROP
} gp_optim_kind;
enum { GP_OPTIM_KINDS = GP_OPTIM_RPROP + 1 };

/* Most moments of one element: RMSprop, centered and with momentum, has three. */
enum { GP_OPTIM_MOMENTS = 3 };

/* Names and meaning as in torch.optim; what a kind does not use is ignored. RMSprop's alpha and
 * Adadelta's rho are both betas. */
typedef struct gp_optim_hyper {
  gp_optim_kind kind;
  double lr, weight_decay, momentum, beta1, beta2, eps;
  double lr_decay;       /* Adagrad: the rate is lr / (1 + lr_decay (step - 1)) */
  double momentum_decay; /* NAdam: its momentum is beta1 (1 - 0.96^(step momentum_decay) / 2) */
  double grow, shrink;   /* Rprop: what a step is multiplied by where the sign stays, and turns */
  double least, most;    /* Rprop: bounds of a step */
  double dampening;      /* SGD: what a gradient adds to the velocity is 1 minus this */
  int64_t since;         /* steps made before these parameters were added */
  bool nesterov, centered;
  bool amsgrad;   /* Adam, AdamW: divide by the greatest mean of squares so far */
  bool decoupled; /* NAdam, RAdam: weight decay shrinks values, as AdamW's */
} gp_optim_hyper;

#endif
