/* tests/cuda/cudart/queue.c - work that the streams of the stand-in were given and have not done.
 *
 * Unless told otherwise work runs when it is given. With GPIPE_TEST_LAZY=1 it runs as late as a
 * program allows: when the host waits for it, or for work that waits for it. A wait that the
 * program forgot then shows as wrong values: the reader runs before the writer, or the next writer
 * before the reader. One lock guards all queues, also while work runs. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cudart.h"

/* Reference-counted: events and waits may outlive the stream that the queue belongs to. */
struct gp_host_queue {
  gp_host_queue *next; /* in the list of all queues */
  gp_host_work *first, **end;
  uint64_t given, done;
  int uses;
  cudaError_t error; /* of the first work that failed since the last wait */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gp_host_queue *all;

static bool lazy;

static void read_lazy(void) {
  const char *text = getenv("GPIPE_TEST_LAZY");
  lazy = text && strcmp(text, "1") == 0;
}

bool gp_queue_is_lazy(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_lazy);
  return lazy;
}

gp_host_queue *gp_queue_new(void) {
  gp_host_queue *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->end = &made->first;
  made->uses = 1;
  pthread_mutex_lock(&lock);
  made->next = all;
  all = made;
  pthread_mutex_unlock(&lock);
  return made;
}

static void let_go(gp_host_queue *queue) {
  if (!queue || --queue->uses > 0) return;
  gp_host_queue **at = &all;
  while (*at != queue) at = &(*at)->next;
  *at = queue->next;
  free(queue);
}

/* Runs the queue up to its count-th piece of work; the caller holds the lock. Work that waits for
 * another queue runs that one. It never comes back to its own future, because an event is recorded
 * before any stream can wait for it. */
static void run_until(gp_host_queue *queue, uint64_t count) {
  while (queue->done < count) {
    gp_host_work *work = queue->first;
    queue->first = work->next;
    if (!queue->first) queue->end = &queue->first;
    const cudaError_t error = work->run(work);
    if (queue->error == cudaSuccess) queue->error = error;
    work->free(work);
    queue->done++;
  }
}

static void append(gp_host_queue *queue, gp_host_work *work) {
  work->next = NULL;
  *queue->end = work;
  queue->end = &work->next;
  queue->given++;
}

cudaError_t gp_queue_give(gp_host_queue *queue, gp_host_work *work) {
  if (!gp_queue_is_lazy()) {
    const cudaError_t error = work->run(work);
    work->free(work);
    return error;
  }
  pthread_mutex_lock(&lock);
  append(queue, work);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t gp_queue_finish(gp_host_queue *queue) {
  pthread_mutex_lock(&lock);
  run_until(queue, queue->given);
  const cudaError_t error = queue->error;
  queue->error = cudaSuccess;
  pthread_mutex_unlock(&lock);
  return error;
}

void gp_queue_finish_all(void) {
  pthread_mutex_lock(&lock);
  for (gp_host_queue *queue = all; queue; queue = queue->next) run_until(queue, queue->given);
  pthread_mutex_unlock(&lock);
}

void gp_queue_free(gp_host_queue *queue) {
  pthread_mutex_lock(&lock);
  run_until(queue, queue->given);
  let_go(queue);
  pthread_mutex_unlock(&lock);
}

/* Lua scripts call it (package.loadlib): it returns its argument if all work that was given is
 * done, else nothing. */
__attribute__((visibility("default"))) int gp_queue_all_done(void *lua);

int gp_queue_all_done(void *lua) {
  (void)lua;
  bool done = true;
  pthread_mutex_lock(&lock);
  for (const gp_host_queue *queue = all; queue; queue = queue->next)
    done = done && queue->done == queue->given;
  pthread_mutex_unlock(&lock);
  return done;
}

/* ---- points ---------------------------------------------------------------------------------- */

void gp_point_set(gp_queue_point *point, gp_host_queue *queue) {
  pthread_mutex_lock(&lock);
  gp_host_queue *before = point->queue;
  if (queue) queue->uses++;
  *point = (gp_queue_point){queue, queue ? queue->given : 0};
  let_go(before);
  pthread_mutex_unlock(&lock);
}

bool gp_point_is_reached(const gp_queue_point *point) {
  pthread_mutex_lock(&lock);
  const bool reached = !point->queue || point->queue->done >= point->count;
  pthread_mutex_unlock(&lock);
  return reached;
}

void gp_point_reach(const gp_queue_point *point) {
  pthread_mutex_lock(&lock);
  if (point->queue) run_until(point->queue, point->count);
  pthread_mutex_unlock(&lock);
}

typedef struct wait_work {
  gp_host_work work;
  gp_queue_point point;
} wait_work;

static cudaError_t run_wait(gp_host_work *work) {
  const gp_queue_point *point = &((wait_work *)work)->point;
  run_until(point->queue, point->count);
  return cudaSuccess;
}

static void free_wait(gp_host_work *work) {
  let_go(((wait_work *)work)->point.queue);
  free(work);
}

/* Waits for the record that the event stands for now; a later record stands for something else. */
cudaError_t gp_queue_wait(gp_host_queue *queue, const gp_queue_point *point) {
  wait_work *made = calloc(1, sizeof *made);
  if (!made) return cudaErrorMemoryAllocation;
  made->work = (gp_host_work){.run = run_wait, .free = free_wait};
  pthread_mutex_lock(&lock);
  const bool waits = point->queue != NULL;
  if (waits) {
    made->point = *point;
    point->queue->uses++;
    append(queue, &made->work);
  }
  pthread_mutex_unlock(&lock);
  if (!waits) free(made);
  return cudaSuccess;
}
