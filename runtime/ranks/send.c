/* ranks/send.c - messages that go out: at once if the connection takes them, else when it does. */
#include <string.h>

#include "base/memory.h"
#include "ranks/net.h"
#include "ranks/transport.h"

/* ---- the queue ------------------------------------------------------------------------------- */

gp_rank_outgoing *gp_rank_queue_at(const gp_rank_queue *q, size_t i) {
  return &q->list[(q->first + i) % q->room];
}

/* Make room for one more; the ring is unrolled into the larger one. */
static gp_status grow(gp_rank_queue *q) {
  gp_rank_outgoing *larger;
  size_t room = q->room ? 2 * q->room : 64;
  if (q->count < q->room) return GP_OK;
  GP_TRY(gp_alloc_array(room, sizeof *larger, (void **)&larger));
  for (size_t i = 0; i < q->count; i++) larger[i] = *gp_rank_queue_at(q, i);
  gp_free(q->list);
  q->list = larger;
  q->room = room;
  q->first = 0;
  return GP_OK;
}

static void drop_payload(const gp_rank_outgoing *out) {
  if (out->owned) gp_free((void *)out->payload);
}

void gp_rank_queue_pop(gp_rank_queue *q) {
  drop_payload(gp_rank_queue_at(q, 0));
  q->first = (q->first + 1) % q->room;
  q->count--;
  q->done = 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* What is left when nothing will read it is dropped; the thread that receives sees why. */
bool gp_peer_flush(gp_peer *peer) {
  gp_rank_queue *q = &peer->out;
  if (!atomic_load(&peer->broken)) gp_net_place()->transport->flush(peer);
  if (atomic_load(&peer->broken)) q->begun = 0;
  while (q->count && atomic_load(&peer->broken)) gp_rank_queue_pop(q);
  return q->count > 0;
}

void gp_peer_serve(gp_peer *peer) {
  pthread_mutex_lock(&peer->lock);
  gp_peer_flush(peer);
  pthread_mutex_unlock(&peer->lock);
}

bool gp_peer_has_outgoing(gp_peer *peer) {
  pthread_mutex_lock(&peer->lock);
  const bool has = peer->out.count > 0;
  pthread_mutex_unlock(&peer->lock);
  return has;
}

static bool is_thread_of(const gp_net *net) { return pthread_equal(pthread_self(), net->thread); }

/* The net's thread sends at once, and sees to what is left without being woken. */
static gp_status push(gp_net *net, gp_peer *peer, const gp_rank_outgoing *out) {
  pthread_mutex_lock(&peer->lock);
  const bool broken = atomic_load(&peer->broken);
  gp_status status = broken ? GP_OK : grow(&peer->out);
  const bool first = peer->out.count == 0, own = is_thread_of(net);
  bool left = false;
  if (status || broken) {
    drop_payload(out);
  } else {
    peer->out.count++;
    *gp_rank_queue_at(&peer->out, peer->out.count - 1) = *out;
    left = first && (!(own || net->transport->any_thread) || gp_peer_flush(peer));
  }
  pthread_mutex_unlock(&peer->lock);
  if (left && !own) gp_net_wake(net);
  return status;
}

gp_status gp_ranks_send(int32_t to, const gp_rank_message *message, const void *payload) {
  gp_net *net = gp_net_place();
  return push(net, &net->peers[to], &(gp_rank_outgoing){.head = *message, .payload = payload});
}

gp_status gp_ranks_send_copy(int32_t to, const gp_rank_message *message, const void *payload) {
  gp_net *net = gp_net_place();
  char *copy = NULL;
  if (message->bytes) {
    GP_TRY(gp_alloc(message->bytes, (void **)&copy));
    memcpy(copy, payload, message->bytes);
  }
  return push(net, &net->peers[to],
              &(gp_rank_outgoing){.head = *message, .payload = copy, .owned = copy != NULL});
}

/* ---- withdrawing ----------------------------------------------------------------------------- */

static bool has_begun(const gp_rank_queue *q, uint64_t port) {
  for (size_t i = 0; i < q->begun; i++)
    if (gp_rank_queue_at(q, i)->head.port == port) return true;
  return false;
}

/* Wait until the library is done with the messages of a port. Call with the peer's lock. */
static void await_begun(gp_peer *peer, uint64_t port) {
  while (has_begun(&peer->out, port) && !atomic_load(&peer->broken))
    pthread_cond_wait(&peer->sent, &peer->lock);
}

/* Copy a payload, because its owner wants the memory back. Without memory the connection is given
 * up: the other side counts on the bytes. */
static void keep(gp_peer *peer, gp_rank_outgoing *out) {
  void *copy;
  if (out->owned || !out->head.bytes) return;
  if (gp_alloc(out->head.bytes, &copy)) {
    atomic_store(&peer->broken, 1);
    gp_net_get()->transport->cut(gp_net_get(), peer);
    return;
  }
  memcpy(copy, out->payload, out->head.bytes);
  out->payload = copy;
  out->owned = true;
}

static void withdraw(gp_peer *peer, uint64_t port) {
  gp_rank_queue *q = &peer->out;
  size_t kept = 0;
  pthread_mutex_lock(&peer->lock);
  await_begun(peer, port);
  for (size_t i = 0; i < q->count; i++) {
    gp_rank_outgoing *out = gp_rank_queue_at(q, i);
    const bool meant = out->head.port == port, begun = i == 0 && q->done > 0;
    if (meant && begun) keep(peer, out); /* it is completed */
    if (meant && !begun)
      drop_payload(out);
    else
      *gp_rank_queue_at(q, kept++) = *out;
  }
  q->count = kept;
  pthread_mutex_unlock(&peer->lock);
}

void gp_ranks_withdraw(uint64_t port) {
  gp_net *net = gp_net_get();
  for (int32_t r = 0; net && r < net->job.info.count; r++)
    if (!net->peers[r].is_own) withdraw(&net->peers[r], port);
}

void gp_ranks_keep(uint64_t port) {
  gp_net *net = gp_net_get();
  for (int32_t r = 0; net && r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (peer->is_own) continue;
    pthread_mutex_lock(&peer->lock);
    await_begun(peer, port);
    for (size_t i = 0; i < peer->out.count; i++)
      if (gp_rank_queue_at(&peer->out, i)->head.port == port)
        keep(peer, gp_rank_queue_at(&peer->out, i));
    pthread_mutex_unlock(&peer->lock);
  }
}
