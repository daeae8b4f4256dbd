/* ops/elements.h - how elements of a micro-batch are numbered for random numbers, on every device.
 *
 * A random word is a function of (seed, step, number of the op, element). Where the first dimension
 * carries the rows of the micro-batch, elements are numbered through the whole mini-batch, so that
 * the words do not depend on how it is split. Where it does not, there is no such number: (first
 * row, local index) still gives every micro-batch words of its own. */
#ifndef GP_OPS_ELEMENTS_H
#define GP_OPS_ELEMENTS_H

#include "base/on_device.h"
#include "device/call.h"

/* Bits for the local index, which leave 2^24 rows: more elements than a value can have. */
enum { GP_LOCAL_BITS = 40 };

/* Return the number of element 0 of a value of n elements whose first dimension is `leading` (1
 * for a scalar). */
static GP_ON_DEVICE inline uint64_t gp_first_element(const gp_step_block *step, int64_t leading,
                                                     int64_t n) {
  if (step->rows > 0 && leading % step->rows == 0)
    return (uint64_t)step->first_row * (uint64_t)(n / step->rows);
  return (uint64_t)step->first_row << GP_LOCAL_BITS;
}

#endif
