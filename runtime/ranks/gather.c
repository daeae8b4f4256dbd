/* ranks/gather.c - calls that all ranks make together.
 *
 * Every rank sends its piece to all others and waits for theirs. Calls are numbered, and named,
 * because a script may take another way on one of the ranks: then all of them are told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/process.h"
#include "ranks/net.h"
#include "ranks/place.h"

static const uint64_t PIECES = UINT64_C(1) << 63; /* a port's number for pieces: no port has it */

/* ---- waiting --------------------------------------------------------------------------------- */

/* A collective call under way. */
typedef struct call {
  gp_net *net;
  const char *what;
  double seconds;
  int64_t begin, stood; /* how long the process had been stopped by then */
  const bool *to;       /* per rank: it gets the own piece, and not an empty one; NULL: all do */
  gp_rank_pieces *pieces;
  uint32_t owner;      /* whose run ends by this call; 0: it ends none */
  gp_rank_place place; /* of this rank */
} call;

/* Has this rank waited for longer than the limit, and is the script of another one elsewhere? The
 * time for which the process was stopped does not count. */
static bool finds_absent(const call *c) {
  gp_net *net = c->net;
  const int64_t limit = net->absentees.limit_ns;
  const int64_t waited = gp_now_ns() - c->begin - (net->stood - c->stood);
  return limit && waited >= limit &&
         gp_net_find_absent(net, net->calls, c->what, waited, waited >= 2 * limit) ==
             GP_RANK_ABSENT;
}

/* Why a peer's piece will not come; GP_OK: it may. */
static gp_status look_for_reason(const call *c, const gp_peer *peer) {
  /* the first that went is the reason for the others */
  if (peer->state != GP_PEER_OPEN || finds_absent(c))
    return gp_fail(GP_EDEVICE, "%s: %s", gp_rank_call_name(&c->place, c->what),
                   c->net->peers[c->net->culprit].text);
  if (gp_interrupt_pending() && c->seconds == 0) return gp_fail(GP_EINTERRUPT, "interrupted");
  if (c->seconds > 0 && 1e-9 * (double)(gp_now_ns() - c->begin) > c->seconds)
    return gp_fail(GP_ETIMEOUT, "%s: rank %d did not come within %g seconds",
                   gp_rank_call_name(&c->place, c->what), (int)peer->rank, c->seconds);
  return GP_OK;
}

static gp_rank_piece *pop(gp_peer *peer) {
  gp_rank_piece *piece = peer->first;
  peer->first = piece->next;
  if (!peer->first) peer->last = NULL;
  return piece;
}

/* Drop the pieces of calls that this rank has given up. */
static void skip_old(const call *c, gp_peer *peer) {
  while (peer->first && (int32_t)(peer->first->head.run - c->net->calls) < 0) {
    gp_rank_piece *old = pop(peer);
    gp_free(old->data);
    gp_free(old);
  }
}

/* The rank is in a run that this one is not in, which it will give up: so does this one. */
static void lose_run(gp_net *net, uint32_t owner, const char *text) {
  const gp_port *port = owner ? gp_port_find(net, (uint64_t)owner << 32) : NULL;
  if (port && port->gone) port->gone(port->context, text);
}

/* Ranks are waited for in order, so those below this peer are where this rank is: if rank 0 is one
 * of them, it is named, and all who find the same rank astray say the same. */
static gp_status say_parted(const call *c, const gp_peer *peer, const gp_rank_piece *piece) {
  char text[GP_RANK_TEXT];
  const int own = peer->rank > 0 ? 0 : c->net->job.info.rank;
  gp_rank_part((gp_rank_stand){.rank = own, .place = &c->place},
               (gp_rank_stand){.rank = (int)peer->rank,
                               .place = &piece->head.place,
                               .another = gp_rank_are_two(piece->head.round, c->owner)},
               text, sizeof text);
  if (piece->head.round != c->owner) lose_run(c->net, piece->head.round, text);
  return gp_fail(GP_ESTATE, "%s", text);
}

