/* device/link/ranks/queued.c - values that go to another process of the job, if a device with a
 * queue makes or reads them.
 *
 * As with at_once.c each process has one end, a value is a message, and its slot stays as it is
 * until the reader's last use has come back (credits.h). An end on a device with a queue stages
 * values (staged.h). On one host the maker asks with the first large value for memory of the reader
 * that it can reach; the reader answers with all that it has, and later messages are heads
 * alone. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "device/link/ranks/credits.h"
#include "device/link/pool.h"
#include "device/link/ranks/side.h"
#include "device/link/ranks/queue/staged.h"
#include "device/link/ranks/ways.h"
#include "device/link/ranks/queue/wired.h"

/* What a value's message says beside the value. */
static const char asks[] = "share?", is_shared[] = "shared", is_on_device[] = "device",
                  is_wired[] = "wire", is_closed[] = "closed", is_over[] = "over";
/* How a value has come. */
enum { STAGED, DIRECT, WIRED };
/* How long a reader waits until the maker has closed its memory, in milliseconds. */
enum { PATIENCE = 2000 };

/* What a reader answers. */
typedef struct offer {
  int32_t has_shared, has_device, has_wire;
  gp_shared_offer shared;
  gp_lane_offer device; /* memory of its GPU */
  char why[120];        /* why it offers none */
  unsigned char id[GP_LANE_WIRE_ID];
  char why_no_wire[120];
} offer;

typedef struct queues_link {
  gp_link_side side;
  gp_staged_end *staged; /* NULL: the device works at once, or workers themselves do */
  gp_wired_end *wired;   /* NULL: there is no wire */
  gp_shared *shared;     /* NULL: values are sent */
  bool asks;             /* nothing was asked for yet, and it may be */
  bool has_asked;
  offer offer;           /* the reader's; the maker's: what is being received */
  atomic_bool has_offer; /* the maker's: it is complete */
  _Atomic(char *) into;  /* the maker's: slot 0 of the reader; NULL: values are sent */
  uint8_t *came;         /* the reader's, per slot: how */
  atomic_bool is_lent;   /* the reader's: the maker may have opened the GPU's memory */
} queues_link;

/* ---- the reader's port ----------------------------------------------------------------------- */

static bool says(const gp_rank_message *m, const char *what) {
  return !strncmp(m->place.what, what, sizeof m->place.what);
}

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  const queues_link *own = context;
  const gp_link *link = own->side.link;
  (void)from;
  const bool is_here =
      m->kind == GP_RANK_SHARE || says(m, is_shared) || says(m, is_on_device) || says(m, is_wired);
  *expected = is_here ? 0 : link->spec.bytes;
  if (is_here || !gp_link_side_wants(&own->side, m)) return NULL;
  char *slots = own->staged ? gp_staged_room(own->staged) : link->received;
  return slots + (size_t)m->slot * link->spec.bytes;
}

/* The maker asks once; the descriptor is open until it has what it asked for. */
static void share(queues_link *own, const gp_rank_message *m) {
  const bool has_opened = says(m, is_shared) || says(m, is_on_device);
  if (own->shared && has_opened) gp_shared_seal(own->shared);
  if (says(m, is_closed)) atomic_store(&own->is_lent, false);
  if (says(m, is_over) && own->wired) gp_wired_abort(own->wired);
  if (!says(m, asks) || (!own->shared && !own->offer.has_device && !own->wired)) return;
  if (own->offer.has_wire) gp_wired_want(own->wired);
  if (own->shared) own->offer.shared = gp_shared_offer_of(own->shared);
  own->offer.has_shared = own->shared != NULL;
  if (own->offer.has_device) atomic_store(&own->is_lent, true);
  (void)gp_link_side_offer(&own->side, &own->offer, sizeof own->offer);
}

static void note_way(queues_link *own, const gp_rank_message *m) {
  const bool wired = own->wired && says(m, is_wired);
  own->came[m->slot] = wired ? WIRED : says(m, is_on_device) ? DIRECT : STAGED;
  if (wired) gp_wired_expect(own->wired, m->slot);
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  queues_link *own = context;
  (void)from;
  share(own, m);
  if (gp_link_side_wants(&own->side, m)) note_way(own, m);
  gp_link_side_take(&own->side, m);
}

/* A process that is gone has freed what it had opened, and sends and receives nothing more. */
static void gone(void *context, const char *text) {
  queues_link *own = context;
  (void)text;
  atomic_store(&own->is_lent, false);
  if (own->wired) gp_wired_abort(own->wired);
}

/* ---- the maker's port ------------------------------------------------------------------------ */

static void *offer_room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  queues_link *own = context;
  (void)from;
  return gp_link_side_offer_room(m, &own->offer, sizeof own->offer, expected);
}

