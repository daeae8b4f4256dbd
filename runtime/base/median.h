/* base/median.h - the middle of measured figures. */
#ifndef GP_BASE_MEDIAN_H
#define GP_BASE_MEDIAN_H

#include <stddef.h>

/* The median of one number or more, in the middle of what it sorts; of an even count the upper
 * one. */
double gp_median(double *numbers, size_t count);

#endif