/* Wait for a peer's piece and take it. */
static gp_status await_piece(const call *c, gp_peer *peer) {
  for (skip_old(c, peer); !peer->first; skip_old(c, peer)) {
    GP_TRY(look_for_reason(c, peer));
    gp_net_doze(&c->net->came, &c->net->lock);
  }
  gp_rank_piece *piece = peer->first;
  if (strcmp(piece->head.place.what, c->what) || piece->head.round != c->owner ||
      piece->head.run != c->net->calls)
    return say_parted(c, peer, piece);
  pop(peer);
  c->pieces->data[peer->rank] = piece->data;
  c->pieces->bytes[peer->rank] = piece->head.bytes;
  gp_free(piece);
  return GP_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static gp_status copy_own(const call *c, const void *own, size_t bytes) {
  const int rank = c->net->job.info.rank;
  if (!bytes) return GP_OK;
  GP_TRY(gp_alloc(bytes, (void **)&c->pieces->data[rank]));
  memcpy(c->pieces->data[rank], own, bytes);
  c->pieces->bytes[rank] = bytes;
  return GP_OK;
}

/* Send the own piece to the others. They get it from the caller's memory, which is free again when
 * their pieces are there and nothing is left to send. */
static gp_status send_own(const call *c, const void *own, size_t bytes) {
  gp_rank_message head = {.kind = GP_RANK_PIECE,
                          .run = c->net->calls,
                          .round = c->owner,
                          .port = PIECES,
                          .place = c->place};
  for (int32_t r = 0; r < c->net->job.info.count; r++) {
    head.bytes = !c->to || c->to[r] ? bytes : 0;
    if (r != c->net->job.info.rank) GP_TRY(gp_ranks_send(r, &head, own));
  }
  return GP_OK;
}

static gp_status make_pieces(const call *c) {
  const size_t count = (size_t)c->net->job.info.count;
  GP_TRY(gp_alloc_array(count, sizeof(char *), (void **)&c->pieces->data));
  GP_TRY(gp_alloc_array(count, sizeof(size_t), (void **)&c->pieces->bytes));
  c->pieces->count = (int)count;
  return GP_OK;
}

static gp_status gather(const call *c, const void *own, size_t bytes) {
  gp_net *net = c->net;
  GP_TRY(make_pieces(c));
  GP_TRY(copy_own(c, own, bytes));
  GP_TRY(send_own(c, c->pieces->data[net->job.info.rank], bytes));
  gp_status status = GP_OK;
  pthread_mutex_lock(&net->lock);
  for (int32_t r = 0; !status && r < net->job.info.count; r++)
    if (r != net->job.info.rank) status = await_piece(c, &net->peers[r]);
  pthread_mutex_unlock(&net->lock);
  return status;
}

/* Heartbeats tell what this rank waits for; the run under way ends by this call. */
static void note_call(call *c) {
  gp_net *net = c->net;
  pthread_mutex_lock(&net->lock);
  net->call = c->what;
  net->call_begin = c->begin;
  net->absentees.asked = 0;
  c->stood = net->stood;
  c->owner = net->pass.owner;
  c->place = net->place;
  pthread_mutex_unlock(&net->lock);
  snprintf(c->place.what, sizeof c->place.what, "%s", c->what);
}

static void note_end(gp_net *net) {
  pthread_mutex_lock(&net->lock);
  net->call = NULL;
  pthread_mutex_unlock(&net->lock);
}

static gp_status make_call(call *c, const void *own, size_t bytes) {
  *c->pieces = (gp_rank_pieces){0};
  GP_TRY(gp_ranks_join());
  c->net = gp_net_get();
  c->begin = gp_now_ns();
  c->net->calls++;
  note_call(c);
  gp_status status = gather(c, own, bytes);
  note_end(c->net);
  /* the own piece is freed by the caller: what is not sent yet is copied */
  gp_ranks_keep(PIECES);
  if (status) gp_rank_pieces_free(c->pieces);
  return status;
}

gp_status gp_ranks_gather(const char *what, double seconds, const void *own, size_t bytes,
                          gp_rank_pieces *pieces) {
  return make_call(&(call){.what = what, .seconds = seconds, .pieces = pieces}, own, bytes);
}

gp_status gp_ranks_hand(const char *what, const bool *to, const void *own, size_t bytes,
                        gp_rank_pieces *pieces) {
  return make_call(&(call){.what = what, .to = to, .pieces = pieces}, own, bytes);
}

void gp_rank_pieces_free(gp_rank_pieces *pieces) {
  for (int r = 0; pieces->data && r < pieces->count; r++) gp_free(pieces->data[r]);
  gp_free(pieces->data);
  gp_free(pieces->bytes);
  *pieces = (gp_rank_pieces){0};
}

/* ---- dictation ------------------------------------------------------------------------------- */

/* No other call has this name: scripts cannot choose names with a space at the end. */
static const char DICTATION[] = "dictation ";
/* Other ranks may have made more calls than this one, if these failed. From here on their pieces
 * are older than those of the next call. */
enum { LEAP = 1 << 16 };

gp_status gp_ranks_dictate(const char *text, size_t bytes) {
  GP_TRY(gp_ranks_join());
  gp_net *net = gp_net_get();
  net->calls += LEAP;
  gp_rank_message head = {.kind = GP_RANK_PIECE, .run = net->calls, .port = PIECES, .bytes = bytes};
  snprintf(head.place.what, sizeof head.place.what, "%s", DICTATION);
  GP_TRY(gp_ranks_check());
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (r != net->job.info.rank) GP_TRY(gp_ranks_send_copy(r, &head, text));
  return GP_OK;
}

/* Drop what the rank has sent for other calls; returns the text if it has come. */
static gp_rank_piece *find_dictation(gp_peer *peer) {
  while (peer->first) {
    gp_rank_piece *piece = pop(peer);
    if (!strcmp(piece->head.place.what, DICTATION)) return piece;
    gp_free(piece->data);
    gp_free(piece);
  }
  return NULL;
}

gp_status gp_ranks_listen(int from, char **text, size_t *bytes) {
  GP_TRY(gp_ranks_join());
  gp_net *net = gp_net_get();
  gp_peer *peer = &net->peers[from];
  gp_rank_piece *piece;
  pthread_mutex_lock(&net->lock);
  while (!(piece = find_dictation(peer)) && peer->state == GP_PEER_OPEN)
    gp_net_doze(&net->came, &net->lock);
  gp_status status = piece ? GP_OK : gp_fail(GP_EDEVICE, "%s", peer->text);
  pthread_mutex_unlock(&net->lock);
  if (status) return status;
  net->calls = piece->head.run;
  *text = piece->data;
  *bytes = piece->head.bytes;
  gp_free(piece);
  return GP_OK;
}

void gp_rank_text_free(char *text) { gp_free(text); }

/* ---- agreement ------------------------------------------------------------------------------- */

typedef struct outcome {
  int32_t status;
  char text[512];
} outcome;

gp_status gp_ranks_agree(const char *what, gp_status status, const char *text) {
  outcome own = {.status = (int32_t)status};
  gp_rank_pieces all;
  if (status) snprintf(own.text, sizeof own.text, "%s", text);
  GP_TRY(gp_ranks_gather(what, 0, &own, sizeof own, &all));
  gp_status agreed = GP_OK;
  for (int r = 0; !agreed && r < all.count; r++) {
    const outcome *one = (const outcome *)all.data[r];
    if (all.bytes[r] != sizeof *one || one->status == GP_OK) continue;
    const bool known = one->status > 0 && one->status < GP_STATUS_COUNT;
    agreed = gp_fail(known ? (gp_status)one->status : GP_EIO, "rank %d: %.511s", r, one->text);
  }
  gp_rank_pieces_free(&all);
  return agreed;
}
