/* ranks/net.c - the thread that reads all connections and writes what senders could not. */
#include "ranks/net.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"

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

/* ---- the thread ------------------------------------------------------------------------------ */

void gp_net_wake(gp_net *n) {
  const uint64_t one = 1;
  ssize_t written = write(n->news, &one, sizeof one);
  (void)written; /* the counter is full: then the thread has news already */
}

static bool has_outgoing(gp_peer *peer) {
  pthread_mutex_lock(&peer->lock);
  const bool has = peer->out.count > 0;
  pthread_mutex_unlock(&peer->lock);
  return has;
}

/* List what the thread waits for: news, then each open connection. */
static nfds_t list(struct pollfd *fds, int32_t *ranks) {
  nfds_t count = 0;
  fds[count++] = (struct pollfd){.fd = net.news, .events = POLLIN};
  for (int32_t r = 0; r < net.job.info.count; r++) {
    gp_peer *peer = &net.peers[r];
    if (peer->socket < 0 || peer->state == GP_PEER_GONE) continue;
    ranks[count] = r;
    fds[count] = (struct pollfd){.fd = peer->socket, .events = POLLIN};
    if (has_outgoing(peer)) fds[count].events |= POLLOUT;
    count++;
  }
  return count;
}

static void serve(gp_peer *peer, short events) {
  if (events & POLLOUT) {
    pthread_mutex_lock(&peer->lock);
    gp_peer_flush(peer);
    pthread_mutex_unlock(&peer->lock);
  }
  if (!(events & (POLLIN | POLLHUP | POLLERR))) return;
  pthread_mutex_lock(&net.lock);
  gp_peer_receive(&net, peer);
  pthread_mutex_unlock(&net.lock);
}

static void *move_messages(void *context) {
  struct pollfd *fds = context;
  int32_t *ranks = (int32_t *)(fds + net.job.info.count + 1);
  while (!atomic_load(&net.ends)) {
    const nfds_t count = list(fds, ranks);
    if (poll(fds, count, -1) < 0 && errno != EINTR) break;
    uint64_t news;
    if (fds[0].revents & POLLIN) {
      ssize_t got = read(net.news, &news, sizeof news);
      (void)got;
    }
    for (nfds_t i = 1; i < count; i++)
      if (fds[i].revents) serve(&net.peers[ranks[i]], fds[i].revents);
  }
  gp_free(fds);
  return NULL;
}

gp_status gp_net_start(gp_net *n) {
  const gp_thread_options options = {.name = "gpipe ranks"};
  const size_t count = (size_t)n->job.info.count + 1;
  void *memory;
  n->news = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (n->news < 0) return gp_fail(GP_EIO, "ranks: the system has no event for the thread");
  GP_TRY(gp_alloc(count * (sizeof(struct pollfd) + sizeof(int32_t)), &memory));
  gp_ranks_leave_at_exit();
  atomic_store(&connected, 1);
  gp_status status = gp_thread_start(&n->thread, &options, move_messages, memory);
  if (status) atomic_store(&connected, 0), gp_free(memory);
  return status;
}
