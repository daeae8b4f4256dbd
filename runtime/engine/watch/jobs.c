/* engine/watch/jobs.c - see jobs.h. */
#include "engine/watch/jobs.h"

#include "base/thread.h"
#include "engine/watch/watchdog.h"
#include "engine/worker/worker.h"

gp_status gp_workers_join(gp_pipeline *p) {
  gp_watch_begin(p);
  const uint32_t count = (uint32_t)gp_devices_here(p);
  for (uint32_t done; (done = atomic_load(&p->finished)) < count;) {
    gp_wait_word(&p->finished, done, GP_WAIT_NS);
    if (gp_watch_check(p)) return gp_watch_lose(p);
  }
  for (int32_t d = 0; d < p->device_count; d++)
    if (p->workers[d].job_status)
      return gp_fail_text(p->workers[d].job_status, p->workers[d].job_text);
  return GP_OK;
}

gp_status gp_workers_run(gp_pipeline *p, gp_job job, void *context) {
  if (p->watch.lost) return gp_fail(GP_ESTATE, "the pipeline is lost: %s", p->run.text);
  gp_workers_begin(p, job, context);
  return gp_workers_join(p);
}
