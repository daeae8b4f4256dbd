/* engine/memory/block.c - see block.h.
 *
 * A block is a tensor of bytes, so it is counted, retained and released like other tensors. A view
 * of a parameter is a tensor whose release gives back a reference to the block.
 */
#include "engine/memory/block.h"

#include <string.h>

#include "base/tensor.h"

gp_status gp_block_new(gp_space *space, size_t bytes, gp_tensor **block) {
  if (!bytes) return GP_OK;
  return gp_tensor_new_at(space, GP_U8, &(gp_shape){.rank = 1, .dim = {(int64_t)bytes}}, block);
}

gp_status gp_block_new_by(const gp_lane_memory *kind, size_t bytes, gp_tensor **block) {
  gp_extent memory = {.bytes = bytes, .release = kind->host_free};
  gp_meta meta;
  if (!bytes) return GP_OK;
  GP_TRY(gp_meta_make(GP_U8, &(gp_shape){.rank = 1, .dim = {(int64_t)bytes}}, &meta));
  GP_TRY(kind->host_alloc(bytes, &memory.data));
  memset(memory.data, 0, bytes);
  memory.context = memory.data;
  gp_status status = gp_tensor_wrap(&meta, &memory, block);
  if (status) kind->host_free(memory.data);
  return status;
}

/* Release a view: give back its reference to the block. */
static void let_go(void *block) { gp_tensor_free(block); }

gp_status gp_block_view(gp_tensor *block, size_t offset, const gp_param *param,
                        gp_tensor **tensor) {
  const gp_meta *meta = gp_param_meta(param);
  /* there is no block if no parameter of the stage has elements */
  char *at = block ? (char *)gp_tensor_data(block) + offset : NULL;
  if (block) gp_tensor_retain(block);
  gp_extent memory = {.data = at,
                      .bytes = gp_meta_bytes(meta),
                      .space = block ? gp_tensor_space(block) : NULL,
                      .release = let_go,
                      .context = block};
  gp_status status = gp_tensor_wrap(meta, &memory, tensor);
  if (status) gp_tensor_free(block);
  return status;
}
