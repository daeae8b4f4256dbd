/* ranks/probe.c - measures the way between two ranks: how long messages take, and how far apart
 * their clocks are.
 *
 * The messages go the way that values of pipelines go, through a port and the thread of net.c, so
 * what is measured is what a pipeline gets. A round is a burst of messages and one answer, which
 * carries the other rank's clock. What a round takes from threads that compute (spare.h) is
 * measured apart: such threads make messages slower. Source of the offset: Cristian 1989,
 * "Probabilistic clock synchronization": the answer was written between sending and receiving, so
 * the clock is known to within half of the round trip. */
#include "ranks/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/process.h"
#include "ranks/net.h"
#include "ranks/spare.h"
#include "ranks/transport.h"

static const int64_t MOST_NS = INT64_C(60000000000); /* for which a round may take */

/* What the end that asks says of a round: none follows; or it is the one before busy ones, one of
 * these, or the last of these before a rest. */
typedef enum place { ANY, LAST, BEFORE_BUSY, BUSY, BEFORE_REST } place;

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
  place said;       /* of the last one */
  bool gone;
  char text[256];
  int64_t rounds;  /* so far */
  gp_spare *spare; /* once there are busy rounds */
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
  p->said = (place)m->slot;
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

gp_status gp_probe_look(int32_t peer, int64_t begin) {
  if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "interrupted");
  if (gp_now_ns() - begin > MOST_NS)
    return gp_fail(GP_ETIMEOUT, "links: rank %d did not answer within %g seconds", (int)peer,
                   1e-9 * (double)MOST_NS);
  return GP_OK;
}

static gp_status look_for_reason(const probe *p, int64_t begin) {
  return p->gone ? gp_fail(GP_EDEVICE, "links: %s", p->text) : gp_probe_look(p->peer, begin);
}

/* Wait until so many messages have come, counted from the first round on. *said receives what the
 * last of them says. */
