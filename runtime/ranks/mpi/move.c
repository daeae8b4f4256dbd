/* ranks/mpi/move.c - messages that are moved by MPI.
 *
 * MPI moves bytes only inside its calls, so the net's thread asks again and again; after a
 * thousand rounds in which nothing came it sleeps between them, longer and longer, until a message
 * of this rank wakes it. A receive is posted for each rank at all times: for the opening of a
 * message, which is its head and as much of its payload as fits, then for the rest, in pieces that
 * both sides cut alike. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/version.h"
#include "ranks/mpi/mpi.h"
#include "ranks/transport.h"

/* Rounds without news before the thread gives way to another one of its core (the first few come
 * while an answer is on its way), and before it sleeps, after a tenth of a millisecond: less, and
 * it would sleep while a worker wakes up to answer. */
enum { SHARP_ROUNDS = 256, EMPTY_ROUNDS = 1500 };
/* Then for how long it sleeps, in nanoseconds: the shortest nap for some time, which covers the
 * pauses of a pipeline, then each is twice as long. */
static const int64_t NAP_LEAST = 50000, NAP_MOST = 1000000, NAP_SHORT = 20000000;

/* Pieces that are under way to each rank. Several, because a large one waits for its receiver. */
enum { WINDOW = 16 };

/* Small payloads travel with their heads: a second message would cost as much again. */
typedef struct opening {
  gp_rank_message head;
  char payload[1024 - sizeof(gp_rank_message)];
} opening;

/* What is being sent to a rank: a ring of pieces, which end in any order. */
typedef struct outbox {
  opening openings[WINDOW];        /* copies, because queues move */
  bool over[WINDOW], ends[WINDOW]; /* the last piece of a message */
  int first, count;
  size_t posted; /* bytes of the message that was begun last; 0: it is complete */
} outbox;

/* What is being received from one. */
typedef struct inbox {
  opening opening;
  size_t taken, came; /* bytes of the opening */
  size_t bytes;       /* of what is being received; 0: an opening is */
  bool begun, over;
} inbox;

typedef struct mover {
  const gp_mpi_api *api;
  inbox *in;   /* per rank; ids are ranks */
  outbox *out; /* per rank; ids are count + rank * WINDOW + place */
  _Atomic uint32_t sleeps;
  uint32_t seen; /* messages that were posted so far */
  int empty;     /* rounds without news */
  int64_t nap, napped;
  bool broken;
} mover;

static mover *of(const gp_net *net) { return net->link; }

/* ---- opening --------------------------------------------------------------------------------- */

/* What ranks must agree on. */
typedef struct card {
  int32_t protocol, count, process;
  char version[24], host[64], key[128];
} card;

enum { PROTOCOL = 3 };

static card own_card(const gp_net *net) {
  card c = {.protocol = PROTOCOL, .count = net->job.info.count, .process = (int32_t)getpid()};
  snprintf(c.version, sizeof c.version, "%s", GP_VERSION);
  snprintf(c.host, sizeof c.host, "%s", net->job.info.host);
  snprintf(c.key, sizeof c.key, "%s", net->job.key);
  return c;
}

static gp_status check_card(gp_net *net, int32_t r, card *c, const card *own) {
  c->version[sizeof c->version - 1] = c->host[sizeof c->host - 1] = '\0';
  if (c->protocol != own->protocol || strcmp(c->version, own->version))
    return gp_fail(GP_ESTATE, "ranks: rank %d has version %s, expected " GP_VERSION, (int)r,
                   c->version);
  if (memcmp(c->key, own->key, sizeof c->key))
    return gp_fail(GP_ESTATE,
                   "ranks: rank %d has another job key, expected the same GPIPE_JOB_KEY on all",
                   (int)r);
  net->peers[r].process = c->process;
  snprintf(net->peers[r].host, sizeof net->peers[r].host, "%s", c->host);
  return GP_OK;
}

static gp_status meet(gp_net *net) {
  const size_t count = (size_t)net->job.info.count;
  const card own = own_card(net);
  card *all;
  gp_status status = GP_OK;
  GP_TRY(gp_alloc_array(count, sizeof *all, (void **)&all));
  if (of(net)->api->exchange(&own, sizeof own, all))
    status = gp_fail(GP_EDEVICE, "ranks: %s", of(net)->api->text());
  for (int32_t r = 0; !status && r < net->job.info.count; r++)
    if (!net->peers[r].is_own) status = check_card(net, r, &all[r], &own);
  gp_free(all);
  return status;
}

static gp_status make_mover(gp_net *net) {
  const size_t count = (size_t)net->job.info.count;
  mover *m;
  GP_TRY(gp_alloc(sizeof *m, (void **)&m));
  net->link = m;
  GP_TRY(gp_mpi_find(&m->api));
  GP_TRY(gp_alloc_array(count, sizeof *m->in, (void **)&m->in));
  return gp_alloc_array(count, sizeof *m->out, (void **)&m->out);
}

static void receive_all(gp_net *net) {
  pthread_mutex_lock(&net->lock);
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (!net->peers[r].is_own) gp_peer_receive(net, &net->peers[r]);
  pthread_mutex_unlock(&net->lock);
}

