/* ranks/receive.c - messages that come in: read piece by piece, checked before their bytes are.
 *
 * A length that does not fit ends the connection: what follows could be anything. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ranks/net.h"
#include "ranks/place.h"
#include "ranks/transport.h"

/* The most that a collective call may bring. */
static const uint64_t MOST_BYTES = UINT64_C(1) << 40;

/* ---- the end of a connection ----------------------------------------------------------------- */

/* Note that a peer is no longer open, and tell everything that may wait for it. */
static void close_peer(gp_net *net, gp_peer *peer, gp_peer_state state, const char *text) {
  if (peer->state != GP_PEER_OPEN) return;
  peer->state = state;
  snprintf(peer->text, sizeof peer->text, "%s", text);
  if (net->culprit < 0) net->culprit = peer->rank;
  pthread_cond_broadcast(&net->came);
  gp_ports_tell(net, peer->text);
}

/* The peer's host, if it is another than this rank's. */
static const char *host_of(const gp_net *net, const gp_peer *peer) {
  return strcmp(peer->host, net->job.info.host) != 0 ? peer->host : "";
}

void gp_peer_lose(gp_net *net, gp_peer *peer, const char *why) {
  char text[GP_RANK_TEXT];
  const char *host = host_of(net, peer);
  snprintf(text, sizeof text, "rank %d (process %ld%s%s) is gone: %s", (int)peer->rank,
           peer->process, *host ? " on " : "", host, why);
  atomic_store(&peer->broken, 1);
  peer->lost = peer->state == GP_PEER_OPEN;
  close_peer(net, peer, GP_PEER_GONE, text);
  peer->state = GP_PEER_GONE; /* also after it has said that it ends */
  net->transport->cut(net, peer);
  pthread_mutex_lock(&peer->lock);
  pthread_cond_broadcast(&peer->sent);
  pthread_mutex_unlock(&peer->lock);
}

void gp_peer_give_up(gp_net *net, gp_peer *peer, const char *text) {
  peer->lost = peer->state == GP_PEER_OPEN;
  close_peer(net, peer, GP_PEER_GONE, text);
}

/* ---- what a message is for ------------------------------------------------------------------- */

/* Take a piece in; it is noted when it is complete. Returns why it cannot be, or NULL. */
static const char *open_piece(gp_peer *peer) {
  gp_rank_piece *piece;
  if (peer->in.bytes > MOST_BYTES) return "it sent a piece that is too long";
  if (gp_alloc(sizeof *piece, (void **)&piece)) return "there is no memory for what it sent";
  if (peer->in.bytes && gp_alloc(peer->in.bytes, (void **)&piece->data)) {
    gp_free(piece);
    return "there is no memory for what it sent";
  }
  piece->head = peer->in;
  gp_rank_place_end(&piece->head.place);
  peer->piece = piece;
  peer->in_data = piece->data;
  return NULL;
}

/* Ask the message's port for room. A port that is not there any more has dropped its run. */
static const char *open_port(gp_net *net, gp_peer *peer) {
  uint64_t expected = peer->in.bytes;
  const gp_port *port = gp_port_find(net, peer->in.port);
  peer->in_data = port ? port->room(port->context, peer->rank, &peer->in, &expected) : NULL;
  return expected == peer->in.bytes ? NULL : "it sent a message of another length than expected";
}

/* Look at a head that is complete. Returns what is wrong with it, or NULL. */
static const char *open_message(gp_net *net, gp_peer *peer) {
  peer->in_data = NULL;
  peer->piece = NULL;
  switch (peer->in.kind) {
  case GP_RANK_PIECE: return open_piece(peer);
  case GP_RANK_VALUE:
  case GP_RANK_CREDIT:
  case GP_RANK_SHARE:
  case GP_RANK_FAILURE: return open_port(net, peer);
  case GP_RANK_ASK: return peer->in.bytes ? "it sent a question that is too long" : NULL;
  case GP_RANK_END:
  case GP_RANK_GIVE_UP:
    if (peer->in.bytes >= sizeof peer->text) return "it sent a text that is too long";
    if (peer->state != GP_PEER_OPEN) return NULL; /* its text is known */
    memset(peer->text, 0, sizeof peer->text);
    peer->in_data = peer->text;
    return NULL;
  case GP_RANK_BEAT:
    if (peer->in.bytes >= sizeof peer->words) return "it sent a heartbeat that is too long";
    memset(peer->words, 0, sizeof peer->words);
    peer->words_at = gp_now_ns();
    peer->in_data = peer->words;
    return NULL;
  default: return "it sent a message of an unknown kind";
  }
}

