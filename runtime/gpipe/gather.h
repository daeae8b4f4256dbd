/* gpipe/gather.h - batches out of data in memory. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_GATHER_H
#define GP_PUBLIC_GATHER_H

#include "gpipe/tensor.h"

/* Copy rows of a contiguous tensor in the order of `positions`. Shapes: tensor [N, ..], positions
 * i64 [n] (0-based), rows [n, ..]. Errors: GP_ESHAPE; GP_ERANGE for a position. */
gp_status gp_data_rows(const gp_tensor *tensor, const gp_tensor *positions, gp_tensor **rows);
/* Cut windows of context + 1 ids. Each id is `width` bytes (1, 2 or 4), the lowest first. Shapes:
 * bytes u8 [size], a multiple of width; starts i64 [n] (0-based, in ids); x i64 [n, context]
 * receives the first `context` ids of each, y the last ones. Errors: GP_ESHAPE; GP_ERANGE for
 * width, context or a start. */
gp_status gp_data_windows(const gp_tensor *bytes, int width, const gp_tensor *starts,
                          int64_t context, gp_tensor **x, gp_tensor **y);
/* Put contiguous u8 tensors one after the other into one dimension. Errors: GP_EDTYPE. */
gp_status gp_data_join(gp_tensor *const *parts, size_t count, gp_tensor **joined);

#endif
