/* plan/edge/buckets.c - see buckets.h. */
#include "plan/edge/buckets.h"

/* Smaller buckets cost more messages than they hide, and each has a link: so there is a least size,
 * and a most number for what a copy owns. */
enum { LEAST_BYTES = 1 << 20, MOST_BUCKETS = 32 };

static size_t least_of(const gp_layout_slice *slice) {
  const size_t share = slice->grads / MOST_BUCKETS;
  return share > LEAST_BYTES ? share : LEAST_BYTES;
}

/* A bucket ends where the first parameter begins that need not be in it. */
size_t gp_bucket_bytes(const gp_layout *layout, int32_t holder, size_t begin, size_t least) {
  const gp_layout_slice *slice = &layout->slices[holder];
  size_t end = slice->begin + slice->grads;
  if (!least) least = least_of(slice);
  if (layout->replicas == 1 || end - begin <= least) return end - begin;
  for (int32_t i = 0; i < layout->param_count; i++) {
    const gp_layout_param *at = &layout->at[i];
    const bool is_own = at->stage * layout->copy_count + at->owner == holder;
    if (is_own && at->region == GP_REGION_TRAINABLE && at->offset >= begin + least &&
        at->offset < end)
      end = at->offset;
  }
  return end - begin;
}

int32_t gp_bucket_end(const gp_program *program, size_t begin, size_t bytes) {
  int32_t end = 1;
  if (!program) return 0;
  for (int32_t n = 0; n < program->instr_count; n++)
    for (int k = 0; k < program->instrs[n].call.n_out; k++) {
      const gp_place *out = &program->instrs[n].out[k];
      if (out->base == GP_BASE_GRAD && out->offset >= begin && out->offset < begin + bytes)
        end = n + 1;
    }
  return end;
}
