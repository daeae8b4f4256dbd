/* base/numbers/convert.h - a line of elements from one dtype into another: the innermost
 * loop of copies. */
#ifndef GP_BASE_NUMBERS_CONVERT_H
#define GP_BASE_NUMBERS_CONVERT_H

#include "base/status.h"
#include "gpipe/tensor.h"

typedef struct gp_line {
  void *data;     /* address of the first element */
  int64_t stride; /* elements */
  gp_dtype dtype;
} gp_line;

/* Convert n elements. Equal dtypes keep every bit. Floats become integers by truncation, saturated,
 * NaN gives 0; integers narrow modulo 2^bits; anything but 0 is true. Narrowing to a float rounds
 * once, to nearest even. */
void gp_convert(gp_line to, gp_line from, int64_t n);

#endif
