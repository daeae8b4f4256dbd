/* plan/edge/overlap.c - see overlap.h. */
#include "plan/edge/overlap.h"

/* Is one of two values known to be over before the other is made? */
static int are_apart(const gp_overlap_asker *k, int32_t one, int32_t other, int32_t *device) {
  const int before = k->is_over(k->context, k->edge, one, other, device);
  const int behind = before == 1 ? 1 : k->is_over(k->context, k->edge, other, one, device);
  if (before == 1 || behind == 1) return 1;
  return before || behind ? GP_UNKNOWN : 0;
}

/* The same for all values in slot i of ring a and in slot n of ring b. */
static int are_all_apart(const gp_overlap_asker *k, const gp_ring *a, int32_t i, const gp_ring *b,
                         int32_t n, int32_t *device) {
  int known = 1;
  for (int32_t x = i; x < a->count; x += a->slots)
    for (int32_t y = n; y < b->count; y += b->slots) {
      const int apart = are_apart(k, a->micros[x], b->micros[y], device);
      if (!apart) return 0;
      if (apart == GP_UNKNOWN) known = GP_UNKNOWN;
    }
  return known;
}

/* May the first slots of ring a be the last ones of ring b? */
static int may_overlap(const gp_overlap_asker *k, const gp_ring *a, const gp_ring *b, int32_t slots,
                       int32_t *device) {
  int known = 1;
  for (int32_t i = 0; i < slots; i++) {
    const int apart = are_all_apart(k, a, i, b, b->slots - slots + i, device);
    if (!apart) return 0;
    if (apart == GP_UNKNOWN) known = GP_UNKNOWN;
  }
  return known;
}

int32_t gp_rings_overlap(const gp_overlap_asker *k, const gp_ring *a, const gp_ring *b) {
  int32_t slots = a->slots < b->slots ? a->slots : b->slots, device = -1;
  while (slots > 0) {
    const int known = may_overlap(k, a, b, slots, &device);
    if (known == GP_UNKNOWN)
      k->learn(k->context, device);
    else if (known)
      break;
    else
      slots--;
  }
  return slots;
}
