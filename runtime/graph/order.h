/* graph/order.h - the order in which the elements of a dense value lie, and what it costs to meet
 * another one. */
#ifndef GP_GRAPH_ORDER_H
#define GP_GRAPH_ORDER_H

#include "graph/graph.h"

/* at[0] is the dimension with the longest steps, at[rank - 1] the one whose elements lie side by
 * side; row-major is 0, 1, .. Dimensions of size 1 lie anywhere: they stand in front, ascending, so
 * that equal orders have equal numbers. */
typedef struct gp_order {
  int rank;
  int8_t at[GP_MAX_RANK];
} gp_order;

/* The order of a value without gaps and repeated elements; false where it has some. */
bool gp_order_of(const gp_meta *meta, gp_order *order);
bool gp_order_equal(const gp_order *a, const gp_order *b);
/* Is a contiguous value of the shape in that order? */
bool gp_order_is_row_major(const gp_order *order, const gp_shape *shape);
gp_order gp_order_row_major(const gp_shape *shape);

/* The attributes of a permute that shows a value of the order row-major, and of the way back. */
gp_attrs gp_order_to_memory(const gp_order *order);
gp_attrs gp_order_from_memory(const gp_order *order);

/* A view whose dimension d is dimension turn->at[d] of its input: the order that the input has to
 * have for the view to have this one, and the order of the view where the input has it. shape: of
 * the one that is asked for. */
gp_order gp_order_before(const gp_order *turn, const gp_order *view, const gp_shape *shape);
gp_order gp_order_behind(const gp_order *turn, const gp_order *input, const gp_shape *shape);

#endif
