/* ops/elementwise/walk.cuh - how the elements of several operands lie, made for a kernel to follow.
 *
 * As on the CPU, dims of size 1 are dropped and dims that lie one behind the other in every operand
 * are merged: contiguous operands are one long dim, a bias under rows is two. The last dim is cut
 * into units of `lanes` elements, and a thread handles a unit at a time; lanes is 1 if some operand
 * cannot be accessed by so many at once. Indices of a unit come from multiplications instead of
 * divisions, which needs less than 2^31 units in a launch: a larger walk is halved.
 *
 * Operand 0 is the output; the others broadcast to its shape. */
#ifndef GP_OPS_ELEMENTWISE_WALK_CUH
#define GP_OPS_ELEMENTWISE_WALK_CUH

#include "device/cuda/kernel/divisor.cuh"

enum { GP_WALK_OPERANDS = 4 };

#ifndef GP_WALK_MOST /* a test makes it small */
#define GP_WALK_MOST INT32_MAX
#endif

/* ---- on the host --------------------------------------------------------------------------- */

typedef struct gp_walk {
  int operands, rank, lanes;                     /* rank is at least 1 */
  int64_t dim[GP_MAX_RANK];                      /* elements */
  int64_t stride[GP_MAX_RANK][GP_WALK_OPERANDS]; /* elements */
  char *data[GP_WALK_OPERANDS];
  int size[GP_WALK_OPERANDS]; /* bytes of an element */
} gp_walk;

/* Make the walk over args[operands], whose elements have these sizes; `lanes` is what
 * units should have. */
gp_walk gp_walk_make(const gp_arg *const *args, const int *sizes, int operands, int lanes);
int64_t gp_walk_units(const gp_walk *walk); /* 0 where there are no elements */
/* Cut a walk of more than one unit down to its first half; return the second one. */
gp_walk gp_walk_halve(gp_walk *walk);

/* ---- in the kernel ------------------------------------------------------------------------- */

/* A walk as it is passed to a kernel, by value. */
typedef struct gp_grid {
  int rank, lanes;
  uint32_t units;
  int64_t last;                                  /* elements of the last dim */
  gp_divisor dim[GP_MAX_RANK];                   /* units */
  int64_t stride[GP_MAX_RANK][GP_WALK_OPERANDS]; /* elements from unit to unit */
  int64_t step[GP_WALK_OPERANDS];                /* elements from lane to lane */
  void *data[GP_WALK_OPERANDS];
} gp_grid;

/* Make the grid of a walk of at most GP_WALK_MOST units. */
gp_grid gp_grid_make(const gp_walk *walk);

/* at[k] receives the position of a unit's first element in operand k. Return its lanes: fewer than
 * those of the grid at the end of the last dim. */
template <int OPERANDS>
static __device__ inline int gp_grid_locate(const gp_grid &grid, uint32_t unit,
                                            int64_t (&at)[OPERANDS]) {
  for (int k = 0; k < OPERANDS; k++) at[k] = 0;
  uint32_t last = unit;
#pragma unroll 1
  for (int d = grid.rank - 1; d > 0; d--) {
    const uint32_t before = gp_divide(unit, grid.dim[d]), index = unit - before * grid.dim[d].by;
    for (int k = 0; k < OPERANDS; k++) at[k] += index * grid.stride[d][k];
    if (d == grid.rank - 1) last = index;
    unit = before;
  }
  for (int k = 0; k < OPERANDS; k++) at[k] += unit * grid.stride[0][k];
  const int64_t left = grid.last - (int64_t)last * grid.lanes;
  return left < grid.lanes ? (int)left : grid.lanes;
}

#endif
