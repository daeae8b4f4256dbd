/* schedule/verify/check.c - run all checks of a schedule, before anything runs.
 *
 * The checks of single rows and cells come first, because the search for an order relies on them.
 */
#include "base/memory.h"
#include "schedule/verify/verify.h"

static gp_status check(gp_verify *v) {
  GP_TRY(gp_verify_index(v));
  GP_TRY(gp_verify_complete(v));
  GP_TRY(gp_verify_messages(v));
  GP_TRY(gp_verify_updates(v));
  GP_TRY(gp_verify_shards(v));
  GP_TRY(gp_verify_versions(v));
  return gp_verify_order(v);
}

gp_status gp_schedule_find_order(const gp_schedule *schedule, int32_t *order) {
  gp_schedule_fault fault;
  gp_verify v = {.s = schedule, .fault = &fault, .order = order};
  gp_status status = check(&v);
  gp_verify_free(&v);
  return status;
}

/* Cost: linear in the number of actions. */
gp_status gp_schedule_check(struct gp_schedule *s) {
  if (s->stage_count < 1 || s->micro_count < 1) {
    s->fault = (gp_schedule_fault){"complete", 0, -1};
    return gp_fail(GP_ESCHEDULE,
                   "schedule: %d stages and %d micro-batches, expected at least one of each",
                   (int)s->stage_count, (int)s->micro_count);
  }
  size_t total = (size_t)s->first[s->device_count];
  GP_TRY(gp_alloc_array(total + 1, sizeof(int32_t), (void **)&s->order));
  gp_verify v = {.s = s, .fault = &s->fault, .order = s->order};
  gp_status status = check(&v);
  gp_verify_free(&v);
  return status;
}