/* Memory that cannot be opened, as that of another container, is done without. */
static void offer_arrived(void *context, int32_t from, const gp_rank_message *m) {
  queues_link *own = context;
  const size_t bytes = (size_t)own->side.link->spec.slots * own->side.link->spec.bytes;
  (void)from;
  if (m->kind != GP_RANK_SHARE || atomic_load(&own->has_offer)) return;
  own->offer.why[sizeof own->offer.why - 1] = '\0';
  own->offer.why_no_wire[sizeof own->offer.why_no_wire - 1] = '\0';
  if (own->offer.has_shared && !gp_shared_open(&own->offer.shared, bytes, &own->shared))
    atomic_store(&own->into, gp_shared_data(own->shared));
  atomic_store(&own->has_offer, true);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool joins(const gp_lane *from, const gp_lane *to) {
  return from->rank != to->rank && !(from->facts->at_once && to->facts->at_once);
}

/* Let a maker that is a GPU write to this one's memory. */
static void offer_device(queues_link *own) {
  const gp_link_spec *spec = &own->side.link->spec;
  if (!gp_way_is_queued(spec, spec->from) || !spec->stays || !spec->to->sharing) return;
  if (!spec->to->sharing->offer(spec->to, spec->received, &own->offer.device))
    own->offer.has_device = 1;
  else
    snprintf(own->offer.why, sizeof own->offer.why, "%s", gp_error_text());
}

static void offer_wire(queues_link *own) {
  const char *why;
  const unsigned char *id = gp_wired_id(own->wired, &why);
  own->offer.has_wire = id != NULL;
  if (id) memcpy(own->offer.id, id, sizeof own->offer.id);
  snprintf(own->offer.why_no_wire, sizeof own->offer.why_no_wire, "%s", why);
}

/* Make memory that the maker can reach, too, if the host has it and this end can use it. */
static gp_status open_reader(gp_link *link) {
  queues_link *own = link->self;
  const size_t slots = (size_t)link->spec.slots;
  GP_TRY(gp_alloc_array(slots, sizeof *own->came, (void **)&own->came));
  if (own->wired) offer_wire(own);
  if (gp_way_is_shared(&link->spec)) (void)gp_shared_new(slots * link->spec.bytes, &own->shared);
  if (!gp_way_is_queued(&link->spec, link->spec.to)) {
    if (own->shared) link->received = gp_shared_data(own->shared);
    return GP_OK;
  }
  if (gp_way_is_shared(&link->spec)) offer_device(own);
  GP_TRY(gp_staged_reader_new(link, own->shared, &own->staged));
  if (!own->shared || gp_staged_room(own->staged) == gp_shared_data(own->shared)) return GP_OK;
  gp_shared_free(own->shared);
  own->shared = NULL;
  return GP_OK;
}

static gp_status open_maker(gp_link *link) {
  queues_link *own = link->self;
  return gp_way_is_queued(&link->spec, link->spec.from) ? gp_staged_maker_new(link, &own->staged)
                                                        : GP_OK;
}

static gp_status open_link(gp_link *link) {
  queues_link *own;
  GP_TRY(gp_alloc(sizeof *own, (void **)&own));
  link->self = own;
  GP_TRY(gp_link_side_open(&own->side, link));
  const bool wires = gp_way_is_wired(&link->spec);
  own->asks = gp_way_is_shared(&link->spec) || wires;
  if (wires) GP_TRY(gp_wired_new(link, own->side.makes, &own->wired));
  link->quiet = own->wired != NULL;
  gp_port port = {.number = link->spec.port, .context = own};
  port.room = own->side.makes ? offer_room : room;
  port.arrived = own->side.makes ? offer_arrived : arrived;
  port.gone = gone;
  GP_TRY(own->side.makes ? open_maker(link) : open_reader(link));
  return gp_ports_add(&port);
}

/* Wait until the maker has closed this GPU's memory, because only then it may be freed. All ranks
 * close their links in the same order, so none waits for a rank that waits for it. After one that
 * did not answer none is waited for. */
static void await_close(const queues_link *own) {
  static atomic_int waited; /* milliseconds in all that were for nothing */
  const struct timespec nap = {.tv_nsec = 1000000};
  for (; atomic_load(&waited) < PATIENCE && atomic_load(&own->is_lent);
       atomic_fetch_add(&waited, 1))
    nanosleep(&nap, NULL);
  if (!atomic_load(&own->is_lent)) atomic_store(&waited, 0);
}

static void close_link(gp_link *link) {
  queues_link *own = link->self;
  if (!own) return;
  await_close(own);
  gp_ports_remove(link->spec.port);
  gp_staged_free(own->staged); /* it has pinned what is shared, and opened what is lent */
  /* An offer that comes later finds no port, so it is not opened. */
  if (own->has_asked && own->staged) (void)gp_link_side_say(&own->side, is_closed);
  gp_shared_free(own->shared);
  gp_wired_free(own->wired);
  gp_free(own->came);
  gp_link_side_close(&own->side);
  gp_free(own);
}

static void begin(gp_link *link) {
  queues_link *own = link->self;
  gp_link_side_begin(&own->side);
  if (own->staged) gp_staged_begin(own->staged);
}

/* ---- the two ends ---------------------------------------------------------------------------- */

/* The words that the maker looks at say whether the reader's last use has come back. A second maker
 * in this process also waits for the reader's queue. */
static gp_status acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready) {
  const queues_link *own = link->self;
  *ready = true;
  if (!own->staged) return GP_OK;
  return own->side.makes ? gp_staged_follow(own->staged, lane, turn.slot)
                         : gp_staged_acquire(own->staged, lane, turn.slot, ready);
}

