/* optim/rate.h - what a step's direction is multiplied by: one formula for CPUs and GPUs. */
#ifndef GP_OPTIM_RATE_H
#define GP_OPTIM_RATE_H

#include <math.h>
#include <stdint.h>

#include "gpipe/update.h"

/* The rate, corrected for Adam's start at zero or for the decay of Adagrad's rate. */
static inline double gp_optim_rate(const gp_optim_hyper *h, int64_t step) {
  if (h->kind == GP_OPTIM_ADAGRAD) return h->lr / (1.0 + (double)(step - 1) * h->lr_decay);
  return h->lr / (1.0 - pow(h->beta1, (double)step));
}

#endif
