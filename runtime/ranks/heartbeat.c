/* ranks/heartbeat.c - signs of life: once a second to each rank, with a few words about what this
 * one does.
 *
 * A process that dies closes its connections, but a host that vanishes or a process that is stopped
 * does not: its silence is all that there is. Any bytes are a sign of life, so a long message needs
 * no heartbeat beside it. The words let the others say what the lost rank did last. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "ranks/net.h"
#include "ranks/place.h"

static const int64_t BEAT_NS = 1000000000;
/* A peer that has said nothing yet may still be connecting to others. */
static const int64_t START_NS = 60000000000;
/* A thread that comes this late was stopped itself, with its process or the whole machine. */
static const int64_t LATE_NS = 2500000000;

/* ---- words ----------------------------------------------------------------------------------- */

/* Say what this rank does: a run that is under way before a call of all ranks; between them it is
 * in its script. */
static void write_words(gp_net *net, char words[GP_RANK_WORDS], int64_t now) {
  words[0] = '\0';
  for (size_t i = 0; i < net->port_count && !words[0]; i++)
    if (net->ports[i].words) net->ports[i].words(net->ports[i].context, words, GP_RANK_WORDS);
  if (!words[0] && net->call)
    snprintf(words, GP_RANK_WORDS, "in '%s'%s%s for %.1f s",
             gp_rank_call_name(&net->place, net->call), *net->place.where ? " at " : "",
             net->place.where, 1e-9 * (double)(now - net->call_begin));
  if (!words[0]) snprintf(words, GP_RANK_WORDS, "in its script");
}

/* ---- beating --------------------------------------------------------------------------------- */

/* A peer whose queue does not empty gets none: the bytes that wait for it are as good. */
static void send_all(gp_net *net, const gp_rank_pass *pass, const char *words) {
  gp_rank_message beat = {
      .kind = GP_RANK_BEAT, .run = pass->call, .round = pass->owner, .bytes = strlen(words)};
  beat.place = pass->place;
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (!peer->is_own && peer->state == GP_PEER_OPEN && !gp_peer_has_outgoing(peer))
      (void)gp_ranks_send_copy(r, &beat, words);
  }
}

static void check(gp_net *net, gp_peer *peer, int64_t now) {
  char why[GP_RANK_TEXT];
  const int64_t silence = now - peer->heard;
  const int64_t most = net->silence_most_ns + (peer->has_spoken ? 0 : START_NS);
  if (peer->is_own || peer->state != GP_PEER_OPEN || silence <= most) return;
  snprintf(why, sizeof why, "no heartbeat for %.1f s%s%s", 1e-9 * (double)silence,
           peer->words[0] ? "; before, it was " : "", peer->words);
  gp_peer_lose(net, peer, why);
}

void gp_net_beat(gp_net *net) {
  const int64_t now = gp_now_ns();
  char words[GP_RANK_WORDS];
  if (now - net->beat < BEAT_NS) return;
  const bool was_stopped = net->beat && now - net->beat > LATE_NS;
  net->beat = now;
  pthread_mutex_lock(&net->lock);
  const gp_rank_pass pass = net->pass;
  write_words(net, words, now);
  for (int32_t r = 0; r < net->job.info.count; r++) {
    if (was_stopped) net->peers[r].heard = now; /* their heartbeats wait to be read */
    if (net->silence_most_ns) check(net, &net->peers[r], now);
  }
  pthread_mutex_unlock(&net->lock);
  send_all(net, &pass, words);
}
