/* schedule/verify/capacity.c - the smallest capacity of channels with which a schedule ends, and is
 * not slowed.
 *
 * Larger channels never hurt, so both are found by halving; one as large as there are micro-batches
 * never blocks.
 */
#include "schedule/verify/channels.h"

/* Does it end with this capacity, within the time (-1: whatever time)? */
static gp_status is_enough(const gp_verify *v, int32_t capacity, int32_t within, bool *enough) {
  int32_t makespan;
  GP_TRY(gp_channels_run(v, capacity, false, &makespan));
  *enough = makespan >= 0 && (within < 0 || makespan <= within);
  return GP_OK;
}

/* The smallest capacity in low .. high that is enough, as high is. First in growing steps from
 * below, as most schedules need one or two. */
static gp_status search(const gp_verify *v, int32_t low, int32_t high, int32_t within,
                        int32_t *found) {
  bool enough = false;
  for (int32_t step = 1; low < high && !enough; step *= 2) {
    int32_t probe = high - low < step ? high - 1 : low + step - 1;
    GP_TRY(is_enough(v, probe, within, &enough));
    *(enough ? &high : &low) = enough ? probe : probe + 1;
  }
  while (low < high) {
    int32_t probe = low + (high - low) / 2;
    GP_TRY(is_enough(v, probe, within, &enough));
    *(enough ? &high : &low) = enough ? probe : probe + 1;
  }
  *found = high;
  return GP_OK;
}

static gp_status find_both(const gp_verify *v, int32_t *works, int32_t *full_speed) {
  int32_t most = v->s->micro_count, fastest;
  GP_TRY(gp_channels_run(v, most, true, &fastest));
  GP_TRY(search(v, 0, most, -1, works));
  return search(v, *works, most, fastest, full_speed);
}

gp_status gp_schedule_capacity(const gp_schedule *s, int *works, int *full_speed) {
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault, .order = s->order};
  int32_t found[2] = {0, 0};
  gp_status status = gp_verify_index(&v);
  if (!status) status = find_both(&v, &found[0], &found[1]);
  gp_verify_free(&v);
  *works = found[0];
  *full_speed = found[1];
  return status;
}
