/* device/link/ranks/credits.c - see credits.h. */
#include "device/link/ranks/credits.h"

#include <string.h>

#include "base/memory.h"
#include "device/link/pool.h"
#include "ranks/ranks.h"

/* A reader on this host. */
typedef struct source {
  struct source *next;
  gp_near *near;
  uint32_t taken[]; /* per slot: last uses of this run that are counted */
} source;

struct gp_credits {
  gp_credits_spec spec;
  uint32_t run;         /* runs begun; under the lock of ports, like what follows */
  uint32_t *early;      /* per slot: credits of the next run, which this rank has not begun */
  _Atomic int64_t owed; /* last uses on other ranks that the maker still waits for */
  _Atomic(source *) sources;
};

/* ---- the port -------------------------------------------------------------------------------- */

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  (void)context, (void)from, (void)m;
  *expected = 0;
  return NULL;
}

static void count(gp_credits *c, int32_t slot, uint32_t uses) {
  atomic_fetch_add(&c->spec.words[slot].released, uses);
  if (atomic_load(&c->owed) > 0) atomic_fetch_sub(&c->owed, uses);
}

/* A run that was given up may leave messages behind. */
static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  gp_credits *c = context;
  (void)from;
  if (m->kind != GP_RANK_CREDIT || m->slot < 0 || m->slot >= c->spec.slots) return;
  if (m->run == c->run + 1) c->early[m->slot]++;
  if (m->run != c->run) return;
  count(c, m->slot, 1);
  c->spec.ring(c->spec.context);
}

gp_status gp_credits_open(const gp_credits_spec *spec, gp_credits **credits) {
  gp_credits *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->spec = *spec;
  gp_status status =
      gp_alloc_array((size_t)spec->slots, sizeof *made->early, (void **)&made->early);
  const gp_port port = {.number = spec->port, .context = made, .room = room, .arrived = arrived};
  if (!status && spec->ring) status = gp_ports_add(&port);
  if (status) return gp_free(made->early), gp_free(made), status;
  *credits = made;
  return GP_OK;
}

void gp_credits_close(gp_credits *c) {
  if (!c) return;
  if (c->spec.ring) gp_ports_remove(c->spec.port);
  for (source *s = atomic_load(&c->sources), *next; s; s = next) {
    next = s->next;
    gp_free(s);
  }
  gp_free(c->early);
  gp_free(c);
}

void gp_credits_begin(gp_credits *c) {
  gp_ports_lock();
  c->run++;
  for (int32_t k = 0; k < c->spec.slots; k++) {
    if (c->early[k]) atomic_fetch_add(&c->spec.words[k].released, c->early[k]);
    c->early[k] = 0;
  }
  atomic_store(&c->owed, 0);
  for (source *s = atomic_load(&c->sources); s; s = s->next)
    memset(s->taken, 0, (size_t)c->spec.slots * sizeof *s->taken);
  gp_ports_unlock();
}

/* ---- readers on this host -------------------------------------------------------------------- */

gp_status gp_credits_listen(gp_credits *c, gp_near *near) {
  source *s;
  const size_t slots = (size_t)c->spec.slots;
  GP_TRY(gp_alloc(sizeof *s + slots * sizeof *s->taken, (void **)&s));
  s->near = near;
  s->next = atomic_load(&c->sources);
  atomic_store(&c->sources, s);
  return GP_OK;
}

void gp_credits_take(gp_credits *c) {
  for (source *s = atomic_load(&c->sources); s; s = s->next)
    for (int32_t k = 0; k < c->spec.slots; k++) {
      const uint32_t released = gp_near_released(s->near, c->run, k);
      if (released > s->taken[k]) count(c, k, released - s->taken[k]);
      if (released > s->taken[k]) s->taken[k] = released;
    }
}

/* ---- telling and owing ----------------------------------------------------------------------- */

/* Is a use over only when the reader's queue has got there? */
static bool is_queued(const gp_credits *c, const gp_link_spec *link) {
  return !c->spec.ring && !link->host && !link->to->facts->at_once;
}

gp_status gp_credits_serve(gp_credits *c, const gp_link_spec *link) {
  gp_outbox *outbox;
  if (gp_lane_is_far(link->to) || !is_queued(c, link)) return GP_OK;
  GP_TRY(gp_link_pool_outbox(c->spec.pool, link->to, &outbox));
  return gp_outbox_reserve(outbox, (size_t)link->slots * link->uses);
}

/* A maker may write to the slot from now on, so the send stream waits for the use, and the message
 * for the send stream. Where that fails, the use is told of at once: the run has failed. */
static gp_status tell_later(gp_credits *c, const gp_link *link, const gp_rank_message *message) {
  gp_outbox *outbox;
  const gp_outbox_item item = {.rank = c->spec.maker, .message = *message};
  GP_TRY(gp_link_pool_outbox(c->spec.pool, link->spec.to, &outbox));
  const gp_status followed = gp_outbox_follow(outbox), posted = gp_outbox_post(outbox, &item);
  return followed ? followed : posted;
}

gp_status gp_credits_tell(gp_credits *c, const gp_link *link, int32_t slot) {
  const gp_rank_message m = {
      .kind = GP_RANK_CREDIT, .slot = slot, .run = c->run, .port = c->spec.port};
  if (is_queued(c, &link->spec)) return tell_later(c, link, &m);
  return c->spec.ring ? GP_OK : gp_ranks_send(c->spec.maker, &m, NULL);
}

void gp_credits_owe(gp_credits *c, uint32_t uses) { atomic_fetch_add(&c->owed, uses); }

bool gp_credits_are_owed(const gp_credits *c) { return atomic_load(&((gp_credits *)c)->owed) > 0; }

void gp_credits_give_up(gp_credits *c) { atomic_store(&c->owed, 0); }
