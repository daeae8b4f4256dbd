/* ranks/stray.c - is another rank in another call than this one?
 *
 * During a run the ranks wait for each other's values, and they compare their calls only when it is
 * over. A rank that never began this run would be waited for until the watchdog strikes. So a rank
 * that waits looks here: at the pieces of calls that have come, and at what the others run by their
 * heartbeats. Both are numbered by the next collective call, which is the same one on all ranks. */
#include <stdio.h>
#include <string.h>

#include "ranks/net.h"

void gp_ranks_note_pass(uint32_t owner, const char *what) {
  gp_net *net = gp_net_get();
  pthread_mutex_lock(&net->lock);
  net->pass = (gp_rank_pass){.call = net->calls + 1, .owner = owner};
  snprintf(net->pass.what, sizeof net->pass.what, "%.23s", what);
  pthread_mutex_unlock(&net->lock);
}

/* The call with this number for which the rank has sent a piece, or a later one; NULL: none yet.
 * Pieces of calls that this rank has given up are older. */
static const char *call_of(const gp_peer *peer, uint32_t number) {
  for (const gp_rank_piece *piece = peer->first; piece; piece = piece->next)
    if ((int32_t)(piece->head.run - number) >= 0) return piece->head.what;
  return NULL;
}

static bool runs_another(const gp_rank_pass *own, const gp_rank_pass *other) {
  return own->what[0] && other->what[0] && own->call == other->call &&
         (own->owner != other->owner || strcmp(own->what, other->what) != 0);
}

static bool is_stray(const gp_net *net, const gp_peer *peer, const char *what, char *text,
                     size_t size) {
  static const char expected[] = "expected the same calls in the same order on all ranks";
  const int own = net->job.info.rank, other = (int)peer->rank;
  const char *call = call_of(peer, net->calls + 1);
  if (call && strcmp(call, what) != 0) {
    snprintf(text, size, "rank %d is in '%s', rank %d in '%s': %s", other, call, own, what,
             expected);
    return true;
  }
  if (!runs_another(&net->pass, &peer->pass)) return false;
  snprintf(text, size, "rank %d is in '%s'%s, rank %d in '%s': %s", other, peer->pass.what,
           net->pass.owner == peer->pass.owner ? "" : " of another pipeline", own, net->pass.what,
           expected);
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
