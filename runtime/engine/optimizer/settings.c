/* engine/optimizer/settings.c - what an update is made with, as ranks compare it.
 *
 * A script that draws its rate by the clock would update each stage in another way, and nothing
 * else would tell: the ranks' gradients fit together. */
#include <string.h>

#include "base/hash.h"
#include "engine/optimizer/optimizer.h"
#include "engine/state/pipeline.h"

static void mix(uint64_t *hash, uint64_t number) {
  *hash = gp_hash_fold(gp_hash_word(*hash, number));
}

static void mix_real(uint64_t *hash, double number) {
  uint64_t word;
  memcpy(&word, &number, sizeof word);
  mix(hash, word);
}

static void mix_hyper(uint64_t *hash, const gp_optim_hyper *h) {
  const double reals[] = {h->lr,    h->weight_decay, h->momentum,       h->beta1, h->beta2,
                          h->eps,   h->lr_decay,     h->momentum_decay, h->grow,  h->shrink,
                          h->least, h->most,         h->dampening};
  mix(hash, h->kind);
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) mix_real(hash, reals[i]);
  mix(hash, (uint64_t)h->since);
  mix(hash, (uint64_t)(h->nesterov | h->centered << 1 | h->amsgrad << 2 | h->decoupled << 3));
}

/* Which parameter is in which group. Members lie in the order of their moments, which differs from
 * rank to rank, so their hashes are added. */
static uint64_t hash_members(const gp_optimizer *o, const gp_pipeline *p) {
  uint64_t sum = 0;
  for (int32_t i = 0; i < o->member_count; i++) {
    uint64_t hash = GP_HASH_START;
    mix(&hash, (uint64_t)gp_layout_find(&p->layout, o->members[i].param));
    mix(&hash, (uint64_t)o->members[i].group);
    sum += hash;
  }
  return sum;
}

gp_update_settings gp_optimizer_settings(const gp_optimizer *o, const gp_pipeline *p,
                                         const gp_optim_hyper *hyper) {
  gp_update_settings s = {.step = o->steps + 1, .hash = GP_HASH_START};
  for (int32_t g = 0; g < o->group_count; g++) mix_hyper(&s.hash, &hyper[g]);
  mix(&s.hash, hash_members(o, p));
  if (o->group_count) s.lr = hyper[0].lr;
  return s;
}

gp_status gp_update_settings_compare(const char *who, const gp_update_settings *first,
                                     const gp_update_settings *other, int rank) {
  if (other->step != first->step)
    return gp_fail(GP_ESTATE,
                   "%s: it makes update %lld on rank 0 and %lld on rank %d, expected the same on "
                   "all ranks",
                   who, (long long)first->step, (long long)other->step, rank);
  if (other->hash == first->hash) return GP_OK;
  if (memcmp(&other->lr, &first->lr, sizeof other->lr) != 0)
    return gp_fail(GP_ESTATE,
                   "%s: lr is %g on rank 0 and %g on rank %d, expected the same on all "
                   "ranks",
                   who, first->lr, other->lr, rank);
  return gp_fail(GP_ESTATE,
                 "%s: rank %d has other settings, groups or parameters in its optimizer than "
                 "rank 0, expected the same on all ranks",
                 who, rank);
}
