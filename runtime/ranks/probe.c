/* ranks/probe.c - measures the way between two ranks: how long messages take, and how far apart
 * their clocks are.
 *
 * The messages go the way that values of pipelines go, through a port and the thread of net.c, so
 * what is measured is what a pipeline gets. A round is a burst of messages and one answer, which
 * carries the other rank's clock. Source of the offset: Cristian 1989, "Probabilistic clock
 * synchronization": the answer was written between sending and receiving, so the clock is known to
 * within half of the round trip. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/process.h"
#include "ranks/net.h"

static const int64_t MOST_NS = INT64_C(60000000000); /* for which a round may take */

/* One end of the way. */
typedef struct probe {
  const gp_rank_probe_spec *spec;
  uint64_t port;
  int32_t peer;
  pthread_mutex_t lock;
  pthread_cond_t came;
  uint64_t bytes;   /* of each message that comes */
  char *room, *out; /* where it goes, and what is sent */
  int64_t arrived;  /* messages so far; under the lock, like what follows */
  bool last;        /* the round is the last one, says the end that asks */
  bool gone;
  char text[256];
} probe;

/* ---- the port -------------------------------------------------------------------------------- */

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  probe *p = context;
  if (from != p->peer || m->kind != GP_RANK_VALUE) return NULL;
  *expected = p->bytes;
  return p->room;
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  probe *p = context;
  if (from != p->peer || m->kind != GP_RANK_VALUE) return;
  pthread_mutex_lock(&p->lock);
  p->arrived++;
  p->last = m->slot != 0;
  pthread_cond_signal(&p->came);
  pthread_mutex_unlock(&p->lock);
}

static void gone(void *context, const char *text) {
  probe *p = context;
  pthread_mutex_lock(&p->lock);
  p->gone = true;
  snprintf(p->text, sizeof p->text, "%s", text);
  pthread_cond_signal(&p->came);
  pthread_mutex_unlock(&p->lock);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static gp_status look_for_reason(const probe *p, int64_t begin) {
  if (p->gone) return gp_fail(GP_EDEVICE, "links: %s", p->text);
  if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "interrupted");
  if (gp_now_ns() - begin > MOST_NS)
    return gp_fail(GP_ETIMEOUT, "links: rank %d did not answer within %g seconds", (int)p->peer,
                   1e-9 * (double)MOST_NS);
  return GP_OK;
}

/* Wait until so many messages have come, counted from the first round on. *last receives what the
 * last of them says. */
