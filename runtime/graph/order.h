/* graph/order.h - the order in which the elements of a dense value lie in memory. */
#ifndef GP_GRAPH_ORDER_H
#define GP_GRAPH_ORDER_H

#include "graph/graph.h"

/* at[0] is the dimension with the longest steps, at[rank - 1] the one whose elements are adjacent;
 * row-major is 0, 1, .. Dimensions of size 1 could be anywhere: they come first, ascending, so that
 * equal orders have equal numbers. */
typedef struct gp_order {
  int rank;
  int8_t at[GP_MAX_RANK];
} gp_order;

/* The order of a value without gaps and repeated elements; false if it has any. */
bool gp_order_of(const gp_meta *meta, gp_order *order);
bool gp_order_equal(const gp_order *a, const gp_order *b);
/* Is a contiguous value of this shape in that order? */
bool gp_order_is_row_major(const gp_order *order, const gp_shape *shape);
gp_order gp_order_row_major(const gp_shape *shape);

/* The attributes of a permute that makes a value of this order row-major, and of the way back. */
gp_attrs gp_order_to_memory(const gp_order *order);
gp_attrs gp_order_from_memory(const gp_order *order);

/* For a view whose dimension d is dimension turn->at[d] of its input. before: the order that the
 * input must have for the view to have order `view`. behind: the order of the view if the input has
 * order `input`. shape: that of the value whose order is returned. */
gp_order gp_order_before(const gp_order *turn, const gp_order *view, const gp_shape *shape);
gp_order gp_order_behind(const gp_order *turn, const gp_order *input, const gp_shape *shape);

#endif
