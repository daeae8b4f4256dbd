/* device/link/ranks/queue/outbox.c - see outbox.h: a ring of messages that wait.
 *
 * The driver's thread and a flush after an error may both come to a place of the ring; the first
 * one to change its state sends the message. */
#include "device/link/ranks/queue/outbox.h"

#include <stdatomic.h>

#include "base/memory.h"

typedef enum state { FREE, WAITS, IS_SENT } state;

typedef struct place {
  gp_outbox_item item;
  gp_outbox *outbox;
  _Atomic int state;
} place;

struct gp_outbox {
  const gp_lane *lane; /* borrowed */
  gp_lane_event *made; /* on the compute stream */
  gp_lane_event *last; /* on the send stream, behind the last message */
  place **ring;        /* each is allocated by itself: the driver knows its address */
  size_t room, next;
  _Atomic size_t waiting;
};

/* ---- life ------------------------------------------------------------------------------------ */

gp_status gp_outbox_new(const gp_lane *lane, gp_outbox **outbox) {
  gp_outbox *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->lane = lane;
  gp_status status = lane->streams->event_new(lane, false, &made->made);
  if (!status) status = lane->streams->event_new(lane, false, &made->last);
  if (status) return gp_outbox_free(made), status;
  *outbox = made;
  return GP_OK;
}

void gp_outbox_free(gp_outbox *o) {
  if (!o) return;
  o->lane->streams->event_free(o->lane, o->made);
  o->lane->streams->event_free(o->lane, o->last);
  for (size_t i = 0; i < o->room; i++) gp_free(o->ring[i]);
  gp_free(o->ring);
  gp_free(o);
}

gp_status gp_outbox_reserve(gp_outbox *o, size_t count) {
  GP_TRY(gp_resize_array(o->room, o->room + count, sizeof *o->ring, (void **)&o->ring));
  for (; count; count--) {
    place *made;
    GP_TRY(gp_alloc(sizeof *made, (void **)&made));
    made->outbox = o;
    o->ring[o->room++] = made;
  }
  return GP_OK;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A message that cannot be queued for want of memory is lost; the watchdog of the rank that waits
 * for it says so. */
static void send_now(const gp_outbox_item *item) {
  (void)gp_ranks_send(item->rank, &item->message, item->payload);
}

/* Send what waits in a place, unless that was done. */
static void send_place(void *context) {
  place *p = context;
  int was = WAITS;
  if (!atomic_compare_exchange_strong(&p->state, &was, IS_SENT)) return;
  send_now(&p->item);
  atomic_fetch_sub(&p->outbox->waiting, 1);
  atomic_store(&p->state, FREE); /* last: the worker may fill it again */
}

static void send_all(gp_outbox *o) {
  for (size_t i = 0; i < o->room; i++) send_place(o->ring[(o->next + i) % o->room]);
}

gp_status gp_outbox_follow(gp_outbox *o) {
  const gp_lane *lane = o->lane;
  GP_TRY(lane->streams->record(lane, GP_STREAM_COMPUTE, o->made));
  return lane->streams->wait(lane, GP_STREAM_SEND, o->made);
}

static gp_status enqueue(gp_outbox *o, place *p) {
  const gp_lane *lane = o->lane;
  GP_TRY(lane->streams->call(lane, GP_STREAM_SEND, send_place, p));
  return lane->streams->record(lane, GP_STREAM_SEND, o->last);
}

/* The ring has a place for every message that can wait; that they are all taken means that the
 * device is far behind, so this waits for it. */
gp_status gp_outbox_post(gp_outbox *o, const gp_outbox_item *item) {
  place *p = o->room ? o->ring[o->next] : NULL;
  gp_status status = p && atomic_load(&p->state) != FREE ? gp_outbox_flush(o) : GP_OK;
  if (!p || status) return send_now(item), status;
  o->next = (o->next + 1) % o->room;
  p->item = *item;
  atomic_fetch_add(&o->waiting, 1);
  atomic_store(&p->state, WAITS);
  status = enqueue(o, p);
  if (status) send_place(p);
  return status;
}

gp_status gp_outbox_look(gp_outbox *o) {
  bool done = false;
  if (!atomic_load(&o->waiting)) return GP_OK;
  gp_status status = o->lane->streams->is_done(o->lane, o->last, &done);
  if (status) send_all(o);
  return status;
}

gp_status gp_outbox_flush(gp_outbox *o) {
  gp_status status = o->lane->streams->sync(o->lane, GP_STREAM_SEND);
  if (status) send_all(o);
  return status;
}
