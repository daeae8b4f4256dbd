/* engine/worker/worker.c - one thread per device, waiting for jobs and for each other.
 *
 * A waiting worker spins briefly if every thread has a core of its own, then sleeps on its bell. A
 * thread that changes something that a worker may be waiting for rings the bell. No
 * thread writes to the bell of a worker that is awake, so the thread that publishes and the worker
 * that spins share only the cache line of the word itself.
 */

#include <limits.h>
#include <sched.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/thread.h"
#include "engine/state/pipeline.h"
#include "engine/worker/marks.h"
#include "engine/worker/worker.h"
#include "gpipe/device.h"

enum { SPINS = 4000 };

/* ---- waiting ------------------------------------------------------------------------------- */

/* A word that another worker raises. */
typedef struct word {
  _Atomic uint32_t *at;
  uint32_t wanted;
} word;

static gp_status try_word(void *context, bool *ready) {
  const word *w = context;
  *ready = atomic_load(w->at) >= w->wanted;
  return GP_OK;
}

/* Do what must not wait for the worker, and return how long it may sleep, in nanoseconds. The
 * worker asks again soon if some links wake no worker. Otherwise the time-out is a precaution: a
 * lost ring would cost a tenth of a second, not a hang. */
static int64_t pause_of(gp_worker *worker) {
  return worker->idle ? worker->idle(worker) : GP_WAIT_NS;
}

static int spins_of(const gp_pipeline *p) { return p->spin ? SPINS : 1; }

/* Sleep and ask again until the answer is yes, the question fails or the run is given up. */
static gp_status sleep_until(gp_worker *worker, gp_worker_question ask, void *context,
                             bool *ready) {
  gp_pipeline *p = worker->pipeline;
  gp_status status = GP_OK;
  while (!status && !*ready) {
    int64_t pause = pause_of(worker);
    atomic_store(&worker->bell->sleeping, 1);
    /* read before the last question: a ring after that ends the sleep at once */
    uint32_t rings = atomic_load(&worker->bell->rings);
    if (atomic_load(&p->watch.given_up)) break;
    status = ask(context, ready);
    if (!status && !*ready) gp_bell_sleep(worker->bell, rings, pause);
  }
  atomic_store(&worker->bell->sleeping, 0);
  return status;
}

/* After a run is given up, tasks pass through: no question is asked. */
gp_status gp_worker_try(gp_worker *worker, gp_worker_question ask, void *context, bool *ready) {
  gp_pipeline *p = worker->pipeline;
  *ready = false;
  for (int i = 0, n = spins_of(p); i < n && !atomic_load(&p->watch.given_up); i++) {
    GP_TRY(ask(context, ready));
    if (*ready) return GP_OK;
    gp_pause();
  }
  return sleep_until(worker, ask, context, ready);
}

bool gp_worker_await(gp_worker *worker, _Atomic uint32_t *at, uint32_t wanted) {
  word w = {at, wanted};
  bool ready = false;
  /* reads the word only, to see a change as soon as it comes: most waits of a step end here */
  for (int i = 0, n = spins_of(worker->pipeline); i < n; i++) {
    if (atomic_load(at) >= wanted) return true;
    gp_pause();
  }
  sleep_until(worker, try_word, &w, &ready);
  return ready;
}

void gp_worker_ring(gp_worker *worker) { gp_bell_ring(worker->bell); }

/* ---- jobs ---------------------------------------------------------------------------------- */

/* Wait for the next ticket; false when the pipeline closes. */
static bool next_job(gp_worker *worker, uint32_t *seen) {
  gp_pipeline *p = worker->pipeline;
  for (int i = 0; p->spin && i < SPINS && atomic_load(&p->ticket) == *seen; i++) gp_pause();
  while (atomic_load(&p->ticket) == *seen) gp_wait_word(&p->ticket, *seen, GP_WAIT_NS);
  *seen = atomic_load(&p->ticket);
  return !atomic_load(&p->quit);
}

