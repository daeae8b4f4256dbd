/* ops/shape/boxes.cuh - strided copies on a GPU, shared by what moves elements and does not
 * compute.
 *
 * copy, assign and concat are one of them or several; dropout uses it to make its input
 * contiguous. */
#ifndef GP_OPS_SHAPE_BOXES_CUH
#define GP_OPS_SHAPE_BOXES_CUH

#include "ops/math/bits.cuh"

/* to = from, which has its dtype and broadcasts to its shape. Neither need be contiguous. */
gp_status gp_move(gp_gpu *gpu, const gp_arg *to, const gp_arg *from);
/* to = 0, whatever the dtype. */
gp_status gp_clear(gp_gpu *gpu, const gp_arg *to);

/* Rows of one width that lie `stride` elements apart. */
gp_meta gp_rows_meta(gp_dtype dtype, int64_t rows, int64_t width, int64_t stride);

#endif
