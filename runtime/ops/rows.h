/* ops/rows.h - how row-wise ops are cut; the promise of GP_OP_ROWS in one place.
 *
 * Consecutive row-wise ops are run block by block while a block is in the cache. That needs all of
 * them to agree on what unit r is, from the shape of the output alone. */
#ifndef GP_OPS_ROWS_H
#define GP_OPS_ROWS_H

#include "ops/op.h"

/* Units of a row-wise value: the product of the dims before the last. A value of one dimension is
 * one row; a long one is taken as rows of about 256 elements, so that it can be shared too. */
int64_t gp_rows_count(const gp_meta *meta);
/* (gp_rows_count of out[0], GP_ROW_BLOCK): the cut of row-wise ops. */
gp_cut gp_rows_cut(const gp_call *call);
/* Elements [*first, *last) of a value of n elements that belong to units [span.first, span.last)
 * of units: r * n / units, without overflow. */
void gp_rows_elements(int64_t n, int64_t units, gp_span span, int64_t *first, int64_t *last);

#endif