/* The thread of a worker: runs one job after another until the pipeline closes. */
static void *work(void *context) {
  gp_worker *worker = context;
  gp_pipeline *p = worker->pipeline;
  for (uint32_t seen = 0; next_job(worker, &seen);) {
    worker->job_status = p->job(worker, p->job_context);
    /* the text of a failure is thread-local: keep it for the script's thread */
    if (worker->job_status)
      snprintf(worker->job_text, sizeof worker->job_text, "%s", gp_error_text());
    atomic_fetch_add(&p->finished, 1);
    gp_wake_word(&p->finished, INT_MAX);
  }
  return NULL;
}

void gp_workers_begin(gp_pipeline *p, gp_job job, void *context) {
  p->job = job;
  p->job_context = context;
  atomic_store(&p->finished, 0);
  /* the ticket publishes the job and its context */
  atomic_fetch_add(&p->ticket, 1);
  gp_wake_word(&p->ticket, INT_MAX);
}

/* ---- starting and stopping ----------------------------------------------------------------- */

/* List the cores of a device's threads: thread i takes the i-th core from the first one on. Returns
 * how many; 0: threads may run anywhere. */
static int cores_of(const gp_worker *worker, int threads, int first, int cores, int own[64]) {
  for (int i = 0; i < threads; i++) own[i] = (first + i) % cores;
  return worker->pipeline->spin ? threads : 0;
}

static gp_status open_lane(gp_worker *worker, const gp_device_spec *device, int first, int cores) {
  int own[64], threads = device->threads < 64 ? device->threads : 64;
  worker->threads = threads;
  worker->first_core = first;
  worker->bell = gp_spread_bell(worker->pipeline->spread, worker->device);
  if (!worker->bell) worker->bell = &worker->own_bell;
  worker->far = worker->pipeline->spread && device->rank != worker->pipeline->spread->own;
  if (worker->far) return gp_lane_open_far(device->name, device->rank, &worker->lane);
  gp_lane_options options = {.threads = threads,
                             .cores = own,
                             .core_count = cores_of(worker, threads, first, cores, own),
                             .spin = worker->pipeline->spin};
  GP_TRY(gp_lane_open(device->name, &options, &worker->lane));
  worker->lane.rank = device->rank;
  if (worker->pipeline->spread) worker->pipeline->spread->here_count++;
  return GP_OK;
}

static gp_status open_lanes(gp_pipeline *p, const gp_device_spec *devices, int cores, int *first) {
  gp_lane_places(devices, p->device_count, cores, first);
  for (int32_t d = 0; d < p->device_count; d++) {
    p->workers[d].pipeline = p;
    p->workers[d].device = d;
    GP_TRY(open_lane(&p->workers[d], &devices[d], first[d], cores));
  }
  return GP_OK;
}

gp_status gp_workers_new(gp_pipeline *p, const gp_device_spec *devices) {
  int cores = gp_machine_info().cores, threads = 0, *first;
  size_t count = (size_t)p->device_count;
  for (int32_t d = 0; d < p->device_count; d++) threads += devices[d].threads;
  /* threads are pinned and spin only if each has a core of its own; otherwise they share cores */
  p->spin = threads <= cores;
  GP_TRY(gp_alloc_array(count, sizeof(gp_worker), (void **)&p->workers));
  GP_TRY(gp_alloc_array(count, sizeof *first, (void **)&first));
  gp_status status = open_lanes(p, devices, cores, first);
  gp_free(first);
  return status;
}

static gp_status start(gp_worker *worker, int cores) {
  int own[64], pinned = cores_of(worker, worker->threads, worker->first_core, cores, own);
  /* a thread that drives a queue waits most of the time and may run anywhere */
  bool pins = pinned && worker->lane.facts->at_once;
  gp_thread_options options = {.name = worker->lane.name, .cores = own, .core_count = pins};
  GP_TRY(gp_thread_start(&worker->thread, &options, work, worker));
  worker->started = true;
  return GP_OK;
}

gp_status gp_workers_start(gp_pipeline *p) {
  int cores = gp_machine_info().cores;
  for (int32_t d = 0; d < p->device_count; d++)
    if (gp_device_is_here(p, d)) GP_TRY(start(&p->workers[d], cores));
  return GP_OK;
}

