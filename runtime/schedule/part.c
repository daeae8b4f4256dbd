/* schedule/part.c - the forward passes of a schedule alone, or all of them before its backward
 * passes.
 *
 * Actions keep their order, so whenever the schedule can run, its part can. Evaluation and
 * pipe:forward run on the same devices, and the same copies of stages, as training.
 */
#include "base/memory.h"
#include "schedule/schedule.h"

static gp_status add(gp_rows *rows, const gp_schedule *s, int32_t device, bool forward) {
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    gp_action action = s->actions[a];
    bool wanted = forward ? action.op == GP_ACT_F
                          : action.op == GP_ACT_B || action.op == GP_ACT_I || action.op == GP_ACT_W;
    action.version = -1;
    action.joined = false;
    if (wanted) GP_TRY(gp_rows_add(rows, device, &action));
  }
  return GP_OK;
}

gp_status gp_schedule_part(const gp_schedule *schedule, bool backward, gp_schedule **part) {
  gp_rows *rows;
  GP_TRY(gp_rows_new(schedule->device_count, &rows));
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && d < schedule->device_count; d++) {
    status = add(rows, schedule, d, true);
    if (!status && backward) status = add(rows, schedule, d, false);
  }
  gp_schedule_spec spec = {.rows = rows,
                           .stage_count = schedule->stage_count,
                           .copy_count = schedule->copy_count,
                           .replicas = schedule->replicas,
                           .replica_micros = schedule->replica_micros,
                           .placement = schedule->placement};
  if (!status) status = gp_schedule_new(&spec, part, NULL);
  gp_rows_free(rows);
  return status;
}
