/* device/link/rank.c - values that go to another process of the job.
 *
 * Each process has one end. The maker sends a value as a message straight from its slot, which
 * stays as it is until the reader's last use has come back (credits.h); the reader's end is a port
 * that takes the bytes straight into the reader's slot. Where both are on one host, and values are
 * large, these slots are memory that both can reach: the maker asks for it with the first value,
 * copies later ones into it, and its messages are heads alone. Both ends count the runs, because
 * the maker may have begun the next run when the reader has not. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/link/credits.h"
#include "device/link/shared.h"
#include "ranks/ranks.h"

/* Smaller values are part of their message: a second way would save nothing. */
enum { LEAST_SHARED = 16384 };
/* What a value's message says beside the value. */
static const char asks[] = "share?", is_shared[] = "shared";

typedef struct rank_link {
  gp_link *link;
  bool makes;            /* the maker's end */
  uint32_t run;          /* runs begun; the reader's under the lock of ports, like `early` */
  uint32_t *early;       /* per slot: what is published in the next run, which was not begun here */
  gp_shared *shared;     /* NULL: values are sent */
  bool asks;             /* nothing was asked for yet, and it may be */
  gp_shared_offer offer; /* the maker's: what is being received */
  _Atomic(char *) into;  /* the maker's: slot 0 of the reader; NULL: values are sent */
} rank_link;

static bool may_share(const gp_link *link) {
  const char *wish = getenv("GPIPE_RANKS_SHARED");
  const int32_t other =
      link->spec.from->rank == gp_ranks_own() ? link->spec.to->rank : link->spec.from->rank;
  return link->spec.may_own && link->spec.bytes >= LEAST_SHARED && gp_ranks_are_near(other) &&
         !(wish && !strcmp(wish, "0"));
}

/* ---- the reader's port ----------------------------------------------------------------------- */

static bool is_slot(const gp_link *link, int32_t slot) {
  return slot >= 0 && slot < link->spec.slots;
}

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  const rank_link *own = context;
  const gp_link *link = own->link;
  (void)from;
  const bool is_here = !strncmp(m->what, is_shared, sizeof is_shared);
  *expected = is_here ? 0 : link->spec.bytes;
  if (is_here) return NULL;
  if (m->kind != GP_RANK_VALUE || !is_slot(link, m->slot)) return NULL;
  /* the values of a run that was given up are dropped */
  if (m->run != own->run && m->run != own->run + 1) return NULL;
  return link->received + (size_t)m->slot * link->spec.bytes;
}

/* The maker asks once; the descriptor is open until it has what it asked for. */
static void share(rank_link *own, int32_t from, const gp_rank_message *m) {
  if (!own->shared) return;
  if (!strncmp(m->what, is_shared, sizeof is_shared)) gp_shared_seal(own->shared);
  if (strncmp(m->what, asks, sizeof asks)) return;
  const gp_shared_offer offer = gp_shared_offer_of(own->shared);
  const gp_rank_message answer = {
      .kind = GP_RANK_SHARE, .port = own->link->spec.port, .bytes = sizeof offer};
  (void)gp_ranks_send_copy(from, &answer, &offer);
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  rank_link *own = context;
  share(own, from, m);
  if (m->kind != GP_RANK_VALUE || !is_slot(own->link, m->slot)) return;
  if (m->run == own->run + 1) own->early[m->slot] = m->round + 1;
  if (m->run != own->run) return;
  gp_link_note_published(own->link->words, (gp_link_turn){m->slot, m->round});
  own->link->spec.ring(own->link->spec.context);
}

/* ---- the maker's port ------------------------------------------------------------------------ */

static void *offer_room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  rank_link *own = context;
  (void)from;
  *expected = m->kind == GP_RANK_SHARE ? sizeof own->offer : 0;
  return m->kind == GP_RANK_SHARE ? &own->offer : NULL;
}

/* Memory that cannot be opened, as that of another container, is done without. */
static void offer_arrived(void *context, int32_t from, const gp_rank_message *m) {
  rank_link *own = context;
  const size_t bytes = (size_t)own->link->spec.slots * own->link->spec.bytes;
  (void)from;
  if (m->kind != GP_RANK_SHARE || own->shared) return;
  if (gp_shared_open(&own->offer, bytes, &own->shared)) return;
  atomic_store(&own->into, gp_shared_data(own->shared));
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool joins(const gp_lane *from, const gp_lane *to) { return from->rank != to->rank; }

static gp_status open_link(gp_link *link) {
  rank_link *own;
  GP_TRY(gp_alloc(sizeof *own, (void **)&own));
  link->self = own;
  own->link = link;
  own->makes = link->spec.from->rank == gp_ranks_own();
  own->asks = may_share(link);
  gp_port port = {.number = link->spec.port, .context = own};
  port.room = own->makes ? offer_room : room;
  port.arrived = own->makes ? offer_arrived : arrived;
  if (!own->makes) {
    const size_t slots = (size_t)link->spec.slots;
    GP_TRY(gp_alloc_array(slots, sizeof *own->early, (void **)&own->early));
    if (own->asks && !gp_shared_new(slots * link->spec.bytes, &own->shared))
      link->received = gp_shared_data(own->shared);
  }
  return gp_ports_add(&port);
}

static void close_link(gp_link *link) {
  rank_link *own = link->self;
  if (!own) return;
  gp_ports_remove(link->spec.port);
  gp_shared_free(own->shared);
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
}

/* ---- the two ends ---------------------------------------------------------------------------- */

/* The words that the maker looks at say whether the reader's last use has come back. */
static gp_status acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready) {
  (void)link, (void)lane, (void)turn;
  *ready = true;
  return GP_OK;
}

static gp_status publish(gp_link *link, gp_link_turn turn) {
  rank_link *own = link->self;
  const char *value = link->spec.made + (size_t)turn.slot * link->spec.bytes;
  char *into = atomic_load(&own->into);
  gp_rank_message m = {.kind = GP_RANK_VALUE,
                       .slot = turn.slot,
                       .run = own->run,
                       .round = turn.round,
                       .port = link->spec.port,
                       .bytes = into ? 0 : link->spec.bytes};
  if (into) memcpy(into + (size_t)turn.slot * link->spec.bytes, value, link->spec.bytes);
  if (into) memcpy(m.what, is_shared, sizeof is_shared);
  if (!into && own->asks) memcpy(m.what, asks, sizeof asks);
  own->asks = false;
  gp_credits_owe(link->spec.credits, link->spec.copy, link->spec.uses);
  return gp_ranks_send(link->spec.to->rank, &m, value);
}

static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  *ready = gp_link_has(link, turn);
  return GP_OK;
}

/* Count the use here, for a second copy of the maker in this process; gp_credits_tell tells the
 * others. */
static gp_status release(gp_link *link, gp_link_turn turn) {
  gp_link_note_released(link, turn.slot);
  return GP_OK;
}

/* Messages are sent by the thread of ranks/net.c, so only credits are waited for. */
static gp_status poll_end(gp_link *link, gp_link_end end, gp_link_left *left) {
  const bool owed =
      end == GP_LINK_MAKER && gp_credits_are_owed(link->spec.credits, link->spec.copy);
  *left = owed ? GP_LINK_CREDITS_LEFT : GP_LINK_NOTHING_LEFT;
  return GP_OK;
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
