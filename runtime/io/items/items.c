/* io/items/items.c - batches of items: positions are checked here for all kinds. */
#include "io/items/items.h"

#include "base/memory.h"
#include "base/random/philox.h"
#include "base/random/random.h"
#include "base/tensor.h"

gp_status gp_items_new(const gp_items_ops *ops, size_t bytes, int64_t count, gp_items **items) {
  void *memory = NULL;
  GP_TRY(gp_alloc(bytes, &memory));
  *items = memory;
  (*items)->ops = ops;
  (*items)->count = count;
  atomic_init(&(*items)->references, 1);
  return GP_OK;
}

gp_items *gp_items_retain(gp_items *items) {
  atomic_fetch_add_explicit(&items->references, 1, memory_order_relaxed);
  return items;
}

void gp_items_free(gp_items *items) {
  if (!items) return;
  if (atomic_fetch_sub_explicit(&items->references, 1, memory_order_acq_rel) > 1) return;
  items->ops->release(items);
  gp_free(items);
}

int64_t gp_items_count(const gp_items *items) { return items->count; }

gp_status gp_items_batch(const gp_items *items, const gp_tensor *positions, gp_items_key key,
                         gp_tensor **x, gp_tensor **y) {
  const gp_meta *meta = gp_tensor_meta(positions);
  if (meta->dtype != GP_I64 || meta->shape.rank != 1 || !gp_tensor_is_contiguous(positions))
    return gp_fail(GP_ESHAPE,
                   "items: the positions are not a contiguous i64 tensor of one dimension");
  gp_items_call call = {
      .positions = positions, .at = gp_tensor_data(positions), .n = meta->shape.dim[0], .key = key};
  for (int64_t i = 0; i < call.n; i++)
    if (call.at[i] < 0 || call.at[i] >= items->count)
      return gp_fail(GP_ERANGE, "items: position %lld (from 0), expected less than %lld",
                     (long long)call.at[i], (long long)items->count);
  return items->ops->make(items, &call, x, y);
}

/* Each position has a chunk of 64 elements of the random stream. */
void gp_items_words(gp_items_key key, int64_t position, int n, uint32_t *word) {
  uint32_t high = (uint32_t)(key.stream >> 32) & 0x3fffffffu;
  gp_philox_words(key.seed, (uint32_t)key.stream, high | (uint32_t)GP_RANDOM_ITEMS << 30,
                  (uint64_t)position * 64, n, word);
}
