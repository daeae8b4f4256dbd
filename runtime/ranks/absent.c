/* ranks/absent.c - see script.h: whose script does not come to a call?
 *
 * A rank is given up only if its own answer says that its script is elsewhere. One that waits
 * itself, or watches a run, is not to blame: it waits for a third one, or its watchdog sees to it.
 * For a rank that does not answer there are heartbeats. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "ranks/net.h"
#include "ranks/place.h"

/* Ranks that have no one to blame ask again after this time. */
static const int64_t AGAIN_NS = 1000000000;

gp_status gp_ranks_set_limit(double seconds, double *was) {
  gp_net *net = gp_net_place();
  const double most = 1e9;
  if (!(seconds >= 0 && seconds <= most))
    return gp_fail(GP_ERANGE, "ranks: the limit is %g seconds, expected 0 to %g", seconds, most);
  pthread_mutex_lock(&net->lock);
  *was = 1e-9 * (double)net->absentees.limit_ns;
  net->absentees.limit_ns = (int64_t)(1e9 * seconds);
  pthread_mutex_unlock(&net->lock);
  return GP_OK;
}

static bool is_missing(const gp_peer *peer, uint32_t number) {
  return !peer->is_own && peer->state == GP_PEER_OPEN && !gp_peer_piece_of(peer, number);
}

/* Ask the ranks whose pieces are missing. */
static void ask(gp_net *net, uint32_t number) {
  const gp_rank_message question = {.kind = GP_RANK_ASK};
  net->absentees.asked = gp_now_ns();
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (is_missing(&net->peers[r], number)) (void)gp_ranks_send_copy(r, &question, NULL);
}

static bool has_answered(const gp_net *net, const gp_peer *peer) {
  return peer->news.answered >= net->absentees.asked;
}

/* Say of a rank how long it was waited for, and where it is. */
static void give_up(gp_net *net, gp_peer *peer, const char *what, int64_t waited) {
  char text[GP_RANK_TEXT];
  const gp_rank_place *own = &net->place;
  const bool same = !strcmp(peer->host, net->job.info.host);
  snprintf(text, sizeof text,
           "rank %d (process %ld%s%s) has not come to '%s'%s%s within %.1f s: it is alive, %.150s; "
           "gp.barrier(seconds) waits longer",
           (int)peer->rank, peer->process, same ? "" : " on ", same ? "" : peer->host,
           gp_rank_call_name(own, what), *own->where ? " at " : "", own->where,
           1e-9 * (double)waited, peer->words);
  const gp_rank_message verdict = {.kind = GP_RANK_GIVE_UP, .bytes = strlen(text)};
  (void)gp_ranks_send_copy(peer->rank, &verdict, text);
  gp_peer_give_up(net, peer, text);
}

gp_rank_absence gp_net_find_absent(gp_net *net, uint32_t number, const char *what, int64_t waited,
                                   bool overdue) {
  gp_rank_absentees *a = &net->absentees;
  bool answered = true;
  if (!a->asked) ask(net, number);
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (!is_missing(peer, number)) continue;
    answered = answered && has_answered(net, peer);
    if (!has_answered(net, peer) || peer->news.doing == GP_RANK_WAITS) continue;
    if (peer->news.doing == GP_RANK_WORKS && !overdue) continue;
    give_up(net, peer, what, waited);
    return GP_RANK_ABSENT;
  }
  if (gp_now_ns() - a->asked > AGAIN_NS) a->asked = 0;
  return answered || !a->asked ? GP_RANK_ALL_COME : GP_RANK_ASKED;
}

gp_rank_absence gp_ranks_find_absent(const char *what, int64_t quiet_ns) {
  gp_net *net = gp_net_get();
  pthread_mutex_lock(&net->lock);
  const gp_rank_absence absence = gp_net_find_absent(net, net->calls + 1, what, quiet_ns, true);
  pthread_mutex_unlock(&net->lock);
  return absence;
}
