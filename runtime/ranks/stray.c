/* ranks/stray.c - is another rank in another call than this one?
 *
 * During a run the ranks wait for each other's values, and they compare their calls only when it is
 * over. A rank that never began this run would be waited for until the watchdog strikes. So a rank
 * that waits looks here: at the pieces of calls that have come, and at what the others run by their
 * heartbeats. Both are numbered by the next collective call, which is the same one on all ranks. */
#include <stdio.h>
#include <string.h>

#include "ranks/net.h"
#include "ranks/place.h"

void gp_ranks_note_pass(uint32_t owner, const char *what) {
  gp_net *net = gp_net_get();
  pthread_mutex_lock(&net->lock);
  net->pass = (gp_rank_pass){.call = net->calls + 1, .owner = owner, .place = net->place};
  snprintf(net->pass.place.what, sizeof net->pass.place.what, "%s", what);
  net->absentees.asked = 0;
  pthread_mutex_unlock(&net->lock);
}

/* The piece that the rank has sent for the call with this number, or for a later one; NULL: none
 * yet. Pieces of calls that this rank has given up are older. */
const gp_rank_piece *gp_peer_piece_of(const gp_peer *peer, uint32_t number) {
  const gp_rank_piece *piece = peer->first;
  while (piece && (int32_t)(piece->head.run - number) < 0) piece = piece->next;
  return piece;
}

static bool runs_another(const gp_rank_pass *own, const gp_rank_pass *other) {
  return own->place.what[0] && other->place.what[0] && own->call == other->call &&
         (own->owner != other->owner || strcmp(own->place.what, other->place.what) != 0);
}

/* Where another rank is instead, and in whose run; NULL: it may be where this one is. */
static const gp_rank_place *find_place(const gp_net *net, const gp_peer *peer, const char *what,
                                       uint32_t *owner) {
  const gp_rank_piece *piece = gp_peer_piece_of(peer, net->calls + 1);
  *owner = piece ? piece->head.round : peer->pass.owner;
  if (piece && (strcmp(piece->head.place.what, what) != 0 || *owner != net->pass.owner))
    return &piece->head.place;
  return !piece && runs_another(&net->pass, &peer->pass) ? &peer->pass.place : NULL;
}

static bool is_stray(const gp_net *net, const gp_peer *peer, const char *what, char *text,
                     size_t size) {
  uint32_t owner;
  gp_rank_place own = net->place;
  const gp_rank_place *other = find_place(net, peer, what, &owner);
  if (!other) return false;
  snprintf(own.what, sizeof own.what, "%s", what);
  gp_rank_part((gp_rank_stand){.rank = net->job.info.rank, .place = &own},
               (gp_rank_stand){.rank = (int)peer->rank,
                               .place = other,
                               .another = gp_rank_are_two(owner, net->pass.owner)},
               text, size);
  return true;
}

bool gp_ranks_find_stray(const char *what, char *text, size_t size) {
  gp_net *net = gp_net_get();
  bool found = false;
  pthread_mutex_lock(&net->lock);
  for (int32_t r = 0; !found && r < net->job.info.count; r++)
    if (!net->peers[r].is_own) found = is_stray(net, &net->peers[r], what, text, size);
  pthread_mutex_unlock(&net->lock);
  return found;
}
