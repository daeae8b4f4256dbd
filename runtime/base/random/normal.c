/* base/random/normal.c - pairs of normals in a loop without branches: it becomes vector code. */
#include "base/random/normal.h"

#include "base/random/random.h"

void gp_normal_pairs(int64_t pairs, const double *u, const double *v, double *even, double *odd) {
  for (int64_t i = 0; i < pairs; i++) gp_normal_pair(u[i], v[i], &even[i], &odd[i]);
}
