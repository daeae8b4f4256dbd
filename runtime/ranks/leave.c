/* ranks/leave.c - how a process ends: it says so, so that the others need not guess.
 *
 * A connection that closes without that word is a rank that was killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "ranks/net.h"
#include "ranks/transport.h"

static const int64_t WAIT_NS = 2000000000; /* for the last words to be sent */

enum { SIGNALS = 128 }; /* codes above it: 128 and the signal that has ended the script */

static char reason[GP_RANK_TEXT]; /* the error that ends this process */

void gp_ranks_note_failure(const char *text) {
  const size_t length = strcspn(text, "\n"); /* without the traceback */
  snprintf(reason, sizeof reason, "%.*s", (int)(length < 300 ? length : 300), text);
}

static bool is_anything_left(gp_net *net) {
  bool left = false;
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    left = left || (!peer->is_own && !atomic_load(&peer->broken) && gp_peer_has_outgoing(peer));
  }
  return left;
}

/* The words of the rank that has ended this one, as they stand in this one's error; NULL: it ends
 * for a reason of its own. */
static const char *words_of_another(gp_net *net) {
  const char *words = NULL;
  char begin[100]; /* errors are cut */
  pthread_mutex_lock(&net->lock);
  if (net->culprit >= 0) words = net->peers[net->culprit].text;
  pthread_mutex_unlock(&net->lock);
  snprintf(begin, sizeof begin, "%.99s", words ? words : "");
  return *begin && strstr(reason, begin) ? words : NULL;
}

static void say_goodbye(gp_net *net, int code) {
  const char *another = words_of_another(net), *words = another ? another : reason;
  gp_rank_message last = {.kind = GP_RANK_END,
                          .slot = code,
                          .round = another != NULL,
                          .bytes = code > 0 ? strlen(words) : 0};
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (!net->peers[r].is_own) gp_ranks_send_copy(r, &last, words);
  const struct timespec nap = {.tv_nsec = 1000000};
  for (int64_t end = gp_now_ns() + WAIT_NS; is_anything_left(net) && gp_now_ns() < end;)
    nanosleep(&nap, NULL);
}

/* Has a rank gone without a word, or with an error? all: have all others ended? */
static bool is_anything_wrong(gp_net *net, bool *all) {
  bool wrong = false;
  *all = true;
  pthread_mutex_lock(&net->lock);
  for (int32_t r = 0; r < net->job.info.count; r++) {
    const gp_peer *peer = &net->peers[r];
    if (peer->is_own) continue;
    wrong = wrong || peer->lost || (peer->state == GP_PEER_ENDED && peer->in_code > 0);
    *all = *all && peer->state != GP_PEER_OPEN;
  }
  pthread_mutex_unlock(&net->lock);
  return wrong;
}

/* MPI's processes end together: a launcher takes one that ends alone for a failure. Returns whether
 * all have ended well, and the transport is closed. */
static bool end_together(gp_net *net) {
  bool all = false;
  const struct timespec nap = {.tv_nsec = 1000000};
  while (!all) {
    if (is_anything_wrong(net, &all)) return false;
    nanosleep(&nap, NULL);
  }
  atomic_store(&net->ends, 1);
  gp_net_wake(net);
  pthread_join(net->thread, NULL);
  return true;
}

/* Join the job of a script that has failed before it did, so that the others hear why instead of
 * waiting for this rank. A launcher of MPI ends them itself, and what a signal has ended says
 * nothing. */
static void join_to_say_why(int code) {
  gp_net *net = gp_net_place();
  gp_rank_job job;
  if (code <= 0 || code > SIGNALS || !*reason || net->tried) return;
  if (gp_rank_job_read(&job) || job.info.count == 1) return;
  if (job.has_mpi || job.way == GP_RANKS_MPI) return;
  net->hurried = true;
  (void)gp_ranks_join(); /* the others may not come: this process ends all the same */
}

/* The peers stay as they are, because a lost worker may still send. */
bool gp_ranks_leave(int code) {
  static _Atomic uint32_t left;
  join_to_say_why(code);
  gp_net *net = gp_net_get();
  if (!net || atomic_exchange(&left, 1)) return false;
  say_goodbye(net, code);
  if (!net->transport->ends_together) return false;
  return code > 0 || !end_together(net);
}

/* The code of os.exit is not known here. */
static void leave(void) { (void)gp_ranks_leave(-1); }

void gp_ranks_leave_at_exit(void) { atexit(leave); }
