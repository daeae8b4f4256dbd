/* engine/worker.c - one thread per device, waiting for jobs and for each other.
 *
 * Waiting spins briefly where every thread has a core of its own, then sleeps on the worker's doorbell:
 * whoever changes something that a worker may be waiting for rings it. The doorbell is read before the
 * condition is checked, so a ring in between is never lost.
 */
#include "engine/pipeline.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"

enum { SPINS = 4000, WAIT_NS = 100000000 };

/* ---- waiting ------------------------------------------------------------------------------- */

static bool reached(_Atomic uint32_t *word, uint32_t wanted) {
  return atomic_load_explicit(word, memory_order_acquire) >= wanted;
}

/* Spin, then sleep. The time-out is a belt: a lost ring would cost a tenth of a second, not a hang. */
void gp_worker_await(gp_worker *worker, _Atomic uint32_t *word, uint32_t wanted) {
  for (int i = 0, n = worker->pipeline->spin ? SPINS : 1; i < n; i++) {
    if (reached(word, wanted)) return;
    gp_pause();
  }
  for (;;) {
    atomic_store(&worker->sleeping, 1);
    uint32_t bell = atomic_load(&worker->doorbell);
    if (reached(word, wanted)) break;
    gp_wait_word(&worker->doorbell, bell, WAIT_NS);
  }
  atomic_store(&worker->sleeping, 0);
}

/* Sequentially consistent on both sides: either the ringer sees `sleeping`, or the sleeper sees the
 * new bell. */
void gp_worker_ring(gp_worker *worker) {
  atomic_fetch_add(&worker->doorbell, 1);
  if (atomic_load(&worker->sleeping)) gp_wake_word(&worker->doorbell, INT_MAX);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

/* Wait for the next ticket; false when the pipeline closes. */
static bool next_job(gp_worker *worker, uint32_t *seen) {
  gp_pipeline *p = worker->pipeline;
  for (int i = 0; p->spin && i < SPINS && atomic_load(&p->ticket) == *seen; i++) gp_pause();
  while (atomic_load(&p->ticket) == *seen) gp_wait_word(&p->ticket, *seen, WAIT_NS);
  *seen = atomic_load(&p->ticket);
  return !atomic_load(&p->quit);
}

/* The text of a failure is thread-local: carry it over for the script's thread. */
static void *work(void *context) {
  gp_worker *worker = context;
  gp_pipeline *p = worker->pipeline;
  for (uint32_t seen = 0; next_job(worker, &seen);) {
    worker->job_status = p->job(worker, p->job_context);
    if (worker->job_status)
      snprintf(worker->job_text, sizeof worker->job_text, "%s", gp_error_text());
    atomic_fetch_add(&p->finished, 1);
    gp_wake_word(&p->finished, INT_MAX);
  }
  return NULL;
}

/* job and its context are published by the ticket. */
gp_status gp_workers_run(gp_pipeline *p, gp_job job, void *context) {
  p->job = job;
  p->job_context = context;
  atomic_store(&p->finished, 0);
  atomic_fetch_add(&p->ticket, 1);
  gp_wake_word(&p->ticket, INT_MAX);
  for (uint32_t done; (done = atomic_load(&p->finished)) < (uint32_t)p->device_count;)
    gp_wait_word(&p->finished, done, WAIT_NS);
  for (int32_t d = 0; d < p->device_count; d++)
    if (p->workers[d].job_status)
      return gp_fail_text(p->workers[d].job_status, p->workers[d].job_text);
  return GP_OK;
}

/* ---- starting and stopping ----------------------------------------------------------------- */

/* Devices take cores round robin; thread i of a device takes the next one. */
static gp_status start(gp_worker *worker, const gp_device_spec *device, int first_core, int cores) {
  int own[64], threads = device->threads < 64 ? device->threads : 64;
  for (int i = 0; i < threads; i++) own[i] = (first_core + i) % cores;
  int pinned = worker->pipeline->spin ? threads : 0;
  snprintf(worker->name, sizeof worker->name, "%s", device->name);
  GP_TRY(gp_team_new(threads, own, pinned, worker->pipeline->spin, &worker->team));
  gp_thread_options options = {.name = worker->name, .cores = own, .core_count = pinned ? 1 : 0};
  GP_TRY(gp_thread_start(&worker->thread, &options, work, worker));
  worker->started = true;
  return GP_OK;
}

/* Threads are pinned and spin only where each has a core: more devices than cores must share. */
gp_status gp_workers_start(gp_pipeline *p, const gp_device_spec *devices) {
  int cores = gp_machine_info().cores, threads = 0, first = 0;
  for (int32_t d = 0; d < p->device_count; d++) threads += devices[d].threads;
  p->spin = threads <= cores;
  GP_TRY(gp_alloc_array((size_t)p->device_count, sizeof(gp_worker), (void **)&p->workers));
  for (int32_t d = 0; d < p->device_count; d++) {
    p->workers[d].pipeline = p;
    p->workers[d].device = d;
    GP_TRY(start(&p->workers[d], &devices[d], first, cores));
    first += devices[d].threads;
  }
  return GP_OK;
}

/* Also after a start that failed half-way. */
void gp_workers_stop(gp_pipeline *p) {
  if (!p->workers) return;
  atomic_store(&p->quit, 1);
  atomic_fetch_add(&p->ticket, 1);
  gp_wake_word(&p->ticket, INT_MAX);
  for (int32_t d = 0; d < p->device_count; d++) {
    gp_worker *worker = &p->workers[d];
    if (worker->started) pthread_join(worker->thread, NULL);
    gp_team_free(worker->team);
    gp_free(worker->frame);
    gp_free(worker->scratch);
  }
  gp_free(p->workers);
  p->workers = NULL;
}

/* The frame of the plan and scratch for each team member. */
static gp_status prepare(gp_worker *worker, const gp_plan *plan) {
  int32_t bases = gp_plan_base_count(plan);
  if (bases > worker->frame_room) {
    gp_free(worker->frame);
    worker->frame = NULL;
    worker->frame_room = 0;
    GP_TRY(gp_alloc_array((size_t)bases, sizeof(void *), (void **)&worker->frame));
    worker->frame_room = bases;
  }
  if (plan->scratch_bytes > worker->scratch_bytes) {
    size_t bytes, members = (size_t)gp_team_size(worker->team);
    GP_TRY(gp_size_align(plan->scratch_bytes, 64, &bytes));
    gp_free(worker->scratch);
    worker->scratch = NULL;
    worker->scratch_bytes = 0;
    GP_TRY(gp_alloc_array(members, bytes, (void **)&worker->scratch));
    worker->scratch_bytes = bytes;
  }
  return GP_OK;
}

/* An array that only ever grows; its contents do not matter. */
static gp_status make_room(int32_t count, size_t size, int32_t *room, void **array) {
  if (count <= *room) return GP_OK;
  gp_free(*array);
  *array = NULL;
  *room = 0;
  GP_TRY(gp_alloc_array((size_t)count, size, array));
  *room = count;
  return GP_OK;
}

/* Records of an earlier run would describe tasks of another plan. */
gp_status gp_workers_prepare(gp_pipeline *p, const gp_plan *plan) {
  for (int32_t d = 0; d < p->device_count; d++) GP_TRY(prepare(&p->workers[d], plan));
  p->last_plan = NULL;
  GP_TRY(make_room(plan->first[plan->device_count], sizeof(gp_record), &p->record_room,
                   (void **)&p->records));
  return make_room(plan->micro_count, sizeof(gp_step_block), &p->block_room,
                   (void **)&p->run.blocks);
}
