/* device/link/rank.c - values that go to another process of the job.
 *
 * Each process has one end. The maker sends a value as a message straight from its slot, which
 * stays as it is until the reader's last use has come back (credits.h); the reader's end is a port
 * that takes the bytes straight into the reader's slot. Where both are on one host, the maker asks
 * with the first value for the memory that the reader offers (near.h); later values go that way,
 * and no message is sent. Ends on devices with queues stage values (staged.h). Both ends count the
 * runs, because the maker may have begun the next run when the reader has not. */
#include <string.h>

#include "base/memory.h"
#include "device/link/credits.h"
#include "device/link/near.h"
#include "device/link/pool.h"
#include "device/link/staged.h"
#include "ranks/ranks.h"

/* Says beside a value that it lies in the reader's memory already: the send stream has written it. */
static const char is_shared[] = "shared";

typedef struct rank_link {
  gp_link *link;
  bool makes;            /* the maker's end */
  uint32_t run;          /* runs begun; the reader's under the lock of ports, like `early` */
  uint32_t *early;       /* per slot: what is published in the next run, which was not begun here */
  bool asks;             /* the maker's: it has not asked yet, and may */
  gp_near_offer offer;   /* what is being received from the other end */
  gp_near *slots;        /* the reader's; NULL: it has nothing to offer */
  gp_staged_end *staged; /* NULL: the device works at once, or workers themselves do */
  _Atomic(gp_near *) way; /* the maker's, once it is open; NULL: values are sent */
} rank_link;

static int32_t other_rank(const gp_link *link) {
  const int32_t from = link->spec.from->rank;
  return from == gp_ranks_own() ? link->spec.to->rank : from;
}

/* Does the end's device have a queue that the value passes through? */
static bool is_queued(const gp_link *link, const gp_lane *lane) {
  return !link->spec.host && !lane->facts->at_once;
}

static bool may_share(const gp_link *link) {
  return link->spec.bells && gp_ranks_are_near(other_rank(link));
}

/* ---- the two ends get to know each other ----------------------------------------------------- */

static void *offer_room(rank_link *own, const gp_rank_message *m, uint64_t *expected) {
  *expected = m->kind == GP_RANK_SHARE ? sizeof own->offer : 0;
  return m->kind == GP_RANK_SHARE ? &own->offer : NULL;
}

/* The maker has got the reader's answer. Memory that cannot be opened, as that of another
 * container, is done without. */
static void open_way(rank_link *own) {
  gp_link *link = own->link;
  gp_near *way;
  if (atomic_load(&own->way) || gp_near_open(&link->spec, &own->offer, &way)) return;
  if (gp_credits_listen(link->spec.credits, way))
    gp_near_free(way);
  else
    atomic_store(&own->way, way);
}

/* The reader answers with what it has. */
static void answer(rank_link *own) {
  gp_link *link = own->link;
  if (!own->slots || gp_near_meet(own->slots, &own->offer)) return;
  const gp_near_offer offer = gp_near_offer_of(own->slots);
  const gp_rank_message m = {.kind = GP_RANK_SHARE, .port = link->spec.port, .bytes = sizeof offer};
  (void)gp_ranks_send_copy(other_rank(link), &m, &offer);
}

static gp_status ask(rank_link *own) {
  gp_link *link = own->link;
  const gp_near_offer offer = {.bells = gp_shared_offer_of(link->spec.bells)};
  const gp_rank_message m = {.kind = GP_RANK_SHARE, .port = link->spec.port, .bytes = sizeof offer};
  own->asks = false;
  return gp_ranks_send_copy(other_rank(link), &m, &offer);
}

/* ---- the reader's port ----------------------------------------------------------------------- */