/* Works also after a start that failed half-way. */
void gp_workers_stop(gp_pipeline *p) {
  if (!p->workers) return;
  atomic_store(&p->quit, 1);
  atomic_fetch_add(&p->ticket, 1);
  gp_wake_word(&p->ticket, INT_MAX);
  for (int32_t d = 0; d < p->device_count; d++) {
    gp_worker *worker = &p->workers[d];
    if (worker->started) pthread_join(worker->thread, NULL);
    worker->started = false;
  }
}

void gp_workers_free(gp_pipeline *p) {
  for (int32_t d = 0; p->workers && d < p->device_count; d++) {
    gp_worker *worker = &p->workers[d];
    gp_marks_free(worker);
    gp_lane_close(&worker->lane);
    gp_free(worker->frame);
    gp_free(worker->scratch);
    gp_free(worker->events);
  }
  gp_free(p->workers);
  p->workers = NULL;
}

/* Joins the threads of workers that came back; the others end when they come back. */
void gp_workers_abandon(gp_pipeline *p) {
  atomic_store(&p->quit, 1);
  atomic_fetch_add(&p->ticket, 1);
  gp_wake_word(&p->ticket, INT_MAX);
  for (int32_t d = 0; d < p->device_count; d++) {
    gp_worker *worker = &p->workers[d];
    if (worker->far) continue;
    bool back = atomic_load(&worker->phase) == GP_WORKER_DONE;
    if (!back) pthread_detach(worker->thread);
    if (back) pthread_join(worker->thread, NULL);
    if (back) gp_lane_close(&worker->lane);
  }
}

void gp_worker_count(gp_worker *worker, size_t bytes, bool more) {
  worker->taken = more ? worker->taken + bytes : worker->taken - bytes;
  if (worker->taken > worker->most_taken) worker->most_taken = worker->taken;
}

/* Enlarge an array if it is too short; its contents are lost. On failure the old one stays: other
 * plans go on with it. */
static gp_status make_room(size_t count, size_t size, size_t *room, void **array) {
  void *larger;
  if (count <= *room) return GP_OK;
  GP_TRY(gp_alloc_array(count, size, &larger));
  gp_free(*array);
  *array = larger;
  *room = count;
  return GP_OK;
}

/* The number of events to keep: streams show their last few mini-batches. */
static size_t event_count(const gp_plan *plan, int32_t device) {
  int32_t tasks = device < plan->device_count ? plan->first[device + 1] - plan->first[device] : 0;
  return (size_t)tasks * (gp_plan_streams(plan) ? 4 : 1) + 1;
}

size_t gp_worker_growth(const gp_worker *worker, const gp_plan *plan) {
  size_t bytes;
  if (!worker->lane.facts->at_once || gp_size_align(plan->scratch_bytes, 64, &bytes)) return 0;
  if (bytes <= worker->scratch_bytes) return 0;
  return (bytes - worker->scratch_bytes) * (size_t)worker->threads;
}

/* Make room for a plan: its frame, scratch for each team member, events. */
static gp_status prepare(gp_worker *worker, const gp_plan *plan) {
  size_t bytes, members = (size_t)worker->threads;
  GP_TRY(make_room((size_t)gp_plan_base_count(plan), sizeof(void *), &worker->frame_room,
                   (void **)&worker->frame));
  GP_TRY(gp_marks_new(worker, event_count(plan, worker->device)));
  GP_TRY(make_room(event_count(plan, worker->device), sizeof(gp_event), &worker->event_room,
                   (void **)&worker->events));
  if (!worker->lane.facts->at_once) return GP_OK; /* a queue's scratch is part of the plan */
  GP_TRY(gp_size_align(plan->scratch_bytes, 64, &bytes));
  size_t had = worker->scratch_bytes;
  GP_TRY(make_room(bytes, members, &worker->scratch_bytes, (void **)&worker->scratch));
  gp_worker_count(worker, (worker->scratch_bytes - had) * members, true);
  return GP_OK;
}

gp_status gp_workers_prepare(gp_pipeline *p, const gp_plan *plan) {
  p->last_plan = NULL; /* larger rings lose the events of the last run */
  for (int32_t d = 0; d < p->device_count; d++)
    if (gp_device_is_here(p, d)) GP_TRY(prepare(&p->workers[d], plan));
  return GP_OK;
}