static void add_piece(gp_net *net, gp_peer *peer) {
  if (peer->last)
    peer->last->next = peer->piece;
  else
    peer->first = peer->piece;
  peer->last = peer->piece;
  peer->piece = NULL;
  pthread_cond_broadcast(&net->came);
}

/* A rank that ends says with which code, if it knows, and why if that is not 0: in its own words,
 * or in those that name the rank which has ended it (round). */
static void end_peer(gp_net *net, gp_peer *peer) {
  char text[GP_RANK_TEXT];
  const char *host = host_of(net, peer);
  peer->in_code = peer->in.slot;
  if (peer->in.bytes && peer->in.round)
    snprintf(text, sizeof text, "%s", peer->text);
  else if (peer->in.bytes)
    snprintf(text, sizeof text, "rank %d%s%s: %.300s", (int)peer->rank, *host ? " on " : "", host,
             peer->text);
  else if (peer->in.slot < 0)
    snprintf(text, sizeof text, "rank %d has ended", (int)peer->rank);
  else
    snprintf(text, sizeof text, "rank %d has ended with exit code %d", (int)peer->rank,
             (int)peer->in.slot);
  close_peer(net, peer, GP_PEER_ENDED, text);
}

static void take_beat(gp_peer *peer) {
  peer->pass =
      (gp_rank_pass){.call = peer->in.run, .owner = peer->in.round, .place = peer->in.place};
  gp_rank_place_end(&peer->pass.place);
  peer->news.doing = (gp_rank_doing)peer->in.slot;
  if (peer->in.port == GP_RANK_ANSWER) peer->news.answered = gp_now_ns();
}

/* The peer goes on without this rank, so that it counts as ended here. */
static void part_from(gp_net *net, gp_peer *peer) {
  char text[GP_RANK_TEXT];
  snprintf(text, sizeof text, "rank %d goes on without this rank: %.340s", (int)peer->rank,
           peer->text);
  gp_net_note_given_up(net, text);
  close_peer(net, peer, GP_PEER_ENDED, text);
}

static void close_message(gp_net *net, gp_peer *peer) {
  if (peer->in.kind == GP_RANK_PIECE) {
    add_piece(net, peer);
  } else if (peer->in.kind == GP_RANK_END) {
    end_peer(net, peer);
  } else if (peer->in.kind == GP_RANK_BEAT) {
    take_beat(peer);
  } else if (peer->in.kind == GP_RANK_ASK) {
    gp_net_ask_script(net);
  } else if (peer->in.kind == GP_RANK_GIVE_UP) {
    part_from(net, peer);
  } else {
    const gp_port *port = gp_port_find(net, peer->in.port);
    if (port && port->arrived) port->arrived(port->context, peer->rank, &peer->in);
  }
  peer->in_done = 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Read into the head, the room, or nowhere. */
static ssize_t read_some(const gp_net *net, gp_peer *peer) {
  static char nowhere[GP_MOVE_MOST];
  const size_t head = sizeof peer->in;
  char *to = (char *)&peer->in + peer->in_done;
  size_t left = head - peer->in_done;
  if (peer->in_done >= head) {
    const size_t got = peer->in_done - head;
    to = peer->in_data ? peer->in_data + got : nowhere;
    left = peer->in.bytes - got;
  }
  return net->transport->receive(peer, to, left < GP_MOVE_MOST ? left : GP_MOVE_MOST);
}

/* Take in n bytes that were read. Returns what is wrong with the message, or NULL. */
static const char *take(gp_net *net, gp_peer *peer, size_t n) {
  const size_t head = sizeof peer->in;
  const bool had_head = peer->in_done >= head;
  peer->in_done += n;
  if (peer->in_done < head) return NULL;
  const char *wrong = had_head ? NULL : open_message(net, peer);
  if (!wrong && peer->in_done == head + peer->in.bytes) close_message(net, peer);
  return wrong;
}

/* Read for a moment only: others wait for the lock. Returns whether a peer that has not ended has
 * said something. */
static bool read_on(gp_net *net, gp_peer *peer) {
  bool heard = false;
  for (size_t sum = 0; sum < GP_MOVE_MOST && peer->state != GP_PEER_GONE;) {
    const bool ended = peer->state == GP_PEER_ENDED;
    ssize_t n = read_some(net, peer);
    if (n == GP_MOVE_LATER) break;
    const char *wrong =
        n == GP_MOVE_NEVER ? "its connection was closed" : take(net, peer, (size_t)n);
    if (wrong) {
      gp_peer_lose(net, peer, wrong);
      break;
    }
    heard = heard || !ended;
    peer->has_spoken = true;
    sum += (size_t)n;
  }
  return heard;
}

void gp_peer_receive(gp_net *net, gp_peer *peer) {
  if (read_on(net, peer)) peer->heard = gp_now_ns(); /* behind it: a message may have an answer */
}
