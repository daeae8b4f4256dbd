/* ranks/spare.c - what messages take from threads that compute on the cores of this process.
 *
 * It is more than the time that threads of ours work for a message: the system handles interrupts
 * in whichever thread is there, threads that are woken push others aside, and what computes and
 * what is sent drive each other out of the caches. So threads compute on every core, with as many
 * values as layers have, and count how far they come. Intervals without messages tell how fast they
 * are, and take turns with others, because a core is not as fast now as it was a second ago; of all
 * intervals the middle one counts, because other programs disturb some of them. */
#include "ranks/spare.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/median.h"
#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/process.h"

enum { VALUES = 2 << 20, BLOCK = 4 << 10 }; /* f32: 8 MiB, in pieces that are counted */

typedef struct counter {
  pthread_t thread;
  _Atomic int64_t blocks;
  const _Atomic bool *over;
  float *values;
} counter;

typedef struct interval {
  double seconds, blocks; /* of all threads */
  int messages;
} interval;

struct gp_spare {
  counter *counters;
  int count;
  _Atomic bool over;
  int64_t began, blocks; /* when the interval began, ns; blocks of all threads by then */
  interval *intervals;
  size_t noted, capacity;
};

/* ---- intervals ------------------------------------------------------------------------------- */

static void begin(gp_spare *s) {
  s->began = gp_now_ns();
  s->blocks = 0;
  for (int i = 0; i < s->count; i++) s->blocks += atomic_load(&s->counters[i].blocks);
}

gp_status gp_spare_note(gp_spare *spare, int messages) {
  const int64_t began = spare->began, before = spare->blocks;
  GP_TRY(gp_grow_array(spare->noted, &spare->capacity, sizeof *spare->intervals,
                       (void **)&spare->intervals));
  begin(spare);
  spare->intervals[spare->noted++] =
      (interval){.seconds = 1e-9 * (double)(spare->began - began) * spare->count,
                 .blocks = (double)(spare->blocks - before),
                 .messages = messages};
  return GP_OK;
}

/* The middle one of a figure of the intervals with messages, or of those without: seconds of a
 * block, or seconds that a message takes where a block takes so many. NAN: there are none. */
static double middle(const gp_spare *s, bool with, double block) {
  double *list, result = NAN;
  size_t count = 0;
  if (gp_alloc_array(s->noted, sizeof *list, (void **)&list)) return NAN;
  for (size_t i = 0; i < s->noted; i++) {
    const interval *one = &s->intervals[i];
    if ((one->messages > 0) != with) continue;
    list[count++] =
        with ? (one->seconds - block * one->blocks) / one->messages : one->seconds / one->blocks;
  }
  if (count > 0) result = gp_median(list, count);
  gp_free(list);
  return result;
}

double gp_spare_lost(const gp_spare *spare) {
  return spare ? fmax(0, middle(spare, true, middle(spare, false, 0))) : 0; /* 0 for NAN */
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *compute(void *context) {
  counter *c = context;
  for (size_t at = 0; !atomic_load_explicit(c->over, memory_order_relaxed);) {
    float *block = c->values + at;
    for (int i = 0; i < BLOCK; i++) block[i] = 0.5f * block[i] + 1.0f;
    at = (at + BLOCK) % VALUES;
    atomic_fetch_add_explicit(&c->blocks, 1, memory_order_relaxed);
  }
  return NULL;
}

static gp_status start_counters(gp_spare *s, int cores) {
  GP_TRY(gp_alloc_array((size_t)cores, sizeof *s->counters, (void **)&s->counters));
  for (; s->count < cores; s->count++) {
    counter *c = &s->counters[s->count];
    const gp_thread_options options = {.name = "spare", .cores = &s->count, .core_count = 1};
    c->over = &s->over;
    GP_TRY(gp_alloc_array(VALUES, sizeof *c->values, (void **)&c->values));
    gp_status status = gp_thread_start(&c->thread, &options, compute, c);
    if (status) return gp_free(c->values), status;
  }
  return GP_OK;
}

gp_status gp_spare_start(gp_spare **spare) {
  GP_TRY(gp_alloc(sizeof **spare, (void **)spare));
  gp_status status = start_counters(*spare, gp_machine_info().cores);
  if (status)
    gp_spare_stop(*spare), *spare = NULL;
  else
    begin(*spare);
  return status;
}

void gp_spare_stop(gp_spare *spare) {
  if (!spare) return;
  atomic_store(&spare->over, true);
  for (int i = 0; i < spare->count; i++) {
    pthread_join(spare->counters[i].thread, NULL);
    gp_free(spare->counters[i].values);
  }
  gp_free(spare->counters);
  gp_free(spare->intervals);
  gp_free(spare);
}