static gp_status open_all(gp_net *net) {
  const gp_rank_info *info = &net->job.info;
  int rank, count;
  GP_TRY(make_mover(net));
  prctl(PR_SET_TIMERSLACK, 1000UL); /* naps end when they should: 50 us late is as long again */
  if (of(net)->api->join(&rank, &count))
    return gp_fail(GP_EDEVICE, "ranks: %s", of(net)->api->text());
  if (rank != info->rank || count != info->count)
    return gp_fail(GP_ESTATE,
                   "ranks: MPI says that this is rank %d of %d, expected rank %d of %d as %s says: "
                   "the same MPI for both (GPIPE_TRANSPORT=unix or tcp does without)",
                   rank, count, info->rank, info->count, net->job.info.launcher);
  GP_TRY(meet(net));
  receive_all(net); /* posts the first receives */
  return GP_OK;
}

static void close_all(gp_net *net, bool clean) {
  mover *m = of(net);
  if (!m) return;
  if (m->api) m->api->leave(clean);
  if (!clean) return; /* requests may still write to what is here */
  gp_free(m->in);
  gp_free(m->out);
  gp_free(m);
  net->link = NULL;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int id_of(int32_t rank, int place) {
  return gp_net_place()->job.info.count + rank * WINDOW + place;
}

/* How much of a message its opening holds. */
static size_t opening_bytes(const gp_rank_message *head) {
  const size_t room = sizeof((opening *)0)->payload;
  return sizeof *head + (head->bytes < room ? (size_t)head->bytes : room);
}

static void fill(opening *to, const gp_rank_outgoing *message) {
  to->head = message->head;
  if (message->head.bytes)
    memcpy(to->payload, message->payload, opening_bytes(&to->head) - sizeof to->head);
}

/* Post the next piece of a message: its opening, or some of the rest. */
static void post(gp_peer *peer, mover *m, const gp_rank_outgoing *message) {
  outbox *out = &m->out[peer->rank];
  const size_t head = sizeof message->head, left = head + message->head.bytes - out->posted;
  const int place = (out->first + out->count) % WINDOW;
  const void *data = &out->openings[place];
  size_t bytes = left < GP_MOVE_MOST ? left : GP_MOVE_MOST;
  if (out->posted) {
    data = message->payload + (out->posted - head);
  } else {
    fill(&out->openings[place], message);
    bytes = opening_bytes(&message->head);
    peer->out.begun++;
  }
  out->ends[place] = bytes == left;
  out->count++;
  out->posted = out->ends[place] ? 0 : out->posted + bytes;
  int over = 0;
  if (m->api->send(peer->rank, data, bytes, id_of(peer->rank, place), &over)) {
    m->broken = true;
    atomic_store(&peer->broken, 1);
  }
  out->over[place] = over != 0;
}

/* Messages whose pieces are all sent leave the queue, in order. */
static void drop_sent(gp_peer *peer, outbox *out) {
  for (; out->count && out->over[out->first]; out->count--) {
    if (out->ends[out->first] && peer->out.begun) {
      gp_rank_queue_pop(&peer->out);
      peer->out.begun--;
    }
    out->first = (out->first + 1) % WINDOW;
  }
}

static void flush(gp_peer *peer) {
  mover *m = of(gp_net_place());
  outbox *out = &m->out[peer->rank];
  gp_rank_queue *q = &peer->out;
  while (!m->broken && out->count < WINDOW && (out->posted || q->begun < q->count)) {
    post(peer, m, gp_rank_queue_at(q, out->posted ? q->begun - 1 : q->begun));
    drop_sent(peer, out);
  }
}

static void end_send(gp_net *net, int32_t r, int place) {
  gp_peer *peer = &net->peers[r];
  outbox *out = &of(net)->out[r];
  pthread_mutex_lock(&peer->lock);
  out->over[place] = true;
  drop_sent(peer, out);
  gp_peer_flush(peer);
  pthread_cond_broadcast(&peer->sent);
  pthread_mutex_unlock(&peer->lock);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Take bytes of the opening that has come. */
static ssize_t take_opening(inbox *in, char *to, size_t bytes) {
  const size_t left = in->came - in->taken;
  if (bytes > left) bytes = left;
  memcpy(to, (char *)&in->opening + in->taken, bytes);
  in->taken += bytes;
  return (ssize_t)bytes;
}

/* Post the receive of an opening or, in the middle of a message, of bytes that go to their
 * place. */
static ssize_t post_receive(gp_peer *peer, mover *m, char *to, size_t bytes) {
  inbox *in = &m->in[peer->rank];
  const bool opens = peer->in_done == 0;
  in->begun = true;
  in->bytes = opens ? 0 : bytes;
  peer->receiving = !opens;
  if (opens) {
    to = (char *)&in->opening;
    bytes = sizeof in->opening;
  }
  if (m->api->receive(peer->rank, to, bytes, peer->rank)) m->broken = true;
  return m->broken ? GP_MOVE_NEVER : GP_MOVE_LATER;
}

static ssize_t receive_part(gp_peer *peer, char *to, size_t bytes) {
  mover *m = of(gp_net_place());
  inbox *in = &m->in[peer->rank];
  if (m->broken) return GP_MOVE_NEVER;
  if (in->begun && !in->over) return GP_MOVE_LATER;
  const bool came = in->begun;
  in->begun = in->over = false;
  if (came && in->bytes) return (ssize_t)in->bytes;
  if (came) {
    in->taken = 0;
    in->came = opening_bytes(&in->opening.head);
  }
  return in->taken < in->came ? take_opening(in, to, bytes) : post_receive(peer, m, to, bytes);
}

/* A piece has come: take it, and go on until the next receive is posted. */
static void end_receive(gp_net *net, int32_t r) {
  gp_peer *peer = &net->peers[r];
  inbox *in = &of(net)->in[r];
  pthread_mutex_lock(&net->lock);
  in->over = true;
  peer->receiving = false;
  while (peer->state != GP_PEER_GONE && (in->over || !in->begun)) gp_peer_receive(net, peer);
  pthread_cond_broadcast(&net->came);
  pthread_mutex_unlock(&net->lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Begin to send what was posted meanwhile. */
static bool take_posted(gp_net *net) {
  mover *m = of(net);
  const uint32_t posted = atomic_load(&net->posted);
  if (posted == m->seen) return false;
  m->seen = posted;
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (!net->peers[r].is_own && gp_peer_has_outgoing(&net->peers[r]))
      gp_peer_serve(&net->peers[r]);
  return true;
}

/* The communicator is of no use any more. */
static void lose_all(gp_net *net) {
  of(net)->broken = true;
  pthread_mutex_lock(&net->lock);
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (!net->peers[r].is_own && net->peers[r].state != GP_PEER_GONE)
      gp_peer_lose(net, &net->peers[r], of(net)->api->text());
  pthread_mutex_unlock(&net->lock);
}

/* A round: returns whether anything has happened. */
static bool move_round(gp_net *net) {
  mover *m = of(net);
  const int count = net->job.info.count;
  const int *ids;
  const bool posted = take_posted(net);
  const int over = m->broken ? 0 : m->api->poll(&ids);
  for (int i = 0; i < over; i++) {
    if (ids[i] < count)
      end_receive(net, ids[i]);
    else
      end_send(net, (ids[i] - count) / WINDOW, (ids[i] - count) % WINDOW);
  }
  if (over < 0) lose_all(net);
  return posted || over > 0;
}

/* Sleep unless a message is posted just now. */
static void nap(gp_net *net, int64_t ns) {
  mover *m = of(net);
  struct pollfd fd = {.fd = net->news, .events = POLLIN};
  const struct timespec time = {.tv_nsec = ns};
  uint64_t news;
  atomic_store(&m->sleeps, 1);
  if (atomic_load(&net->posted) == m->seen && !atomic_load(&net->ends)) ppoll(&fd, 1, &time, NULL);
  atomic_store(&m->sleeps, 0);
  if (read(net->news, &news, sizeof news) < 0) return; /* there was no news */
}

/* Is it time for the net's heartbeats? */
static bool is_over(const gp_net *net, int64_t end) {
  return atomic_load(&net->ends) || atomic_load(&net->asked) || gp_now_ns() >= end;
}

/* It looks at the clock now and then: that takes as long as a round. */
static void serve(gp_net *net, int64_t most_ns) {
  mover *m = of(net);
  const int64_t end = gp_now_ns() + most_ns;
  for (int i = 1; i % 64 || !is_over(net, end); i++) {
    if (move_round(net)) {
      m->empty = 0;
      m->nap = NAP_LEAST;
      m->napped = 0;
      continue;
    }
    if (++m->empty < EMPTY_ROUNDS) {
      if (m->empty > SHARP_ROUNDS) gp_pause();
      continue;
    }
    nap(net, m->nap);
    m->napped += m->nap;
    if (m->napped > NAP_SHORT) m->nap = 2 * m->nap < NAP_MOST ? 2 * m->nap : NAP_MOST;
  }
}

static void wake(gp_net *net) {
  const uint64_t one = 1;
  atomic_fetch_add(&net->posted, 1);
  if (!atomic_load(&of(net)->sleeps)) return;
  ssize_t written = write(net->news, &one, sizeof one);
  (void)written; /* the counter is full: then the thread has news already */
}

/* MPI cannot end one connection; what is lost is no longer asked for. */
static void cut(gp_net *net, gp_peer *peer) { (void)net, (void)peer; }

static const gp_transport gp_transport_mpi = {.name = "mpi",
                                              .ends_together = true,
                                              .open = open_all,
                                              .serve = serve,
                                              .flush = flush,
                                              .receive = receive_part,
                                              .wake = wake,
                                              .cut = cut,
                                              .close = close_all};

gp_status gp_transport_find_mpi(const gp_transport **transport) {
  const gp_mpi_api *api;
  GP_TRY(gp_mpi_find(&api));
  *transport = &gp_transport_mpi;
  return GP_OK;
}
