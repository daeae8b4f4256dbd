/* engine/block.c - see block.h. */
#include "engine/block.h"

#include "base/tensor.h"

gp_status gp_block_new(gp_home *home, size_t bytes, gp_tensor **block) {
  if (!bytes) return GP_OK;
  return gp_tensor_new_at(home, GP_U8, &(gp_shape){.rank = 1, .dim = {(int64_t)bytes}}, block);
}

/* What a view does when its last reference goes. */
static void let_go(void *block) { gp_tensor_free(block); }

/* A parameter without elements may lie in a block that is none. */
gp_status gp_block_view(gp_tensor *block, size_t offset, const gp_param *param,
                        gp_tensor **tensor) {
  const gp_meta *meta = gp_param_meta(param);
  char *at = block ? (char *)gp_tensor_data(block) + offset : NULL;
  if (block) gp_tensor_retain(block);
  gp_extent memory = {.data = at,
                      .bytes = gp_meta_bytes(meta),
                      .home = block ? gp_tensor_home(block) : NULL,
                      .release = let_go,
                      .context = block};
  gp_status status = gp_tensor_wrap(meta, &memory, tensor);
  if (status) gp_tensor_free(block);
  return status;
}