static gp_status await(probe *p, int64_t count, bool *last) {
  const int64_t begin = gp_now_ns();
  gp_status status = GP_OK;
  pthread_mutex_lock(&p->lock);
  while (p->arrived < count && !status) {
    status = look_for_reason(p, begin);
    if (!status) gp_net_doze(&p->came, &p->lock);
  }
  *last = p->last;
  pthread_mutex_unlock(&p->lock);
  return status;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* What the rounds so far took. */
typedef struct tally {
  int rounds;
  double sum, squares; /* of the seconds of a round */
} tally;

/* Is the mean known well enough, or its time over? A mean of fewer rounds may have missed all
 * losses. */
static bool is_enough(const gp_rank_probe_spec *spec, const tally *t) {
  enum { LEAST = 8, FOR_MEAN = 32 };
  if (t->rounds < LEAST || spec->precision <= 0) return false;
  const double n = t->rounds, mean = t->sum / n;
  const double variance = fmax(t->squares / n - mean * mean, 0);
  return t->sum >= spec->most ||
         (t->rounds >= FOR_MEAN && sqrt(variance / n) <= spec->precision * mean);
}

/* Send a burst and wait for its answer. The payload stays as it is until then. */
static gp_status ask_once(probe *p, int round, bool last, gp_rank_probe *taken) {
  const gp_rank_message m = {
      .kind = GP_RANK_VALUE, .port = p->port, .bytes = p->spec->bytes, .slot = last};
  int64_t clock;
  bool ignored;
  const int64_t begin = gp_now_ns();
  for (int i = 0; i < p->spec->burst; i++) GP_TRY(gp_ranks_send(p->peer, &m, p->out));
  GP_TRY(await(p, round + 1, &ignored));
  taken->seconds = 1e-9 * (double)(gp_now_ns() - begin);
  memcpy(&clock, p->room, sizeof clock);
  taken->offset = 1e-9 * ((double)(clock - begin) - 0.5e9 * taken->seconds);
  return GP_OK;
}

/* The end that begins, and says which round is the last one. */
static gp_status ask(probe *p, gp_rank_probe *best) {
  tally t = {0};
  for (bool last = false; !last;) {
    gp_rank_probe taken = {0};
    last = t.rounds + 1 == p->spec->rounds || is_enough(p->spec, &t);
    GP_TRY(ask_once(p, t.rounds, last, &taken));
    t.sum += taken.seconds;
    t.squares += taken.seconds * taken.seconds;
    if (t.rounds++ == 0 || taken.seconds < best->seconds) *best = taken;
  }
  best->mean = t.sum / t.rounds;
  return GP_OK;
}

/* The end that answers. It looks whether the round is the last one before it answers: the next
 * message may come at once. */
static gp_status answer(probe *p) {
  const gp_rank_message m = {.kind = GP_RANK_VALUE, .port = p->port, .bytes = sizeof(int64_t)};
  bool last = false;
  for (int round = 0; !last; round++) {
    GP_TRY(await(p, (int64_t)p->spec->burst * (round + 1), &last));
    const int64_t clock = gp_now_ns();
    GP_TRY(gp_ranks_send_copy(p->peer, &m, &clock));
  }
  return GP_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static gp_status check(const gp_rank_probe_spec *spec) {
  const int count = (int)gp_ranks_count();
  if (spec->from < 0 || spec->from >= count || spec->to < 0 || spec->to >= count ||
      spec->from == spec->to)
    return gp_fail(GP_EINVAL, "links: ranks %d and %d, expected two different ones below %d",
                   spec->from, spec->to, count);
  if (spec->bytes < 1 || spec->burst < 1 || spec->rounds < 1)
    return gp_fail(GP_EINVAL, "links: %d rounds of %d messages of %zu bytes, expected 1 or more",
                   spec->rounds, spec->burst, spec->bytes);
  return GP_OK;
}

/* Make room for both directions; asks: this end begins. */
static gp_status make_room(probe *p, bool asks) {
  p->bytes = asks ? sizeof(int64_t) : p->spec->bytes;
  GP_TRY(gp_alloc(p->bytes, (void **)&p->room));
  return gp_alloc(p->spec->bytes, (void **)&p->out);
}

/* Messages may come as soon as both ends have their port: the gathering in between sees to it.
 * Every rank makes it, so that no other traffic disturbs. */
gp_status gp_ranks_probe(const gp_rank_probe_spec *spec, gp_rank_probe *result) {
  const int32_t own = gp_ranks_own();
  const bool asks = own == spec->from, takes_part = asks || own == spec->to;
  probe p = {.spec = spec, .peer = asks ? spec->to : spec->from};
  const gp_port port = {.context = &p, .room = room, .arrived = arrived, .gone = gone};
  gp_rank_pieces all;
  *result = (gp_rank_probe){0};
  GP_TRY(check(spec));
  GP_TRY(gp_ranks_join());
  p.port = gp_ranks_number();
  pthread_mutex_init(&p.lock, NULL);
  pthread_cond_init(&p.came, NULL);
  gp_port numbered = port;
  numbered.number = p.port;
  gp_status status = takes_part ? make_room(&p, asks) : GP_OK;
  const bool added = !status && takes_part && !(status = gp_ports_add(&numbered));
  if (!status) status = gp_ranks_gather("links", 0, "", 0, &all);
  if (!status) gp_rank_pieces_free(&all);
  if (!status && takes_part) status = asks ? ask(&p, result) : answer(&p);
  /* the last answer may still wait for the net's thread */
  if (added && status == GP_OK && !asks)
    gp_ports_close(p.port);
  else if (added)
    gp_ports_remove(p.port);
  gp_free(p.room);
  gp_free(p.out);
  pthread_cond_destroy(&p.came);
  pthread_mutex_destroy(&p.lock);
  return status;
}
