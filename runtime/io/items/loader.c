/* io/items/loader.c - threads that make the batches of a walk ahead of time.
 *
 * Any free thread makes batch k, and the loader returns batches in order from slot k % prefetch: so
 * what a script sees does not depend on the number of threads. At most `prefetch` batches are ready
 * or being made: a thread begins batch k only after batch k - prefetch was returned. */
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "base/thread.h"
#include "gpipe/process.h"
#include "io/items/items.h"

enum { PATIENCE_NS = 50000000 }; /* between two looks for an interrupt */

typedef struct slot {
  gp_tensor *x, *y;
  bool ready;
  gp_status status;
  char *text; /* owned: the text of a failure; NULL if there was no memory for it */
} slot;

struct gp_loader {
  gp_items *items;
  gp_tensor *positions;
  gp_loader_options options;
  int64_t batches;       /* of the walk */
  pthread_mutex_t mutex; /* guards what follows */
  pthread_cond_t room, ready;
  bool stop;
  int64_t begun, taken; /* batches that threads have begun, and that were returned */
  int started;
  slot *slot;        /* [prefetch] */
  pthread_t *thread; /* [workers] */
};

/* ---- a thread -------------------------------------------------------------------------------- */

static gp_status view_positions(const gp_loader *l, int64_t batch, gp_tensor **view) {
  int64_t first = l->options.first + batch * l->options.size;
  int64_t left = gp_tensor_numel(l->positions) - first;
  gp_shape shape = {.rank = 1, .dim = {left < l->options.size ? left : l->options.size}};
  GP_TRY(gp_tensor_new(GP_I64, &shape, view));
  memcpy(gp_tensor_data(*view), (int64_t *)gp_tensor_data(l->positions) + first,
         (size_t)shape.dim[0] * sizeof(int64_t));
  return GP_OK;
}

static void make_batch(const gp_loader *l, int64_t batch, slot *made) {
  gp_tensor *positions = NULL;
  made->status = view_positions(l, batch, &positions);
  if (!made->status)
    made->status = gp_items_batch(l->items, positions, l->options.key, &made->x, &made->y);
  gp_tensor_free(positions);
  if (made->status) gp_copy_string(gp_error_text(), &made->text);
  made->ready = true;
}

static void *work(void *context) {
  gp_loader *l = context;
  pthread_mutex_lock(&l->mutex);
  while (!l->stop && l->begun < l->batches) {
    if (l->begun - l->taken >= l->options.prefetch) {
      pthread_cond_wait(&l->room, &l->mutex);
      continue;
    }
    int64_t batch = l->begun++;
    pthread_mutex_unlock(&l->mutex);
    slot made = {0};
    make_batch(l, batch, &made);
    pthread_mutex_lock(&l->mutex);
    l->slot[batch % l->options.prefetch] = made;
    pthread_cond_signal(&l->ready);
  }
  pthread_mutex_unlock(&l->mutex);
  return NULL;
}

/* ---- the script's side ----------------------------------------------------------------------- */

/* Wait until batch `taken` is ready; the caller holds the mutex. */
static gp_status wait_for(gp_loader *l, const slot *next) {
  while (!next->ready) {
    if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "batches: interrupted");
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PATIENCE_NS;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&l->ready, &l->mutex, &until);
  }
  return GP_OK;
}

gp_status gp_loader_next(gp_loader *l, gp_tensor **x, gp_tensor **y) {
  *x = *y = NULL;
  if (l->taken >= l->batches) return GP_OK;
  slot *next = &l->slot[l->taken % l->options.prefetch];
  pthread_mutex_lock(&l->mutex);
  gp_status status = wait_for(l, next);
  if (!status) {
    status = next->status;
    if (status) {
      gp_fail_text(status, next->text ? next->text : "batches: no memory for a message");
    } else {
      *x = next->x, *y = next->y;
      *next = (slot){0};
      l->taken++;
      pthread_cond_signal(&l->room);
    }
  }
  pthread_mutex_unlock(&l->mutex);
  return status;
}

void gp_loader_free(gp_loader *l) {
  if (!l) return;
  pthread_mutex_lock(&l->mutex);
  l->stop = true;
  pthread_cond_broadcast(&l->room);
  pthread_mutex_unlock(&l->mutex);
  for (int i = 0; i < l->started; i++) pthread_join(l->thread[i], NULL);
  for (int i = 0; l->slot && i < l->options.prefetch; i++) {
    gp_tensor_free(l->slot[i].x);
    gp_tensor_free(l->slot[i].y);
    gp_free(l->slot[i].text);
  }
  pthread_cond_destroy(&l->room);
  pthread_cond_destroy(&l->ready);
  pthread_mutex_destroy(&l->mutex);
  gp_items_free(l->items);
  gp_tensor_free(l->positions);
  gp_free(l->slot);
  gp_free(l->thread);
  gp_free(l);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void init_waiting(gp_loader *l) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&l->mutex, NULL);
  pthread_cond_init(&l->room, NULL);
  pthread_cond_init(&l->ready, &clock);
  pthread_condattr_destroy(&clock);
}

static gp_status start(gp_loader *l) {
  void *slots = NULL, *threads = NULL;
  GP_TRY(gp_alloc_array((size_t)l->options.prefetch, sizeof(slot), &slots));
  l->slot = slots;
  GP_TRY(gp_alloc_array((size_t)l->options.workers, sizeof(pthread_t), &threads));
  l->thread = threads;
  int64_t left = gp_tensor_numel(l->positions) - l->options.first;
  l->batches = left > 0 ? (left - 1) / l->options.size + 1 : 0;
  for (int i = 0; i < l->options.workers && i < l->batches; i++, l->started++)
    GP_TRY(gp_thread_start(&l->thread[i], &(gp_thread_options){.name = "loader"}, work, l));
  return GP_OK;
}

gp_status gp_loader_new(gp_items *items, gp_tensor *positions, const gp_loader_options *options,
                        gp_loader **loader) {
  if (options->workers < 1 || options->prefetch < 1 || options->size < 1 || options->first < 0)
    return gp_fail(GP_EINVAL, "batches: workers, prefetch and size are less than 1");
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof(gp_loader), &memory));
  gp_loader *l = memory;
  l->items = gp_items_retain(items);
  l->positions = gp_tensor_retain(positions);
  l->options = *options;
  init_waiting(l);
  gp_status status = start(l);
  if (status)
    gp_loader_free(l);
  else
    *loader = l;
  return status;
}
