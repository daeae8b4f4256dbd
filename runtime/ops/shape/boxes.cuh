/* ops/shape/boxes.cuh - strided copies on a GPU, for ops that move elements and do not compute.
 *
 * copy, assign and concat are one such copy or several; dropout uses it to make its
 * input contiguous. */
#ifndef GP_OPS_SHAPE_BOXES_CUH
#define GP_OPS_SHAPE_BOXES_CUH

#include "ops/math/bits.cuh"

/* Copy `from`, which has the dtype of `to` and broadcasts to its shape. Neither need
 * be contiguous. */
gp_status gp_move(gp_gpu *gpu, const gp_arg *to, const gp_arg *from);
/* Zero `to`, whatever its dtype. */
gp_status gp_clear(gp_gpu *gpu, const gp_arg *to);

/* Return the meta of rows of one width that lie `stride` elements apart. */
gp_meta gp_rows_meta(gp_dtype dtype, int64_t rows, int64_t width, int64_t stride);

#endif
