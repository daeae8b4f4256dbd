/* device/link/queued.c - values that go to another process of the job, where a device at either end
 * has a queue.
 *
 * An end on a device with a queue stages values in the host's memory (staged.h); the other end is as
 * in rank.c. Where both are on one host, and values are large, the reader's slots or staging buffer
 * are memory that both can reach: the maker asks for it with the first value, and writes later ones
 * to it. Two GPUs that reach each other copy from memory to memory. A message tells of each value,
 * because a queue knows when it is there. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "device/link/credits.h"
#include "device/link/side.h"
#include "device/link/pool.h"
#include "device/link/staged.h"
#include "ranks/ranks.h"

/* Smaller values are part of their message: a second way would save nothing. */
enum { LEAST_SHARED = 16384 };
/* What a value's message says beside the value. */
static const char asks[] = "share?", is_shared[] = "shared", is_on_device[] = "device",
                  is_closed[] = "closed";
/* How long a reader waits until the maker has closed its memory, in milliseconds. */
enum { PATIENCE = 2000 };

/* What a reader answers. */
typedef struct offer {
  int32_t has_shared, has_device;
  gp_shared_offer shared;
  gp_lane_offer device; /* memory of its GPU */
  char why[120];        /* why it offers none */
} offer;

typedef struct queued_link {
  gp_link_side side;
  gp_staged_end *staged; /* NULL: the device works at once, or workers themselves do */
  gp_shared *shared;     /* NULL: values are sent */
  bool asks;             /* nothing was asked for yet, and it may be */
  bool has_asked;
  offer offer;           /* the reader's; the maker's: what is being received */
  atomic_bool has_offer; /* the maker's: it is complete */
  _Atomic(char *) into;  /* the maker's: slot 0 of the reader; NULL: values are sent */
  bool *came_direct;     /* the reader's, per slot: the value is in the GPU's memory */
  atomic_bool is_lent;   /* the reader's: the maker may have opened the GPU's memory */
} queued_link;

/* Does the end's device have a queue that the value passes through? */
static bool is_queued(const gp_link *link, const gp_lane *lane) {
  return !link->spec.host && !lane->facts->at_once;
}

static bool may_share(const queued_link *own) {
  const gp_link *link = own->side.link;
  const bool has_room = link->spec.may_own || is_queued(link, link->spec.to);
  return has_room && link->spec.bells && link->spec.bytes >= LEAST_SHARED &&
         gp_ranks_are_near(gp_link_side_other(&own->side));
}

/* ---- the reader's port ----------------------------------------------------------------------- */

static bool says(const gp_rank_message *m, const char *what) {
  return !strncmp(m->what, what, sizeof m->what);
}

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  const queued_link *own = context;
  const gp_link *link = own->side.link;
  (void)from;
  const bool is_here = says(m, is_shared) || says(m, is_on_device) || says(m, is_closed);
  *expected = is_here ? 0 : link->spec.bytes;
  if (is_here || !gp_link_side_wants(&own->side, m)) return NULL;
  char *slots = own->staged ? gp_staged_room(own->staged) : link->received;
  return slots + (size_t)m->slot * link->spec.bytes;
}

/* The maker asks once; the descriptor is open until it has what it asked for. */
static void share(queued_link *own, int32_t from, const gp_rank_message *m) {
  const bool has_opened = says(m, is_shared) || says(m, is_on_device);
  if (own->shared && has_opened) gp_shared_seal(own->shared);
  if (says(m, is_closed)) atomic_store(&own->is_lent, false);
  if (!says(m, asks) || (!own->shared && !own->offer.has_device)) return;
  if (own->shared) own->offer.shared = gp_shared_offer_of(own->shared);
  own->offer.has_shared = own->shared != NULL;
  if (own->offer.has_device) atomic_store(&own->is_lent, true);
  const gp_rank_message answer = {
      .kind = GP_RANK_SHARE, .port = own->side.link->spec.port, .bytes = sizeof own->offer};
  (void)gp_ranks_send_copy(from, &answer, &own->offer);
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  queued_link *own = context;
  share(own, from, m);
  if (gp_link_side_wants(&own->side, m)) own->came_direct[m->slot] = says(m, is_on_device);
  gp_link_side_take(&own->side, m);
}