static bool is_slot(const gp_link *link, int32_t slot) {
  return slot >= 0 && slot < link->spec.slots;
}

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  rank_link *own = context;
  const gp_link *link = own->link;
  (void)from;
  if (own->makes || m->kind == GP_RANK_SHARE) return offer_room(own, m, expected);
  const bool is_here = !strncmp(m->what, is_shared, sizeof is_shared);
  *expected = is_here ? 0 : link->spec.bytes;
  if (is_here || m->kind != GP_RANK_VALUE || !is_slot(link, m->slot)) return NULL;
  /* the values of a run that was given up are dropped */
  if (m->run != own->run && m->run != own->run + 1) return NULL;
  char *slots = own->staged ? gp_staged_room(own->staged) : link->received;
  return slots + (size_t)m->slot * link->spec.bytes;
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  rank_link *own = context;
  (void)from;
  if (m->kind == GP_RANK_SHARE) own->makes ? open_way(own) : answer(own);
  if (own->makes || m->kind != GP_RANK_VALUE || !is_slot(own->link, m->slot)) return;
  if (m->run == own->run + 1) own->early[m->slot] = m->round + 1;
  if (m->run != own->run) return;
  gp_link_note_published(own->link->words, (gp_link_turn){m->slot, m->round});
  own->link->spec.ring(own->link->spec.context);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool joins(const gp_lane *from, const gp_lane *to) { return from->rank != to->rank; }

/* The reader's slots are in the memory that it offers, if they may be anywhere; a device with a queue
 * stages values there if it can be pinned. */
static gp_status open_reader(rank_link *own) {
  gp_link *link = own->link;
  GP_TRY(gp_alloc_array((size_t)link->spec.slots, sizeof *own->early, (void **)&own->early));
  if (may_share(link)) (void)gp_near_new(&link->spec, &own->slots);
  char *shared = own->slots ? gp_near_slot(own->slots, 0) : NULL;
  if (!is_queued(link, link->spec.to)) {
    if (shared && link->spec.may_own) link->received = shared;
    return GP_OK;
  }
  GP_TRY(gp_staged_reader_new(link, shared, &own->staged));
  if (!shared || gp_staged_room(own->staged) == shared) return GP_OK;
  gp_near_free(own->slots);
  own->slots = NULL;
  return GP_OK;
}

static gp_status open_maker(rank_link *own) {
  gp_link *link = own->link;
  own->asks = may_share(link);
  return is_queued(link, link->spec.from) ? gp_staged_maker_new(link, &own->staged) : GP_OK;
}

static gp_status open_link(gp_link *link) {
  rank_link *own;
  GP_TRY(gp_alloc(sizeof *own, (void **)&own));
  link->self = own;
  own->link = link;
  own->makes = link->spec.from->rank == gp_ranks_own();
  GP_TRY(own->makes ? open_maker(own) : open_reader(own));
  return gp_ports_add(
      &(gp_port){.number = link->spec.port, .context = own, .room = room, .arrived = arrived});
}

static void close_link(gp_link *link) {
  rank_link *own = link->self;
  if (!own) return;
  gp_ports_remove(link->spec.port);
  gp_staged_free(own->staged); /* it has pinned what is shared */
  gp_near_free(own->makes ? atomic_load(&own->way) : own->slots);
  gp_free(own->early);
  gp_free(own);
}

static void begin(gp_link *link) {
  rank_link *own = link->self;
  gp_ports_lock();
  own->run++;
  for (int32_t k = 0; !own->makes && k < link->spec.slots; k++) {
    atomic_store(&link->words[k].published, own->early[k]);
    own->early[k] = 0;
  }
  gp_ports_unlock();
  if (own->staged) gp_staged_begin(own->staged);
}

/* ---- the two ends ---------------------------------------------------------------------------- */

/* The words that the maker looks at say whether the reader's last use has come back. A second maker
 * in this process also waits for the reader's queue. */
static gp_status acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready) {
  const rank_link *own = link->self;
  *ready = true;
  return own->staged && !own->makes ? gp_staged_acquire(own->staged, lane, turn.slot, ready)
                                    : GP_OK;
}

