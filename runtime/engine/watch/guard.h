/* engine/watch/guard.h - does a task touch only what its accesses name (plan/touches.h)?
 *
 * In builds with the address sanitizer, whatever belongs to a CPU device alone and is not among a
 * task's accesses is poisoned while the task runs: slots of other micro-batches, gradients, extras,
 * prepared weights, temporaries, older weights. Touching it ends the process with a report. In
 * other builds nothing is done. GPIPE_GUARD_HIDE=saved pretends that tasks do not name a buffer, so
 * that a test sees the guard work. */
#ifndef GP_ENGINE_GUARD_H
#define GP_ENGINE_GUARD_H

#include "engine/state/run.h"

#if defined(__SANITIZE_ADDRESS__)
#define GP_GUARDS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GP_GUARDS 1
#endif
#endif

#ifdef GP_GUARDS
/* Around a task; every begin is followed by an end. */
gp_status gp_guard_begin(const gp_worker *worker, const gp_task_run *r);
void gp_guard_end(const gp_worker *worker, const gp_task_run *r);
#else
static inline gp_status gp_guard_begin(const gp_worker *worker, const gp_task_run *r) {
  (void)worker;
  (void)r;
  return GP_OK;
}
static inline void gp_guard_end(const gp_worker *worker, const gp_task_run *r) {
  (void)worker;
  (void)r;
}
#endif

#endif
