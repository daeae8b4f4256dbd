/* optim/rate.h - the factors of a step's direction: one formula for CPUs and GPUs. */
#ifndef GP_OPTIM_RATE_H
#define GP_OPTIM_RATE_H

#include <math.h>
#include <stdint.h>

#include "gpipe/update.h"

/* Return NAdam's momentum of a step. */
static inline double gp_optim_momentum_at(const gp_optim_hyper *h, int64_t step) {
  return h->beta1 * (1.0 - 0.5 * pow(0.96, (double)step * h->momentum_decay));
}

/* Return 1 minus the product of the momenta of all steps so far; stop where the product is below
 * the rounding of 1. */
static inline double gp_optim_momentum_left(const gp_optim_hyper *h, int64_t step) {
  double product = 1;
  for (int64_t i = 1; i <= step && product > 1e-18; i++) product *= gp_optim_momentum_at(h, i);
  return 1.0 - product;
}

/* Return what NAdam multiplies the gradient by, beside the mean of gradients; 0 for other rules. */
static inline double gp_optim_lead(const gp_optim_hyper *h, int64_t step) {
  if (h->kind != GP_OPTIM_NADAM) return 0;
  return h->lr * (1.0 - gp_optim_momentum_at(h, step)) / gp_optim_momentum_left(h, step);
}

/* Return RAdam's rectification of step `step`: how far its mean of squares can be trusted; 0 if it
 * rests on too few squares to divide by. Source: Liu et al. 2020, algorithm 2. */
static inline double gp_optim_rectified(const gp_optim_hyper *h, int64_t step) {
  const double power = pow(h->beta2, (double)step), most = 2.0 / (1.0 - h->beta2) - 1.0;
  const double now = most - 2.0 * (double)step * power / (1.0 - power);
  if (h->kind != GP_OPTIM_RADAM || now <= 5.0) return 0;
  return sqrt((now - 4.0) * (now - 2.0) * most / ((most - 4.0) * (most - 2.0) * now));
}

/* Return the rate, corrected for Adam's start at zero or for the decay of Adagrad's rate. */
static inline double gp_optim_rate(const gp_optim_hyper *h, int64_t step) {
  if (h->kind == GP_OPTIM_NADAM)
    return h->lr * gp_optim_momentum_at(h, step + 1) / gp_optim_momentum_left(h, step + 1);
  if (h->kind == GP_OPTIM_ADAGRAD) return h->lr / (1.0 + (double)(step - 1) * h->lr_decay);
  return h->lr / (1.0 - pow(h->beta1, (double)step));
}

#endif
