/* ops/ids.h - class and token ids as kernels read them: any integer dtype, checked one by one.
 *
 * Ids are data, so a bad one is found only when it is read, by the kernel that would use it as an
 * index; the text then names the row of the whole mini-batch, which is what a script can look
 * up. */
#ifndef GP_OPS_IDS_H
#define GP_OPS_IDS_H

#include "ops/op.h"

/* Return where element `index` (row-major) of a strided or broadcast value lies, in elements from
 * its element 0. */
int64_t gp_meta_offset(const gp_meta *meta, int64_t index);
/* Read the id that lies `offset` elements from the first, whatever the integer dtype. */
int64_t gp_id_at(const gp_arg *ids, int64_t offset);
/* Fail with "<what> <id> at row R, position P is outside 0..count-1"; R and P count from 1, R in
 * the whole mini-batch. Ids of rank 1 are one a row: the position alone is printed then.
 * Errors: GP_ERANGE, always. */
gp_status gp_id_fail(const gp_call *call, const gp_ids_role *role, int64_t index);
/* The same for an id that a kernel on a GPU has found: `id` at this index. The ids themselves are
 * not read, and of the step block only first_row is. */
gp_status gp_id_fault(gp_op op, const gp_call *call, int64_t index, int64_t id);

#endif