/* The reader's memory, if the send stream may write to it. */
static char *target_of(const rank_link *own, const gp_near *way) {
  if (!own->staged || !way) return NULL;
  char *slots = gp_near_slot(way, 0);
  return gp_staged_writes(own->staged, slots) ? slots : NULL;
}

static gp_status publish(gp_link *link, gp_link_turn turn) {
  rank_link *own = link->self;
  const char *value = link->spec.made + (size_t)turn.slot * link->spec.bytes;
  gp_near *way = atomic_load(&own->way);
  char *into = target_of(own, way);
  gp_credits_owe(link->spec.credits, link->spec.copy, link->spec.uses);
  if (way && !own->staged) {
    gp_near_publish(way, own->run, turn, value);
    return GP_OK;
  }
  if (own->asks) GP_TRY(ask(own));
  gp_rank_message m = {.kind = GP_RANK_VALUE,
                       .slot = turn.slot,
                       .run = own->run,
                       .round = turn.round,
                       .port = link->spec.port,
                       .bytes = into ? 0 : link->spec.bytes};
  if (into) memcpy(m.what, is_shared, sizeof is_shared);
  if (own->staged) return gp_staged_send(own->staged, turn, &m, into);
  return gp_ranks_send(link->spec.to->rank, &m, value);
}

/* Take over a value that lies in the memory of both. The maker has opened it, so it looks at the
 * words of this end, too. A staged value goes on to the device from where it is. */
static void take_over(rank_link *own, gp_link_turn turn) {
  gp_link *link = own->link;
  const size_t at = (size_t)turn.slot * link->spec.bytes;
  const char *value = gp_near_slot(own->slots, turn.slot);
  if (!own->staged && link->received + at != value && link->spec.bytes)
    memcpy(link->received + at, value, link->spec.bytes);
  link->tells = !own->staged && gp_credits_are_of(link->spec.credits, link->spec.from->rank);
  gp_near_seal(own->slots);
  gp_link_note_published(link->words, turn);
}

static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  rank_link *own = link->self;
  if (!gp_link_has(link, turn) && own->slots && gp_near_has(own->slots, own->run, turn))
    take_over(own, turn);
  *ready = gp_link_has(link, turn);
  return *ready && own->staged ? gp_staged_bring(own->staged, turn) : GP_OK;
}

/* Count the use here, for a second copy of the maker in this process, and tell the one on the other
 * rank. */
static gp_status release(gp_link *link, gp_link_turn turn) {
  rank_link *own = link->self;
  const gp_status status = own->staged ? gp_staged_use(own->staged, turn.slot) : GP_OK;
  gp_link_note_released(link, turn.slot);
  if (link->tells) gp_near_release(own->slots, own->run, turn.slot);
  return status;
}

/* Only credits are waited for: the thread of ranks/net.c sends messages. A lost device is noticed
 * here. */
static gp_status poll_end(gp_link *link, gp_link_end end, gp_link_left *left) {
  const rank_link *own = link->self;
  gp_credits *credits = link->spec.credits;
  const bool is_here = own->makes == (end == GP_LINK_MAKER);
  bool owed = end == GP_LINK_MAKER && gp_credits_are_owed(credits, link->spec.copy);
  if (owed) gp_credits_take(credits);
  owed = owed && gp_credits_are_owed(credits, link->spec.copy);
  *left = owed ? GP_LINK_CREDITS_LEFT : GP_LINK_NOTHING_LEFT;
  return own->staged && is_here ? gp_staged_look(own->staged) : GP_OK;
}

static void give_up(gp_link *link, gp_link_end end) {
  if (end == GP_LINK_READER) return;
  gp_credits_give_up(link->spec.credits);
  gp_ranks_withdraw(link->spec.port);
}

const gp_link_ops gp_link_rank = {.name = "rank",
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
