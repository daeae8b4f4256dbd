/* base/median.c - the middle of measured figures. */
#include "base/median.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double gp_median(double *numbers, size_t count) {
  qsort(numbers, count, sizeof *numbers, ascending);
  return numbers[count / 2];
}
