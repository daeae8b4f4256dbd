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

/* Allocate zeroed bytes in a memory space (NULL: the host's), counted like a tensor. With 0 bytes
 * *block is left as it is. Errors: GP_ENOMEM. */
gp_status gp_block_new(gp_space *space, size_t bytes, gp_tensor **block);
/* The same by host_alloc of a kind of lane, so that such lanes copy from the block without
 * blocking. */
gp_status gp_block_new_by(const gp_lane_memory *kind, size_t bytes, gp_tensor **block);
/* Make a tensor like param at an offset of the block; it keeps the block alive. */
gp_status gp_block_view(gp_tensor *block, size_t offset, const gp_param *param, gp_tensor **tensor);

#endif
