/* ops/norm/rows.cuh - the choice between two kernels for rows: a warp per short row, or a
 * block per long one. */
#ifndef GP_OPS_NORM_ROWS_CUH
#define GP_OPS_NORM_ROWS_CUH

#include "ops/long_rows.cuh"
#include "ops/short_rows.cuh"

/* Return from a launcher of T with the status of SHORT<T, E>(a) or LONG<T>(a, keep), which keeps so
 * many rows in shared memory if they fit. The width alone chooses, so that bits do not depend on
 * how many rows a micro-batch has. */
#define GP_LAUNCH_ROWS(gpu, a, SHORT, LONG, kept_rows)                                             \
  if (a.rows == 0) return GP_OK;                                                                   \
  if (a.n <= GP_SHORT_ROW)                                                                         \
    GP_BY_SHORT(                                                                                   \
        a.n, return GP_LAUNCH(gpu, (SHORT<T, E>), gp_short_grid(a.rows), gp_short_block(), 0, a)); \
  const size_t shared = gp_long_shared(a.n, sizeof(T), kept_rows);                                 \
  return GP_LAUNCH(gpu, LONG<T>, dim3((unsigned)a.rows), gp_long_threads(a.n, sizeof(T)), shared,  \
                   a, shared > 0);

#endif
