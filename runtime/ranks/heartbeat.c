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

static const int64_t BEAT_NS = 1000000000;
/* A rank that was asked where its script is looks for the answer as often. */
static const int64_t ASKED_NS = 50000000;
/* A peer that has said nothing yet may still be connecting to others. */
static const int64_t START_NS = 60000000000;
/* A thread that comes this late was stopped itself, with its process or the whole machine. */
static const int64_t LATE_NS = 2500000000;

/* A heartbeat is taken when it is time, and sent without the net's lock. */
typedef struct beat {
  gp_rank_message head;
  char words[GP_RANK_WORDS];
} beat;

/* Call with the net's lock. */
static void take(gp_net *net, int64_t now, beat *b) {
  const bool answers = gp_net_has_answer(net, now);
  b->head = (gp_rank_message){.kind = GP_RANK_BEAT,
                              .slot = (int32_t)gp_net_doing(net),
                              .run = net->pass.call,
                              .round = net->pass.owner,
                              .port = answers ? GP_RANK_ANSWER : 0,
                              .place = net->pass.place};
  gp_net_write_words(net, b->words, now);
  b->head.bytes = strlen(b->words);
  if (!answers) return;
  net->script.asked = 0;
  atomic_store(&net->asked, 0);
}

/* A peer whose queue does not empty gets none: the bytes that wait for it are as good. */
static void send_all(gp_net *net, const beat *b) {
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (!peer->is_own && peer->state == GP_PEER_OPEN && !gp_peer_has_outgoing(peer))
      (void)gp_ranks_send_copy(r, &b->head, b->words);
  }
}

static void check(gp_net *net, gp_peer *peer, int64_t now) {
  char why[GP_RANK_TEXT];
  const int64_t silence = now - peer->heard;
  const int64_t most = net->silence_most_ns + (peer->has_spoken ? 0 : START_NS);
  if (peer->is_own || peer->state != GP_PEER_OPEN || silence <= most) return;
  int at = snprintf(why, sizeof why, "no heartbeat for %.1f s", 1e-9 * (double)silence);
  if (peer->words[0]) /* which may be older than what was heard last */
    snprintf(why + at, sizeof why - (size_t)at, "; %.1f s before, it was %s",
             1e-9 * (double)(now - peer->words_at), peer->words);
  gp_peer_lose(net, peer, why);
}

/* Look for peers that are silent. Call with the net's lock, once for each heartbeat. */
static void look(gp_net *net, int64_t now) {
  const bool was_stopped = net->beat && now - net->beat > LATE_NS;
  if (was_stopped) net->stood += now - net->beat;
  net->beat = now;
  for (int32_t r = 0; r < net->job.info.count; r++) {
    if (was_stopped) net->peers[r].heard = now; /* their heartbeats wait to be read */
    if (net->silence_most_ns) check(net, &net->peers[r], now);
  }
}

int64_t gp_net_beat(gp_net *net) {
  const int64_t now = gp_now_ns();
  beat b;
  pthread_mutex_lock(&net->lock);
  const bool is_time = now - net->beat >= BEAT_NS, beats = is_time || gp_net_has_answer(net, now);
  if (beats) take(net, now, &b);
  if (is_time) look(net, now);
  gp_net_end_script(net, now);
  pthread_mutex_unlock(&net->lock);
  if (beats) send_all(net, &b);
  return atomic_load(&net->asked) ? ASKED_NS : BEAT_NS;
}
