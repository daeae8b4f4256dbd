/* ranks/net.c - the net of this process, and the thread that opens its transport and moves all
 * messages. */
#include "ranks/net.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ranks/transport.h"

/* One net serves the process, whose rank it is: links and pipelines share the connections. */
static gp_net net = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .news = -1, .culprit = -1};
static _Atomic uint32_t connected;

gp_net *gp_net_place(void) { return &net; }
gp_net *gp_net_get(void) { return atomic_load(&connected) ? &net : NULL; }

int32_t gp_ranks_own(void) {
  gp_rank_info info;
  return gp_ranks_info(&info) ? 0 : info.rank;
}

int32_t gp_ranks_count(void) {
  gp_rank_info info;
  return gp_ranks_info(&info) ? 1 : info.count;
}

gp_status gp_ranks_check(void) {
  gp_status status = GP_OK;
  if (!gp_net_get()) return GP_OK;
  pthread_mutex_lock(&net.lock);
  if (net.culprit >= 0) status = gp_fail(GP_EDEVICE, "%s", net.peers[net.culprit].text);
  pthread_mutex_unlock(&net.lock);
  return status;
}

/* A rank that ends because another one is lost says so by its code, which may come first. One that
 * was given up is lost for the others, and one that hangs is as good as lost. */
bool gp_ranks_are_lost(void) {
  if (!gp_net_get()) return false;
  pthread_mutex_lock(&net.lock);
  bool lost = net.script.given_up != 0 || atomic_load(&net.script.hung);
  for (int32_t r = 0; r < net.job.info.count; r++)
    lost = lost || net.peers[r].lost || net.peers[r].in_code == GP_RANKS_AGAIN;
  pthread_mutex_unlock(&net.lock);
  return lost;
}

bool gp_ranks_are_near(int32_t rank) {
  const gp_net *n = gp_net_get();
  return n && !strcmp(n->peers[rank].host, n->job.info.host);
}

const char *gp_ranks_remark(void) { return net.remark; }
const char *gp_ranks_transport(void) { return gp_net_get() ? net.transport->name : ""; }

/* ---- the thread ------------------------------------------------------------------------------ */

void gp_net_wake(gp_net *n) { n->transport->wake(n); }

static void note_opened(gp_net *n, gp_status status) {
  pthread_mutex_lock(&n->lock);
  n->status = status;
  if (status) snprintf(n->why, sizeof n->why, "%s", gp_error_text());
  n->opened = true;
  pthread_cond_broadcast(&n->came);
  pthread_mutex_unlock(&n->lock);
}

/* Have all ranks said that they end, and none that it has failed? */
static bool ends_cleanly(gp_net *n) {
  bool clean = true;
  pthread_mutex_lock(&n->lock);
  for (int32_t r = 0; r < n->job.info.count; r++)
    clean = clean && (n->peers[r].is_own || n->peers[r].state == GP_PEER_ENDED);
  pthread_mutex_unlock(&n->lock);
  return clean;
}

static void *move_messages(void *context) {
  gp_net *n = context;
  gp_status status = n->transport->open(n);
  const int64_t now = gp_now_ns();
  for (int32_t r = 0; r < n->job.info.count; r++) n->peers[r].heard = now;
  note_opened(n, status);
  int64_t nap = 0; /* ns until the next heartbeat, about */
  while (!status && !atomic_load(&n->ends)) {
    n->transport->serve(n, nap);
    nap = gp_net_beat(n);
  }
  n->transport->close(n, !status && ends_cleanly(n));
  return NULL;
}

/* ---- starting it ----------------------------------------------------------------------------- */

void gp_net_doze(pthread_cond_t *came, pthread_mutex_t *lock) {
  const long nap_ns = 50000000;
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_nsec += nap_ns;
  if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
  pthread_cond_timedwait(came, lock, &at);
}

/* For how long to wait for the transport, in ns; 0: until it gives up by itself. MPI's library
 * waits for ever, so there the limit for scripts that stay away counts. */
static gp_status patience(const gp_net *n, int64_t *ns) {
  double seconds;
  GP_TRY(gp_rank_job_join_seconds(&seconds));
  *ns = (int64_t)(1e9 * seconds);
  if (*ns < n->absentees.limit_ns) *ns = n->absentees.limit_ns;
  if (n->transport->gives_up || !n->absentees.limit_ns) *ns = 0;
  return GP_OK;
}

static gp_status fail_to_open(const gp_net *n, int64_t most_ns) {
  if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "interrupted");
  return gp_fail(GP_ETIMEOUT,
                 "ranks: MPI did not connect %d ranks within %g seconds: one of them has not made "
                 "its first call of all ranks",
                 n->job.info.count, 1e-9 * (double)most_ns);
}

/* Wait for the transport. Ctrl-C ends the wait too: MPI's library cannot be interrupted. */
static gp_status await_opened(gp_net *n) {
  int64_t most_ns;
  bool opened = false;
  GP_TRY(patience(n, &most_ns));
  const int64_t begin = gp_now_ns();
  pthread_mutex_lock(&n->lock);
  for (bool stops = false; !n->opened && !stops;) {
    gp_net_doze(&n->came, &n->lock);
    stops = gp_interrupt_pending() || (most_ns && gp_now_ns() - begin > most_ns);
  }
  opened = n->opened;
  pthread_mutex_unlock(&n->lock);
  if (opened && n->status) return pthread_join(n->thread, NULL), gp_fail_text(n->status, n->why);
  return opened ? GP_OK : fail_to_open(n, most_ns);
}

gp_status gp_net_start(gp_net *n) {
  const gp_thread_options options = {.name = "gpipe ranks"};
  n->opened = false;
  n->remark[0] = '\0';
  if (n->news < 0) n->news = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (n->news < 0) return gp_fail(GP_EIO, "ranks: the system has no event for the thread");
  GP_TRY(gp_thread_start(&n->thread, &options, move_messages, n));
  GP_TRY(await_opened(n));
  gp_ranks_leave_at_exit();
  atomic_store(&connected, 1);
  return GP_OK;
}
