/* graph/order.c - see order.h.
 *
 * An order is computed from the strides and never stored beside them: a meta says all of it. Every
 * result is in a normal form, so that two orders of one shape are equal exactly if memory is. */
#include "graph/order.h"

#include <string.h>

#include "base/tensor.h"

/* Put an order into normal form: dimensions of size 1 go to the front; the others keep their
 * order. */
static gp_order settle(const gp_order *order, const gp_shape *shape) {
  gp_order settled = {.rank = order->rank};
  int n = 0;
  for (int d = 0; d < shape->rank; d++)
    if (shape->dim[d] == 1) settled.at[n++] = (int8_t)d;
  for (int i = 0; i < order->rank; i++)
    if (shape->dim[order->at[i]] != 1) settled.at[n++] = order->at[i];
  return settled;
}

gp_order gp_order_row_major(const gp_shape *shape) {
  gp_order order = {.rank = shape->rank};
  for (int d = 0; d < shape->rank; d++) order.at[d] = (int8_t)d;
  return settle(&order, shape);
}

/* Sort the longest steps first, by insertion, because ranks are small. */
bool gp_order_of(const gp_meta *meta, gp_order *order) {
  const gp_shape *shape = &meta->shape;
  gp_order found = {.rank = shape->rank};
  for (int d = 0; d < shape->rank; d++) {
    int i = d;
    for (; i > 0 && meta->stride[found.at[i - 1]] < meta->stride[d]; i--)
      found.at[i] = found.at[i - 1];
    found.at[i] = (int8_t)d;
  }
  *order = settle(&found, shape);
  int64_t step = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    int d = order->at[i];
    if (shape->dim[d] != 1 && meta->stride[d] != step) return false;
    step *= shape->dim[d];
  }
  return step > 0;
}

bool gp_order_equal(const gp_order *a, const gp_order *b) {
  return a->rank == b->rank && !memcmp(a->at, b->at, (size_t)a->rank);
}

bool gp_order_is_row_major(const gp_order *order, const gp_shape *shape) {
  gp_order plain = gp_order_row_major(shape);
  return gp_order_equal(order, &plain);
}

/* ---- permutations --------------------------------------------------------------------------- */

gp_attrs gp_order_to_memory(const gp_order *order) {
  gp_attrs attrs = {.permute = {.order = {.count = order->rank}}};
  for (int i = 0; i < order->rank; i++) attrs.permute.order.at[i] = order->at[i];
  return attrs;
}

gp_attrs gp_order_from_memory(const gp_order *order) {
  gp_attrs attrs = {.permute = {.order = {.count = order->rank}}};
  for (int i = 0; i < order->rank; i++) attrs.permute.order.at[order->at[i]] = i;
  return attrs;
}

/* turn[d] names the dimension that dimension d of the view comes from: follow it back to the
 * dimensions of the input. */
gp_order gp_order_before(const gp_order *turn, const gp_order *view, const gp_shape *shape) {
  gp_order order = {.rank = view->rank};
  for (int i = 0; i < view->rank; i++) order.at[i] = turn->at[view->at[i]];
  return settle(&order, shape);
}

/* The other direction: number the input's dimensions as the turned result does. */
gp_order gp_order_behind(const gp_order *turn, const gp_order *input, const gp_shape *shape) {
  gp_order order = {.rank = input->rank};
  int8_t behind[GP_MAX_RANK];
  for (int d = 0; d < input->rank; d++) behind[turn->at[d]] = (int8_t)d;
  for (int i = 0; i < input->rank; i++) order.at[i] = behind[input->at[i]];
  return settle(&order, shape);
}
