/* ops/cut.h - how ops are cut into units of work; the promise of GP_OP_ROWS in one place.
 *
 * Consecutive row-wise ops are run block by block while a block is in the cache. That needs all of
 * them to agree on what unit r is, from the shape of the output alone. Every cut depends on shapes
 * only, never on the number of threads, so that no bit does. */
#ifndef GP_OPS_CUT_H
#define GP_OPS_CUT_H

#include "ops/op.h"

/* Cut an op's CPU kernel into pieces of at least one unit. If no output has elements there is at
 * most one unit: a shape can have more empty rows than a loop could ever walk over. */
gp_cut gp_op_cut(const gp_op_def *def, const gp_call *call);

/* Count the units of a row-wise value: the product of the dims before the last. A value of
 * one dimension is one row; a long one counts as rows of about 256 elements, so that
 * threads can share it. */
int64_t gp_rows_count(const gp_meta *meta);
/* Find the elements [*first, *last) of a value of n elements that belong to units [span.first,
 * span.last) of units: r * n / units, without overflow. */
void gp_rows_elements(int64_t n, int64_t units, gp_span span, int64_t *first, int64_t *last);

/* Cut out[0] into blocks of rows: for ops that treat elements alone, so that a row may be cut
 * too. */
gp_cut gp_cut_rows(const gp_call *call);
/* Cut in[0] into blocks of rows: for ops that need a whole row at once (norms, products). */
gp_cut gp_cut_whole_rows(const gp_call *call);
/* Cut in[0] into pieces of 64 columns: every piece walks all rows, so sums over rows
 * keep one order. */
gp_cut gp_cut_columns(const gp_call *call);
/* Cut nothing: for a sum over everything in one order, or a scalar. */
gp_cut gp_cut_once(const gp_call *call);

#endif