/* The maker's process frees what it had opened. */
static void gone(void *context, const char *text) {
  queued_link *own = context;
  (void)text;
  atomic_store(&own->is_lent, false);
}

/* ---- the maker's port ------------------------------------------------------------------------ */

static void *offer_room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  queued_link *own = context;
  (void)from;
  *expected = m->kind == GP_RANK_SHARE ? sizeof own->offer : 0;
  return m->kind == GP_RANK_SHARE ? &own->offer : NULL;
}

/* Memory that cannot be opened, as that of another container, is done without. */
static void offer_arrived(void *context, int32_t from, const gp_rank_message *m) {
  queued_link *own = context;
  const size_t bytes = (size_t)own->side.link->spec.slots * own->side.link->spec.bytes;
  (void)from;
  if (m->kind != GP_RANK_SHARE || atomic_load(&own->has_offer)) return;
  own->offer.why[sizeof own->offer.why - 1] = '\0';
  if (own->offer.has_shared && !gp_shared_open(&own->offer.shared, bytes, &own->shared))
    atomic_store(&own->into, gp_shared_data(own->shared));
  atomic_store(&own->has_offer, true);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool joins(const gp_lane *from, const gp_lane *to) { return from->rank != to->rank; }

/* Let a maker that is a GPU write to this one's memory. */
static void offer_device(queued_link *own) {
  const gp_link_spec *spec = &own->side.link->spec;
  if (!is_queued(own->side.link, spec->from) || !spec->stays || !spec->to->sharing) return;
  if (!spec->to->sharing->offer(spec->to, spec->received, &own->offer.device))
    own->offer.has_device = 1;
  else
    snprintf(own->offer.why, sizeof own->offer.why, "%s", gp_error_text());
}

/* Make memory that the maker can reach, too, if the host has it and this end can use it. */
static gp_status open_reader(gp_link *link) {
  queued_link *own = link->self;
  const size_t slots = (size_t)link->spec.slots;
  GP_TRY(gp_alloc_array(slots, sizeof *own->came_direct, (void **)&own->came_direct));
  if (own->asks) (void)gp_shared_new(slots * link->spec.bytes, &own->shared);
  if (!is_queued(link, link->spec.to)) {
    if (own->shared) link->received = gp_shared_data(own->shared);
    return GP_OK;
  }
  if (own->asks) offer_device(own);
  GP_TRY(gp_staged_reader_new(link, own->shared, &own->staged));
  if (!own->shared || gp_staged_room(own->staged) == gp_shared_data(own->shared)) return GP_OK;
  gp_shared_free(own->shared);
  own->shared = NULL;
  return GP_OK;
}

static gp_status open_maker(gp_link *link) {
  queued_link *own = link->self;
  return is_queued(link, link->spec.from) ? gp_staged_maker_new(link, &own->staged) : GP_OK;
}

static gp_status open_link(gp_link *link) {
  queued_link *own;
  GP_TRY(gp_alloc(sizeof *own, (void **)&own));
  link->self = own;
  GP_TRY(gp_link_side_open(&own->side, link));
  own->asks = may_share(own);
  gp_port port = {.number = link->spec.port, .context = own};
  port.room = own->side.makes ? offer_room : room;
  port.arrived = own->side.makes ? offer_arrived : arrived;
  port.gone = own->side.makes ? NULL : gone;
  GP_TRY(own->side.makes ? open_maker(link) : open_reader(link));
  return gp_ports_add(&port);
}

/* Wait until the maker has closed this GPU's memory, because only then it may be freed. All ranks
 * close their links in the same order, so none waits for a rank that waits for it. After one that
 * did not answer none is waited for. */
static void await_close(const queued_link *own) {
  static atomic_int waited; /* milliseconds in all that were for nothing */
  const struct timespec nap = {.tv_nsec = 1000000};
  for (; atomic_load(&waited) < PATIENCE && atomic_load(&own->is_lent);
       atomic_fetch_add(&waited, 1))
    nanosleep(&nap, NULL);
  if (!atomic_load(&own->is_lent)) atomic_store(&waited, 0);
}

/* An offer that comes later finds no port, so it is not opened. */
static void tell_closed(const gp_link *link) {
  gp_rank_message m = {.kind = GP_RANK_SHARE, .port = link->spec.port};
  memcpy(m.what, is_closed, sizeof is_closed);
  (void)gp_ranks_send(link->spec.to->rank, &m, NULL);
}

static void close_link(gp_link *link) {
  queued_link *own = link->self;
  if (!own) return;
  await_close(own);
  gp_ports_remove(link->spec.port);
  gp_staged_free(own->staged); /* it has pinned what is shared, and opened what is lent */
  if (own->has_asked && own->staged) tell_closed(link);
  gp_shared_free(own->shared);
  gp_free(own->came_direct);
  gp_link_side_close(&own->side);
  gp_free(own);
}

static void begin(gp_link *link) {
  queued_link *own = link->self;
  gp_link_side_begin(&own->side);
  if (own->staged) gp_staged_begin(own->staged);
}

/* ---- the two ends ---------------------------------------------------------------------------- */

/* The words that the maker looks at say whether the reader's last use has come back. A second maker
 * in this process also waits for the reader's queue. */
static gp_status acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready) {
  const queued_link *own = link->self;
  *ready = true;
  return own->staged && !own->side.makes ? gp_staged_acquire(own->staged, lane, turn.slot, ready)
                                         : GP_OK;
}

