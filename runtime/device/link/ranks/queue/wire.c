/* device/link/ranks/queue/wire.c - see wire.h: a queue of transfers, of which one is with the
 * library. */
#include "device/link/ranks/queue/wire.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

typedef enum phase { UNUSED, WANTED, CONNECTING, UP, OVER } phase;

struct gp_wire {
  const gp_lane *lane; /* borrowed */
  bool sends, has_id;
  unsigned char id[GP_LANE_WIRE_ID];
  char why[200];
  pthread_mutex_t lock; /* guards what follows */
  phase phase;
  gp_lane_wire *native; /* NULL until it is connected */
  gp_wire_item *ring;
  size_t room, first, count;
  bool is_moving; /* the worker's: the first item was given to the library */
};

/* ---- life ------------------------------------------------------------------------------------ */

gp_status gp_wire_new(const gp_lane *lane, bool sends, gp_wire **wire) {
  gp_wire *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->lane = lane;
  made->sends = sends;
  pthread_mutex_init(&made->lock, NULL);
  if (!sends) {
    made->has_id = !lane->wires->id(made->id);
    if (!made->has_id) snprintf(made->why, sizeof made->why, "%s", gp_error_text());
  }
  *wire = made;
  return GP_OK;
}

void gp_wire_free(gp_wire *w) {
  if (!w) return;
  if (w->native) w->lane->wires->close(w->native);
  pthread_mutex_destroy(&w->lock);
  gp_free(w->ring);
  gp_free(w);
}

/* Before the first run: the ring is empty. */
gp_status gp_wire_reserve(gp_wire *w, size_t count) {
  GP_TRY(gp_resize_array(w->room, w->room + count, sizeof *w->ring, (void **)&w->ring));
  w->room += count;
  return GP_OK;
}

const unsigned char *gp_wire_id(gp_wire *w) { return w->has_id ? w->id : NULL; }
const char *gp_wire_why(const gp_wire *w) { return w->why; }

/* ---- connecting ------------------------------------------------------------------------------ */

void gp_wire_want(gp_wire *w) {
  pthread_mutex_lock(&w->lock);
  if (w->phase == UNUSED) w->phase = WANTED;
  pthread_mutex_unlock(&w->lock);
}

void gp_wire_connect(gp_wire *w, const unsigned char *id) {
  if (w->has_id) return;
  memcpy(w->id, id, sizeof w->id);
  w->has_id = true;
  gp_wire_want(w);
}

/* Note how a call of the library has ended; an abort meanwhile stays. Call with the lock. */
static void enter(gp_wire *w, gp_status status, phase next) {
  if (w->phase == OVER) return;
  if (status) snprintf(w->why, sizeof w->why, "%s", gp_error_text());
  w->phase = status ? OVER : next;
}

static phase phase_of(gp_wire *w) {
  pthread_mutex_lock(&w->lock);
  const phase now = w->phase;
  pthread_mutex_unlock(&w->lock);
  return now;
}

static void open_native(gp_wire *w) {
  gp_lane_wire *made = NULL;
  const gp_status status = w->lane->wires->open(w->lane, w->id, w->sends, &made);
  pthread_mutex_lock(&w->lock);
  w->native = made;
  enter(w, status, CONNECTING);
  pthread_mutex_unlock(&w->lock);
}

static void ask_native(gp_wire *w) {
  bool ready = false;
  const gp_status status = w->lane->wires->ready(w->native, &ready);
  pthread_mutex_lock(&w->lock);
  if (status || ready) enter(w, status, UP);
  pthread_mutex_unlock(&w->lock);
}

/* What goes wrong before the first value is no failure: values go another way. */
bool gp_wire_is_up(gp_wire *w) {
  if (phase_of(w) == WANTED) open_native(w);
  if (phase_of(w) == CONNECTING) ask_native(w);
  return phase_of(w) == UP;
}

/* ---- transfers ------------------------------------------------------------------------------- */

/* There is room: each slot of a link is posted once at a time. */
void gp_wire_post(gp_wire *w, const gp_wire_item *item) {
  pthread_mutex_lock(&w->lock);
  if (item->state) atomic_store(item->state, GP_WIRE_POSTED);
  if (w->count < w->room) w->ring[(w->first + w->count++) % w->room] = *item;
  pthread_mutex_unlock(&w->lock);
}

/* Read the first item; false: there is none, or the wire is not up. */
static bool first_of(gp_wire *w, gp_wire_item *item) {
  pthread_mutex_lock(&w->lock);
  const bool any = w->phase == UP && w->count;
  if (any) *item = w->ring[w->first];
  pthread_mutex_unlock(&w->lock);
  return any;
}

/* The value has moved, unless the wire was aborted meanwhile. */
static void pop(gp_wire *w, const gp_wire_item *item) {
  pthread_mutex_lock(&w->lock);
  const bool any = w->phase == UP && w->count;
  if (any) w->first = (w->first + 1) % w->room, w->count--;
  if (any && item->state) atomic_store(item->state, GP_WIRE_MOVED);
  w->is_moving = false;
  pthread_mutex_unlock(&w->lock);
}

/* Give the first item to the library, or ask whether it has taken it. An event is recorded only
 * when it has: before, it would stand for nothing. */
static gp_status move_first(gp_wire *w, const gp_wire_item *item, bool *moved) {
  const gp_lane_wires *wires = w->lane->wires;
  if (!w->is_moving) GP_TRY(wires->move(w->native, item->after, item->memory, item->bytes));
  w->is_moving = true;
  GP_TRY(wires->ready(w->native, moved));
  return *moved && item->done ? wires->record(w->native, item->done) : GP_OK;
}

static void fail(gp_wire *w, gp_status status) {
  pthread_mutex_lock(&w->lock);
  enter(w, status, OVER);
  w->count = 0;
  pthread_mutex_unlock(&w->lock);
}

/* The library is called without the lock, so that a message that comes meanwhile is not held up. */
gp_status gp_wire_move(gp_wire *w) {
  gp_wire_item item;
  bool moved = true;
  (void)gp_wire_is_up(w);
  while (moved && first_of(w, &item)) {
    moved = false;
    const gp_status status = move_first(w, &item, &moved);
    if (status) return fail(w, status), status;
    if (moved) pop(w, &item);
  }
  return GP_OK;
}

bool gp_wire_is_idle(gp_wire *w) {
  pthread_mutex_lock(&w->lock);
  const bool idle = w->count == 0;
  pthread_mutex_unlock(&w->lock);
  return idle;
}

void gp_wire_abort(gp_wire *w) {
  pthread_mutex_lock(&w->lock);
  if (w->native && w->phase != OVER) w->lane->wires->abort(w->native);
  if (!w->why[0]) snprintf(w->why, sizeof w->why, "the run was given up");
  w->phase = OVER;
  w->count = 0;
  pthread_mutex_unlock(&w->lock);
}