/* The memory of the reader's GPU, if this end may write to it. */
static char *device_of(queues_link *own, int32_t slot) {
  const offer *o = &own->offer;
  if (!own->staged || !atomic_load(&own->has_offer)) return NULL;
  if (!o->has_device && !o->why[0]) return NULL;
  return gp_staged_device(own->staged, &o->device, o->has_device ? NULL : o->why, slot);
}

/* The reader's memory in this process, if this end may write to it. */
static char *target_of(queues_link *own) {
  char *into = atomic_load(&own->into);
  return own->staged && !gp_staged_writes(own->staged, into) ? NULL : into;
}

/* May the value go by the wire? Until it is connected values go another way. */
static bool is_wire_up(queues_link *own) {
  const offer *o = &own->offer;
  if (!own->wired || !atomic_load(&own->has_offer)) return false;
  gp_wired_connect(own->wired, o->has_wire ? o->id : NULL, o->why_no_wire);
  return o->has_wire && gp_wired_is_up(own->wired);
}

/* The reader posts its side when the message comes; it is told if this one fails. */
static gp_status send_by_wire(const gp_link *link, gp_link_turn turn, gp_rank_message *m) {
  const queues_link *own = link->self;
  m->bytes = 0;
  memcpy(m->place.what, is_wired, sizeof is_wired);
  GP_TRY(gp_ranks_send(link->spec.to->rank, m, NULL));
  const gp_status status = gp_wired_send(own->wired, turn.slot);
  if (status) (void)gp_link_side_say(&own->side, is_over);
  return status;
}

static gp_status publish(gp_link *link, gp_link_turn turn) {
  queues_link *own = link->self;
  const bool wired = is_wire_up(own);
  char *device = wired ? NULL : device_of(own, turn.slot), *into = device ? device : target_of(own);
  gp_rank_message m = gp_link_side_value(&own->side, turn);
  if (into) m.bytes = 0;
  if (into && !device) memcpy(m.place.what, is_shared, sizeof is_shared);
  if (device) memcpy(m.place.what, is_on_device, sizeof is_on_device);
  if (!into && own->asks) memcpy(m.place.what, asks, sizeof asks);
  own->has_asked |= own->asks && !into;
  own->asks = false;
  gp_credits_owe(link->spec.credits, link->spec.uses);
  if (wired) return send_by_wire(link, turn, &m);
  if (own->staged) return gp_staged_send(own->staged, turn, &m, into);
  const char *value = link->spec.made + (size_t)turn.slot * link->spec.bytes;
  if (into) memcpy(into + (size_t)turn.slot * link->spec.bytes, value, link->spec.bytes);
  return gp_ranks_send(link->spec.to->rank, &m, value);
}

static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  const queues_link *own = link->self;
  *ready = gp_link_has(link, turn);
  if (*ready && own->came[turn.slot] == WIRED)
    return gp_wired_receive(own->wired, turn.slot, ready);
  const bool brings = *ready && own->staged && own->came[turn.slot] == STAGED;
  return brings ? gp_staged_bring(own->staged, turn) : GP_OK;
}

/* gp_credits_tell tells the maker. */
static gp_status release(gp_link *link, gp_link_turn turn) {
  const queues_link *own = link->self;
  return own->staged ? gp_staged_use(own->staged, turn.slot) : GP_OK;
}

static gp_status poll_wire(const gp_link *link, gp_link_left *left) {
  const queues_link *own = link->self;
  bool busy;
  const gp_status status = gp_wired_poll(own->wired, &busy);
  if (busy && own->side.makes) *left = GP_LINK_MESSAGES_LEFT;
  if (status && own->side.makes) (void)gp_link_side_say(&own->side, is_over);
  return status;
}

/* Messages are sent by the thread of ranks/net.c, so only credits are waited for. A lost device is
 * noticed here. */
static gp_status poll_end(gp_link *link, gp_link_end end, gp_link_left *left) {
  const queues_link *own = link->self;
  const bool is_here = own->side.makes == (end == GP_LINK_MAKER);
  const bool owed = end == GP_LINK_MAKER && gp_credits_are_owed(link->spec.credits);
  *left = owed ? GP_LINK_CREDITS_LEFT : GP_LINK_NOTHING_LEFT;
  if (own->wired && is_here) GP_TRY(poll_wire(link, left));
  return own->staged && is_here ? gp_staged_look(own->staged) : GP_OK;
}

static void give_up(gp_link *link, gp_link_end end) {
  const queues_link *own = link->self;
  if (own->wired) gp_wired_abort(own->wired);
  gp_link_side_give_up(link, end);
}

const gp_link_ops gp_link_queues = {.name = "queues",
                                    .carries_words = true,
                                    .joins = joins,
                                    .open = open_link,
                                    .close = close_link,
                                    .begin = begin,
                                    .acquire = acquire,
                                    .publish = publish,
                                    .receive = receive,
                                    .release = release,
                                    .poll = poll_end,
                                    .give_up = give_up};