/* The memory of the reader's GPU, if this end may write to it. */
static char *device_of(queued_link *own, int32_t slot) {
  const offer *o = &own->offer;
  if (!own->staged || !atomic_load(&own->has_offer)) return NULL;
  if (!o->has_device && !o->why[0]) return NULL;
  return gp_staged_device(own->staged, &o->device, o->has_device ? NULL : o->why, slot);
}

/* The reader's memory in this process, if this end may write to it. */
static char *target_of(queued_link *own) {
  char *into = atomic_load(&own->into);
  return own->staged && !gp_staged_writes(own->staged, into) ? NULL : into;
}

static gp_status publish(gp_link *link, gp_link_turn turn) {
  queued_link *own = link->self;
  char *device = device_of(own, turn.slot), *into = device ? device : target_of(own);
  gp_rank_message m = gp_link_side_value(&own->side, turn);
  if (into) m.bytes = 0;
  if (into && !device) memcpy(m.what, is_shared, sizeof is_shared);
  if (device) memcpy(m.what, is_on_device, sizeof is_on_device);
  if (!into && own->asks) memcpy(m.what, asks, sizeof asks);
  own->has_asked |= own->asks && !into;
  own->asks = false;
  gp_credits_owe(link->spec.credits, link->spec.copy, link->spec.uses);
  if (own->staged) return gp_staged_send(own->staged, turn, &m, into);
  const char *value = link->spec.made + (size_t)turn.slot * link->spec.bytes;
  if (into) memcpy(into + (size_t)turn.slot * link->spec.bytes, value, link->spec.bytes);
  return gp_ranks_send(link->spec.to->rank, &m, value);
}

static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  const queued_link *own = link->self;
  *ready = gp_link_has(link, turn);
  const bool brings = *ready && own->staged && !own->came_direct[turn.slot];
  return brings ? gp_staged_bring(own->staged, turn) : GP_OK;
}

/* Count the use here, for a second copy of the maker in this process; gp_credits_tell tells the
 * others. */
static gp_status release(gp_link *link, gp_link_turn turn) {
  const queued_link *own = link->self;
  const gp_status status = own->staged ? gp_staged_use(own->staged, turn.slot) : GP_OK;
  gp_link_note_released(link, turn.slot);
  return status;
}

/* Messages are sent by the thread of ranks/net.c, so only credits are waited for. A lost device is
 * noticed here. */
static gp_status poll_end(gp_link *link, gp_link_end end, gp_link_left *left) {
  const queued_link *own = link->self;
  const bool is_here = own->side.makes == (end == GP_LINK_MAKER);
  const bool owed =
      end == GP_LINK_MAKER && gp_credits_are_owed(link->spec.credits, link->spec.copy);
  *left = owed ? GP_LINK_CREDITS_LEFT : GP_LINK_NOTHING_LEFT;
  return own->staged && is_here ? gp_staged_look(own->staged) : GP_OK;
}

const gp_link_ops gp_link_queued = {.name = "queued",
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
                                    .give_up = gp_link_side_give_up};
