/* optim/optim.h - fused optimizer updates over contiguous arenas of parameters, gradients, moments.
 *
 * Every function works on a range of one arena, element by element or in a fixed order, so the bits
 * depend neither on how a range is cut among threads nor on the width of the vectors. Nothing here
 * allocates. Arenas must not overlap one another. */
#ifndef GP_OPTIM_OPTIM_H
#define GP_OPTIM_OPTIM_H

#include "base/status.h"
#include "device/call.h"
#include "gpipe/update.h"

/* Count the moments that the rule reads per element. SGD: 1 if it has momentum. Adam and its kin,
 * Adadelta, Rprop: 2. Adam and AdamW with amsgrad: 3. Adagrad, Lion: 1. RMSprop: the mean of
 * squares, then the velocity if it has momentum, then the mean if it is centered. */
int gp_optim_moments(const gp_optim_hyper *hyper);

/* Update elements [first, last) of the slice; step counts from 1. Errors: GP_EDTYPE, GP_EINVAL
 * (broken hyper or missing moments), GP_ERANGE (range or step).
 * Source: the update rules of torch.optim (SGD, Adam, AdamW, RMSprop, Adagrad, Rprop ..), in the
 * order of operations of their single-tensor form; Lion: Chen et al. 2023, algorithm 2. */
gp_status gp_optim_update(const gp_optim_hyper *hyper, int64_t step, const gp_optim_slice *slice,
                          int64_t first, int64_t last);

/* Add the squares in double precision: lane i % 64 adds element i, then a tree adds the 64 lanes.
 * For a fixed result cut an arena at boundaries that depend on its layout only. */
double gp_optim_sum_squares(gp_dtype dtype, int64_t n, const void *data);
/* Tell whether every element is finite. */
bool gp_optim_is_finite(gp_dtype dtype, int64_t n, const void *data);
/* Multiply by a factor, in the elements' own precision. */
void gp_optim_scale(gp_dtype dtype, int64_t n, void *data, double factor);

#endif