static gp_status await(probe *p, int64_t count, place *said) {
  const int64_t begin = gp_now_ns();
  gp_status status = GP_OK;
  pthread_mutex_lock(&p->lock);
  while (p->arrived < count && !status) {
    status = look_for_reason(p, begin);
    if (!status) gp_net_doze(&p->came, &p->lock);
  }
  *said = p->said;
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

/* The seconds that this process's cores have worked so far. */
static double processor_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Send a burst and wait for its answer. The payload stays as it is until then. */
static gp_status ask(probe *p, place here) {
  const gp_rank_message m = {
      .kind = GP_RANK_VALUE, .port = p->port, .bytes = p->spec->bytes, .slot = (int32_t)here};
  place ignored;
  for (int i = 0; i < p->spec->burst; i++) GP_TRY(gp_ranks_send(p->peer, &m, p->out));
  return await(p, ++p->rounds, &ignored);
}

static gp_status ask_once(void *context, bool last, gp_rank_probe *taken) {
  probe *p = context;
  int64_t clock;
  const int64_t begin = gp_now_ns();
  GP_TRY(ask(p, last && p->spec->work <= 0 ? LAST : ANY));
  taken->seconds = 1e-9 * (double)(gp_now_ns() - begin);
  memcpy(&clock, p->room, sizeof clock);
  taken->offset = 1e-9 * ((double)(clock - begin) - 0.5e9 * taken->seconds);
  return GP_OK;
}

gp_status gp_probe_rounds(const gp_rank_probe_spec *spec, gp_probe_round *once, void *context,
                          gp_rank_probe *best) {
  tally t = {0};
  const double begin = processor_seconds();
  for (bool last = false; !last;) {
    gp_rank_probe taken = {0};
    last = t.rounds + 1 == spec->rounds || is_enough(spec, &t);
    GP_TRY(once(context, last, &taken));
    t.sum += taken.seconds;
    t.squares += taken.seconds * taken.seconds;
    if (t.rounds++ == 0 || taken.seconds < best->seconds) *best = taken;
  }
  best->mean = t.sum / t.rounds;
  best->work = (processor_seconds() - begin) / t.rounds;
  return GP_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */

enum { TURNS = 16 }; /* of busy rounds and rests */

/* The first busy rounds begin, or the next ones, behind a rest. */
static gp_status end_rest(probe *p) {
  return p->spare ? gp_spare_note(p->spare, 0) : gp_spare_start(&p->spare);
}

/* Ask for a part of the time, and rest for as long. */
static gp_status take_turn(probe *p, bool last) {
  const int64_t part = (int64_t)(1e9 * p->spec->work) / (2 * TURNS);
  int count = 1;
  GP_TRY(ask(p, BEFORE_BUSY));
  GP_TRY(end_rest(p));
  for (const int64_t end = gp_now_ns() + part; gp_now_ns() < end; count++) GP_TRY(ask(p, BUSY));
  GP_TRY(ask(p, last ? LAST : BEFORE_REST));
  GP_TRY(gp_spare_note(p->spare, count));
  if (!last) nanosleep(&(struct timespec){part / 1000000000, part % 1000000000}, NULL);
  return GP_OK;
}

static gp_status ask_busily(probe *p) {
  const int turns = p->spec->work > 0 ? TURNS : 0;
  for (int i = 1; i <= turns; i++) GP_TRY(take_turn(p, i == turns));
  return GP_OK;
}

/* Answer a round, and note what is said of it. */
static gp_status answer_once(probe *p, int *busy, place *said) {
  const gp_rank_message m = {.kind = GP_RANK_VALUE, .port = p->port, .bytes = sizeof(int64_t)};
  /* first: the next message may come as soon as this one is answered */
  GP_TRY(await(p, (int64_t)p->spec->burst * ++p->rounds, said));
  const bool ends = p->spare && (*said == BEFORE_REST || *said == LAST);
  if (*said == BEFORE_BUSY) GP_TRY(end_rest(p));
  *busy = *said == BEFORE_BUSY ? 0 : *busy + 1;
  const int64_t clock = gp_now_ns();
  GP_TRY(gp_ranks_send_copy(p->peer, &m, &clock));
  return ends ? gp_spare_note(p->spare, *busy) : GP_OK;
}

static gp_status ask_all(probe *p, gp_rank_probe *result) {
  GP_TRY(gp_probe_rounds(p->spec, ask_once, p, result));
  return ask_busily(p);
}

static gp_status answer_all(probe *p, double *work) {
  const double begin = processor_seconds();
  int busy = 0;
  for (place said = ANY; said != LAST;) GP_TRY(answer_once(p, &busy, &said));
  *work = (processor_seconds() - begin) / (double)p->rounds;
  return GP_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

gp_status gp_probe_check(const gp_rank_probe_spec *spec) {
  const int count = (int)gp_ranks_count();
  if (spec->from < 0 || spec->from >= count || spec->to < 0 || spec->to >= count ||
      spec->from == spec->to)
    return gp_fail(GP_EINVAL, "links: ranks %d and %d, expected two different ones below %d",
                   spec->from, spec->to, count);
  if (spec->bytes < 1 || spec->burst < 1 || spec->rounds < 1)
    return gp_fail(GP_EINVAL, "links: %d rounds of %d messages of %zu bytes, expected 1 or more",
                   spec->rounds, spec->burst, spec->bytes);
  if (!(spec->work >= 0 && spec->work <= 1e-9 * (double)MOST_NS))
    return gp_fail(GP_EINVAL, "links: %g seconds of rounds, expected 0 to %g", spec->work,
                   1e-9 * (double)MOST_NS);
  return GP_OK;
}

/* Make room for both directions; asks: this end begins. */
static gp_status make_room(probe *p, bool asks) {
  p->bytes = asks ? sizeof(int64_t) : p->spec->bytes;
  GP_TRY(gp_alloc(p->bytes, (void **)&p->room));
  return gp_alloc(p->spec->bytes, (void **)&p->out);
}

/* Messages may come as soon as both ends have their port: the gathering sees to it. Every rank
 * makes it, so that no other traffic disturbs. */
static gp_status measure(probe *p, bool asks, bool takes_part, gp_rank_probe *result) {
  gp_rank_pieces all;
  GP_TRY(gp_ranks_gather("links", 0, "", 0, &all));
  gp_rank_pieces_free(&all);
  if (takes_part) GP_TRY(asks ? ask_all(p, result) : answer_all(p, &result->work));
  if (!gp_net_place()->transport->any_thread) result->work = 0; /* its thread never sleeps */
  if (p->spare) result->work = gp_spare_lost(p->spare);
  return GP_OK;
}

gp_status gp_ranks_probe(const gp_rank_probe_spec *spec, gp_rank_probe *result) {
  const int32_t own = gp_ranks_own();
  const bool asks = own == spec->from, takes_part = asks || own == spec->to;
  probe p = {.spec = spec, .peer = asks ? spec->to : spec->from};
  *result = (gp_rank_probe){0};
  GP_TRY(gp_probe_check(spec));
  GP_TRY(gp_ranks_join());
  GP_TRY(gp_ranks_number("links", &p.port));
  pthread_mutex_init(&p.lock, NULL);
  pthread_cond_init(&p.came, NULL);
  gp_status status = takes_part ? make_room(&p, asks) : GP_OK;
  if (!status && takes_part)
    status = gp_ports_add(&(gp_port){
        .number = p.port, .context = &p, .room = room, .arrived = arrived, .gone = gone});
  if (!status) status = measure(&p, asks, takes_part, result);
  /* the last answer may still wait for the net's thread */
  if (status || asks)
    gp_ports_remove(p.port);
  else
    gp_ports_close(p.port);
  gp_spare_stop(p.spare);
  gp_free(p.room);
  gp_free(p.out);
  pthread_cond_destroy(&p.came);
  pthread_mutex_destroy(&p.lock);
  return status;
}
