/* engine/watch/guard.h - checks that a task touches only what its accesses name (plan/touches.h).
 *
 * In builds with the address sanitizer, the memory that belongs to a CPU device alone is poisoned
 * while a task runs, except what the task's accesses name: slots of other micro-batches, gradients,
 * extras, prepared weights, temporaries. Touching poisoned memory ends the process with a report.
 * Other builds do nothing. GPIPE_GUARD_HIDE=saved pretends that tasks do not name that buffer, so
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
/* Poison memory before a task, and restore it afterwards. Every begin is followed by an end, also
 * if it failed. */
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
