/* ranks/leave.c - how a process ends: it says so, so that the others need not guess.
 *
 * A connection that closes without that word is a rank that was killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "ranks/net.h"

static const int64_t WAIT_NS = 2000000000; /* for the last words to be sent */

static char reason[GP_RANK_TEXT]; /* the error that ends this process */

void gp_ranks_note_failure(const char *text) {
  const size_t length = strcspn(text, "\n"); /* without the traceback */
  snprintf(reason, sizeof reason, "%.*s", (int)(length < 300 ? length : 300), text);
}

static bool is_anything_left(gp_net *net) {
  bool left = false;
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (peer->socket < 0) continue;
    pthread_mutex_lock(&peer->lock);
    left = left || (peer->out.count > 0 && !peer->broken);
    pthread_mutex_unlock(&peer->lock);
  }
  return left;
}

/* The peers stay as they are, because a lost worker may still send. */
void gp_ranks_leave(int code) {
  static _Atomic uint32_t left;
  gp_net *net = gp_net_get();
  if (!net || atomic_exchange(&left, 1)) return;
  gp_rank_message last = {
      .kind = GP_RANK_END, .slot = code, .bytes = code > 0 ? strlen(reason) : 0};
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (net->peers[r].socket >= 0) gp_ranks_send_copy(r, &last, reason);
  const struct timespec nap = {.tv_nsec = 1000000};
  for (int64_t end = gp_now_ns() + WAIT_NS; is_anything_left(net) && gp_now_ns() < end;)
    nanosleep(&nap, NULL);
}

/* The code of os.exit is not known here. */
static void leave(void) { gp_ranks_leave(-1); }

void gp_ranks_leave_at_exit(void) { atexit(leave); }
