/* device/link/ranks/at_once.c - values that go to another process of the job, between devices that
 * work at once.
 *
 * Each process has one end. The maker sends a value as a message straight from its slot, which
 * stays as it is until the reader's last use has come back (credits.h); the reader's end is a port
 * that takes the bytes straight into the reader's slot. Where both are on one host, the maker asks
 * with the first value for the memory that the reader offers (near.h); later values go that way,
 * and no message is sent. */
#include <string.h>

#include "base/memory.h"
#include "device/link/ranks/credits.h"
#include "device/link/ranks/side.h"
#include "device/link/ranks/near.h"
#include "device/link/ranks/ways.h"

typedef struct rank_link {
  gp_link_side side;
  bool asks;              /* the maker's: it has not asked yet, and may */
  gp_near_offer offer;    /* what is being received from the other end */
  gp_near *slots;         /* the reader's; NULL: it has nothing to offer */
  _Atomic(gp_near *) way; /* the maker's, once it is open; NULL: values are sent */
} rank_link;

static bool may_share(const rank_link *own) { return gp_way_is_near(&own->side.link->spec); }

/* ---- the two ends get to know each other ----------------------------------------------------- */

/* The maker has got the reader's answer. Memory that cannot be opened, as that of another
 * container, is done without. */
static void open_way(rank_link *own) {
  gp_link *link = own->side.link;
  gp_near *way;
  if (atomic_load(&own->way) || gp_near_open(&link->spec, &own->offer, &way)) return;
  if (gp_credits_listen(link->spec.credits, way))
    gp_near_free(way);
  else
    atomic_store(&own->way, way);
}

/* The reader answers with what it has. */
static void answer(rank_link *own) {
  if (!own->slots || gp_near_meet(own->slots, &own->offer)) return;
  const gp_near_offer offer = gp_near_offer_of(own->slots);
  (void)gp_link_side_offer(&own->side, &offer, sizeof offer);
}

static gp_status ask(rank_link *own) {
  const gp_near_offer offer = {.bells = gp_shared_offer_of(own->side.link->spec.bells)};
  own->asks = false;
  return gp_link_side_offer(&own->side, &offer, sizeof offer);
}

/* ---- the port -------------------------------------------------------------------------------- */

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  rank_link *own = context;
  const gp_link *link = own->side.link;
  (void)from;
  if (own->side.makes || m->kind == GP_RANK_SHARE)
    return gp_link_side_offer_room(m, &own->offer, sizeof own->offer, expected);
  *expected = link->spec.bytes;
  return gp_link_side_wants(&own->side, m) ? link->received + (size_t)m->slot * link->spec.bytes
                                           : NULL;
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  rank_link *own = context;
  (void)from;
  if (m->kind == GP_RANK_SHARE) own->side.makes ? open_way(own) : answer(own);
  gp_link_side_take(&own->side, m);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool joins(const gp_lane *from, const gp_lane *to) { return from->rank != to->rank; }

/* The reader's slots are in the memory that it offers, if they may be anywhere. */
static void make_slots(rank_link *own) {
  gp_link *link = own->side.link;
  if (!may_share(own) || gp_near_new(&link->spec, &own->slots)) return;
  if (link->spec.may_own) link->received = gp_near_slot(own->slots, 0);
}

static gp_status open_link(gp_link *link) {
  rank_link *own;
  GP_TRY(gp_alloc(sizeof *own, (void **)&own));
  link->self = own;
  GP_TRY(gp_link_side_open(&own->side, link));
  own->asks = own->side.makes && may_share(own);
  if (!own->side.makes) make_slots(own);
  return gp_ports_add(
      &(gp_port){.number = link->spec.port, .context = own, .room = room, .arrived = arrived});
}

static void close_link(gp_link *link) {
  rank_link *own = link->self;
  if (!own) return;
  gp_ports_remove(link->spec.port);
  gp_near_free(own->side.makes ? atomic_load(&own->way) : own->slots);
  gp_link_side_close(&own->side);
  gp_free(own);
}

static void begin(gp_link *link) { gp_link_side_begin(&((rank_link *)link->self)->side); }

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
  gp_near *way = atomic_load(&own->way);
  gp_credits_owe(link->spec.credits, link->spec.uses);
  if (way) {
    gp_near_publish(way, own->side.run, turn, value);
    return GP_OK;
  }
  if (own->asks) GP_TRY(ask(own));
  const gp_rank_message m = gp_link_side_value(&own->side, turn);
  return gp_ranks_send(link->spec.to->rank, &m, value);
}

/* Take over a value that lies in the memory of both. The maker has opened it, so it looks at the
 * words of this end, too. */
static void take_over(rank_link *own, gp_link_turn turn) {
  gp_link *link = own->side.link;
  const size_t at = (size_t)turn.slot * link->spec.bytes;
  const char *value = gp_near_slot(own->slots, turn.slot);
  if (link->received + at != value && link->spec.bytes)
    memcpy(link->received + at, value, link->spec.bytes);
  link->tells = true;
  gp_near_seal(own->slots);
  gp_link_note_published(link->words, turn);
}

static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  rank_link *own = link->self;
  *ready = gp_link_has(link, turn);
  if (*ready || !own->slots || !gp_near_has(own->slots, own->side.run, turn)) return GP_OK;
  take_over(own, turn);
  *ready = true;
  return GP_OK;
}

/* Count the use where the maker looks, if the value lies there; else gp_credits_tell tells it. */
static gp_status release(gp_link *link, gp_link_turn turn) {
  rank_link *own = link->self;
  if (link->tells) gp_near_release(own->slots, own->side.run, turn.slot);
  return GP_OK;
}

/* Only credits are waited for: the thread of ranks/net.c sends messages. */
static gp_status poll_end(gp_link *link, gp_link_end end, gp_link_left *left) {
  gp_credits *credits = link->spec.credits;
  *left = GP_LINK_NOTHING_LEFT;
  if (end != GP_LINK_MAKER || !gp_credits_are_owed(credits)) return GP_OK;
  gp_credits_take(credits);
  if (gp_credits_are_owed(credits)) *left = GP_LINK_CREDITS_LEFT;
  return GP_OK;
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
                                  .give_up = gp_link_side_give_up};
