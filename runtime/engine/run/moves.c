/* engine/run/moves.c - see moves.h.
 *
 * Copies run on the streams that also carry what crosses devices, so that the compute stream goes
 * on meanwhile. A copy begins behind what the compute stream had to do so far: then its source has
 * been written, and its target is no longer read. No copy is in a captured graph; segments end
 * where moves stand (bind/segments.c). */
#include "engine/run/moves.h"

#include "engine/bind/host_area.h"
#include "engine/memory/work.h"
#include "plan/offload.h"

typedef struct mover {
  const gp_worker *worker;
  const gp_binding *binding;
  const gp_lane *lane;
  const gp_host_area *area;
} mover;

static mover mover_of(const gp_worker *worker) {
  const gp_binding *binding = worker->pipeline->run.binding;
  return (mover){worker, binding, &worker->lane, binding->devices[worker->device].host};
}

static gp_status begin_copy(const mover *m, int32_t offload, bool back) {
  const gp_plan *plan = m->binding->plan;
  const gp_offload *o = &plan->offloads[offload];
  const gp_stream stream = back ? GP_STREAM_RECEIVE : GP_STREAM_SEND;
  const gp_lane_streams *streams = m->lane->streams;
  char *work = gp_work_area(m->binding, m->worker->device), *host = m->area->memory + o->host;
  GP_TRY(streams->record(m->lane, GP_STREAM_COMPUTE, m->area->begun));
  GP_TRY(streams->wait(m->lane, stream, m->area->begun));
  for (int part = 0; part < GP_PARTS; host += o->bytes[part++]) {
    char *own = work + (back ? gp_offload_to(plan, o, part) : gp_offload_from(plan, o, part));
    if (o->bytes[part])
      GP_TRY(m->lane->memory->copy(m->lane, stream, back ? own : host, back ? host : own,
                                   o->bytes[part]));
  }
  return streams->record(m->lane, stream,
                         gp_host_area_copied(m->binding, m->worker->device, offload, back));
}

static gp_status await_copy(const mover *m, int32_t offload, bool back) {
  gp_lane_event *event = gp_host_area_copied(m->binding, m->worker->device, offload, back);
  return m->lane->streams->wait(m->lane, GP_STREAM_COMPUTE, event);
}

static gp_status move(const mover *m, const gp_move *one, bool runs) {
  const bool back = one->kind == GP_MOVE_FETCH || one->kind == GP_MOVE_ARRIVE;
  if (one->kind == GP_MOVE_ARRIVE || one->kind == GP_MOVE_LEAVE)
    return await_copy(m, one->offload, back);
  return runs ? begin_copy(m, one->offload, back) : GP_OK;
}

static gp_status move_some(const gp_worker *worker, const gp_task *task, bool behind, bool runs) {
  const mover m = mover_of(worker);
  for (int32_t i = 0; i < task->move_count; i++)
    if (behind == (task->moves[i].kind >= GP_MOVE_PUT)) GP_TRY(move(&m, &task->moves[i], runs));
  return GP_OK;
}

gp_status gp_moves_before(const gp_worker *worker, const gp_task *task, bool runs) {
  return task->move_count ? move_some(worker, task, false, runs) : GP_OK;
}

gp_status gp_moves_behind(const gp_worker *worker, const gp_task *task, bool runs) {
  return task->move_count ? move_some(worker, task, true, runs) : GP_OK;
}
