/* engine/memory/block.h - memory that several parameters share, and that lives as long as any view
 * of it.
 *
 * Arenas of stages and moments of optimizers are blocks: a tensor that a script holds may outlive
 * the pipeline or the optimizer that it came from.
 */
#ifndef GP_ENGINE_BLOCK_H
#define GP_ENGINE_BLOCK_H

#include "base/space.h"
#include "device/lane.h"
#include "gpipe/param.h"
#include "gpipe/tensor.h"

/* Bytes of zeros in the space (NULL: on the host), counted like a tensor; NULL for none. Errors:
 * GP_ENOMEM. */
gp_status gp_block_new(gp_space *space, size_t bytes, gp_tensor **block);
/* The same on the host, where lanes of a kind with host_alloc fetch it without holding anybody
 * up. */
gp_status gp_block_new_by(const gp_lane_memory *kind, size_t bytes, gp_tensor **block);
/* A tensor like param at an offset of the block, which it keeps alive. */
gp_status gp_block_view(gp_tensor *block, size_t offset, const gp_param *param, gp_tensor **tensor);

#endif
