/* engine/optimizer/moments.c - the moments of an optimizer: see optimizer.h.
 *
 * Moments lie in the memory space of their values, in the order of the arenas and with the same
 * padding. So parameters that are neighbours there have neighbouring moments here, and one pass
 * updates them all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/memory/block.h"
#include "engine/optimizer/optimizer.h"
#include "graph/param.h"

enum { AWAY = -1 }; /* the block of a member whose value another rank holds */

/* ---- where values lie ------------------------------------------------------------------------ */

/* Return where a value lies, and in which memory space; NULL if it could not be drawn. */
static const void *value_at(const gp_param *param, gp_space **space) {
  gp_tensor *value = NULL;
  *space = NULL;
  if (gp_param_value((gp_param *)param, &value)) return NULL;
  const void *data = gp_tensor_data(value);
  *space = gp_tensor_space(value);
  gp_tensor_free(value);
  return data;
}

const void *gp_optimizer_value(const gp_param *param) {
  gp_space *space;
  return value_at(param, &space);
}

static gp_space *space_of(const gp_param *param) {
  gp_space *space;
  value_at(param, &space);
  return space;
}

/* Compare members by address: that is the order of the arenas, so that neighbours can be merged
 * into one pass. */
static int by_address(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)gp_optimizer_value(((const gp_optimizer_member *)a)->param);
  uintptr_t y = (uintptr_t)gp_optimizer_value(((const gp_optimizer_member *)b)->param);
  return x < y ? -1 : x > y;
}

/* Does another rank hold the value? Then it holds the moments, too. */
static bool is_away(const gp_optimizer_member *m) { return gp_param_away(m->param) >= 0; }

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Find the block of a memory space, or add an empty one. */
static gp_status find_block(gp_optimizer *o, gp_space *space, int32_t *found) {
  size_t n = (size_t)o->block_count;
  for (*found = 0; *found < o->block_count; ++*found)
    if (o->blocks[*found].space == space) return GP_OK;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_moment_block), (void **)&o->blocks));
  o->blocks[o->block_count++].space = space;
  return GP_OK;
}

/* Give each member a place in a block, in the arenas' order and with their padding. */
static gp_status lay_out(gp_optimizer *o) {
  qsort(o->members, (size_t)o->member_count, sizeof(gp_optimizer_member), by_address);
  for (int32_t i = 0; i < o->member_count; i++) {
    gp_optimizer_member *m = &o->members[i];
    size_t bytes;
    m->block = AWAY;
    if (is_away(m)) continue;
    GP_TRY(gp_size_align(gp_meta_bytes(gp_param_meta(m->param)), GP_MOMENT_ALIGNMENT, &bytes));
    GP_TRY(find_block(o, space_of(m->param), &m->block));
    m->offset = o->blocks[m->block].bytes;
    GP_TRY(gp_size_add(m->offset, bytes, &o->blocks[m->block].bytes));
  }
  return GP_OK;
}

gp_status gp_moments_make(gp_optimizer *o) {
  GP_TRY(lay_out(o));
  for (int32_t b = 0; b < o->block_count; b++)
    for (int k = 0; k < o->moments; k++)
      GP_TRY(gp_block_new(o->blocks[b].space, o->blocks[b].bytes, &o->blocks[b].moments[k]));
  return GP_OK;
}

/* Free blocks; views that a script holds keep the memory. */
static void free_blocks(gp_moment_block *blocks, int32_t count) {
  for (int32_t b = 0; b < count; b++)
    for (int k = 0; k < GP_OPTIM_MOMENTS; k++) gp_tensor_free(blocks[b].moments[k]);
  gp_free(blocks);
}

void gp_moments_free(gp_optimizer *o) { free_blocks(o->blocks, o->block_count); }

void gp_moments_point(const gp_optimizer *o, const gp_optimizer_member *m, gp_optim_slice *slice) {
  for (int k = 0; k < GP_OPTIM_MOMENTS; k++) {
    gp_tensor *memory = m->block == AWAY ? NULL : o->blocks[m->block].moments[k];
    slice->moments[k] = memory ? (char *)gp_tensor_data(memory) + m->offset : NULL;
  }
}

/* The k-th moment of a member as a tensor; NULL where none is kept. */
static gp_status view_moment(const gp_optimizer *o, const gp_optimizer_member *m, int k,
                             gp_tensor **moment) {
  const bool kept = k < o->moments && m->block != AWAY;
  gp_tensor *memory = kept ? o->blocks[m->block].moments[k] : NULL;
  *moment = NULL;
  return memory ? gp_block_view(memory, m->offset, m->param, moment) : GP_OK;
}

gp_status gp_optimizer_moment(const gp_optimizer *o, const gp_param *param, int k,
                              gp_tensor **moment) {
  *moment = NULL;
  for (int32_t i = 0; i < o->member_count; i++)
    if (o->members[i].param == param) return view_moment(o, &o->members[i], k, moment);
  return GP_OK;
}

/* ---- moments follow the values --------------------------------------------------------------- */

/* Are all moments in the memory space of their values? Asked before every step, because values move
 * when a pipeline is made or closed. */
static bool are_in_space(const gp_optimizer *o) {
  for (int32_t i = 0; i < o->member_count; i++)
    if (!is_away(&o->members[i]) &&
        (o->members[i].block == AWAY ||
         o->blocks[o->members[i].block].space != space_of(o->members[i].param)))
      return false;
  return true;
}

/* Copy the moments of each parameter from where they were. */
static gp_status bring_moments(const gp_optimizer *old, const gp_optimizer *o) {
  for (int32_t i = 0; i < old->member_count; i++)
    for (int k = 0; k < o->moments; k++) {
      gp_tensor *from = NULL, *to = NULL;
      gp_status status = view_moment(old, &old->members[i], k, &from);
      if (!status) status = gp_optimizer_moment(o, old->members[i].param, k, &to);
      if (!status && from && to) status = gp_tensor_copy(to, from);
      gp_tensor_free(from);
      gp_tensor_free(to);
      GP_TRY(status);
    }
  return GP_OK;
}

/* Moments stay with the rank that has made steps with them. */
static gp_status check_holders(gp_optimizer *o) {
  for (int32_t i = 0; i < o->member_count; i++) {
    gp_optimizer_member *m = &o->members[i];
    const int32_t holder = gp_param_holder(m->param);
    if (o->steps > 0 && m->holder >= 0 && m->holder != holder)
      return gp_fail(GP_ESTATE,
                     "optimizer: rank %d has the moments of a parameter whose value rank %d holds "
                     "now, expected a new optimizer, or the stages on the same ranks as before",
                     (int)m->holder, (int)holder);
    m->holder = holder;
  }
  return GP_OK;
}

gp_status gp_moments_follow(gp_optimizer *o) {
  GP_TRY(check_holders(o));
  if (are_in_space(o)) return GP_OK;
  gp_optimizer old = *o;
  size_t bytes = (size_t)o->member_count * sizeof(gp_optimizer_member);
  GP_TRY(gp_alloc(bytes + 1, (void **)&old.members));
  memcpy(old.members, o->members, bytes);
  o->blocks = NULL;
  o->block_count = 0;
  gp_status status = gp_moments_make(o);
  if (!status) status = bring_moments(&old, o);
  if (status) { /* leave the optimizer as it was */
    free_blocks(o->blocks, o->block_count);
    memcpy(o->members, old.members, bytes);
    o->blocks = old.blocks;
    o->block_count = old.block_count;
  } else {
    free_blocks(old.blocks, old.block_count);
  }
  gp_free(old.members);
  return status;
}
