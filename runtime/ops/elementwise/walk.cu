/* ops/elementwise/walk.cu - from shapes and strides to the units of a launch; see walk.cuh.
 *
 * Host code only. The merging is that of walk.c. */
#include "ops/elementwise/walk.cuh"

/* ---- merging dims -------------------------------------------------------------------------- */

/* Return the stride of an operand along dim d of the output; 0 if it is broadcast. */
static int64_t aligned_stride(const gp_meta *meta, int rank, int d) {
  const int own = d - (rank - meta->shape.rank);
  return own < 0 || meta->shape.dim[own] == 1 ? 0 : meta->stride[own];
}

/* Tell whether dim `size` with these strides can be one with the dim before it: in every operand, a
 * step of that dim is `size` steps of this one. */
static bool merges(const gp_walk *w, int64_t size, const int64_t *stride) {
  if (w->rank == 0) return false;
  for (int k = 0; k < w->operands; k++)
    if (w->stride[w->rank - 1][k] != size * stride[k]) return false;
  return true;
}

/* Add a dim behind the others, merged into the last one if that is possible. */
static void append_dim(gp_walk *w, int64_t size, const int64_t *stride) {
  const bool merged = merges(w, size, stride);
  const int d = merged ? w->rank - 1 : w->rank++;
  w->dim[d] = merged ? w->dim[d] * size : size;
  for (int k = 0; k < w->operands; k++) w->stride[d][k] = stride[k];
}

/* ---- units --------------------------------------------------------------------------------- */

/* Tell whether operand k can give `lanes` neighbours of the last dim by one access: they are the
 * same element, or lie side by side, aligned in every row. */
static bool gives_lanes(const gp_walk *w, int k, int lanes) {
  const int64_t step = w->stride[w->rank - 1][k];
  if (step == 0 && k > 0) return true;
  if (step != 1) return false;
  if ((uintptr_t)w->data[k] % (uintptr_t)(lanes * w->size[k]) != 0) return false;
  for (int d = 0; d < w->rank - 1; d++)
    if (w->stride[d][k] % lanes != 0) return false;
  return true;
}

static int choose_lanes(const gp_walk *w, int lanes) {
  for (int k = 0; k < w->operands; k++)
    if (!gives_lanes(w, k, lanes)) return 1;
  return lanes;
}

gp_walk gp_walk_make(const gp_arg *const *args, const int *sizes, int operands, int lanes) {
  static const int64_t alone[GP_WALK_OPERANDS] = {1, 1, 1, 1};
  const gp_shape *shape = &args[0]->meta->shape;
  gp_walk w = {};
  w.operands = operands;
  for (int k = 0; k < operands; k++) {
    w.data[k] = (char *)args[k]->data;
    w.size[k] = sizes[k];
  }
  for (int d = 0; d < shape->rank; d++) {
    if (shape->dim[d] == 1) continue;
    int64_t stride[GP_WALK_OPERANDS] = {};
    for (int k = 0; k < operands; k++) stride[k] = aligned_stride(args[k]->meta, shape->rank, d);
    append_dim(&w, shape->dim[d], stride);
  }
  if (w.rank == 0) append_dim(&w, 1, alone);
  w.lanes = choose_lanes(&w, lanes);
  return w;
}

/* Count the units along dim d. */
static int64_t units_of(const gp_walk *w, int d) {
  return d < w->rank - 1 ? w->dim[d] : (w->dim[d] + w->lanes - 1) / w->lanes;
}

int64_t gp_walk_units(const gp_walk *walk) {
  int64_t units = 1;
  for (int d = 0; d < walk->rank; d++) units *= units_of(walk, d);
  return units;
}

/* Halve along the longest dim. */
gp_walk gp_walk_halve(gp_walk *walk) {
  int longest = 0;
  for (int d = 1; d < walk->rank; d++)
    if (units_of(walk, d) > units_of(walk, longest)) longest = d;
  int64_t half = units_of(walk, longest) / 2;
  if (longest == walk->rank - 1) half *= walk->lanes;
  gp_walk rest = *walk;
  walk->dim[longest] = half;
  rest.dim[longest] -= half;
  for (int k = 0; k < rest.operands; k++)
    rest.data[k] += half * rest.stride[longest][k] * rest.size[k];
  return rest;
}

/* ---- what a kernel gets -------------------------------------------------------------------- */

gp_grid gp_grid_make(const gp_walk *walk) {
  gp_grid g = {};
  g.rank = walk->rank, g.lanes = walk->lanes;
  g.units = (uint32_t)gp_walk_units(walk);
  g.last = walk->dim[walk->rank - 1];
  for (int d = 0; d < walk->rank; d++) {
    const int64_t lanes = d == walk->rank - 1 ? walk->lanes : 1;
    g.dim[d] = gp_divisor_make((uint32_t)units_of(walk, d));
    for (int k = 0; k < walk->operands; k++) g.stride[d][k] = walk->stride[d][k] * lanes;
  }
  for (int k = 0; k < walk->operands; k++) {
    g.step[k] = walk->stride[walk->rank - 1][k];
    g.data[k] = walk->data[k];
  }
  return g;
}
