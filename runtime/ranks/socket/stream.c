/* ranks/socket/stream.c - how bytes move over connected sockets: one thread polls them all. */
#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"
#include "ranks/socket/socket.h"
#include "ranks/transport.h"

/* What poll is called with, kept from one call to the next. */
typedef struct stream {
  struct pollfd *fds; /* news, then a connection each */
  int32_t *ranks;     /* whose */
} stream;

/* Send some bytes. */
static ssize_t send_some(int socket, const struct iovec *parts, size_t count) {
  const struct msghdr all = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
  for (;;) {
    ssize_t n = sendmsg(socket, &all, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return GP_MOVE_LATER;
    if (errno != EINTR) return GP_MOVE_NEVER;
  }
}

/* Send what is left of the first message; false if the connection takes no more. */
static bool send_first(gp_peer *peer) {
  gp_rank_queue *q = &peer->out;
  gp_rank_outgoing *out = gp_rank_queue_at(q, 0);
  const size_t head = sizeof out->head, total = head + out->head.bytes;
  while (q->done < total) {
    const size_t in_head = q->done < head ? head - q->done : 0;
    const size_t sent = q->done > head ? q->done - head : 0;
    const struct iovec parts[2] = {{(char *)&out->head + q->done, in_head},
                                   {(char *)out->payload + sent, out->head.bytes - sent}};
    const size_t count = (size_t)(in_head > 0) + (out->head.bytes > 0);
    ssize_t n = send_some(peer->socket, in_head ? parts : parts + 1, count);
    if (n == GP_MOVE_NEVER) atomic_store(&peer->broken, 1);
    if (n <= 0) return false;
    q->done += (size_t)n;
  }
  return true;
}

void gp_stream_flush(gp_peer *peer) {
  while (peer->out.count && send_first(peer)) gp_rank_queue_pop(&peer->out);
}

ssize_t gp_stream_receive(gp_peer *peer, char *to, size_t bytes) {
  for (;;) {
    ssize_t n = recv(peer->socket, to, bytes, MSG_DONTWAIT);
    if (n > 0) return n;
    if (n == 0) return GP_MOVE_NEVER;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return GP_MOVE_LATER;
    if (errno != EINTR) return GP_MOVE_NEVER;
  }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* List what the thread waits for. */
static nfds_t list(const gp_net *net, stream *s) {
  nfds_t count = 0;
  s->fds[count++] = (struct pollfd){.fd = net->news, .events = POLLIN};
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (peer->is_own || peer->state == GP_PEER_GONE) continue;
    s->ranks[count] = r;
    s->fds[count] = (struct pollfd){.fd = peer->socket, .events = POLLIN};
    if (gp_peer_has_outgoing(peer)) s->fds[count].events |= POLLOUT;
    count++;
  }
  return count;
}

gp_status gp_stream_open(gp_net *net) {
  const size_t count = (size_t)net->job.info.count + 1;
  stream *s;
  GP_TRY(gp_alloc(sizeof *s + count * (sizeof *s->fds + sizeof *s->ranks), (void **)&s));
  s->fds = (struct pollfd *)(s + 1);
  s->ranks = (int32_t *)(s->fds + count);
  net->link = s;
  return GP_OK;
}

void gp_stream_serve(gp_net *net, int64_t most_ns) {
  stream *s = net->link;
  uint64_t news;
  const nfds_t count = list(net, s);
  if (poll(s->fds, count, (int)(most_ns / 1000000)) < 0) return;
  if (s->fds[0].revents & POLLIN) {
    ssize_t got = read(net->news, &news, sizeof news);
    (void)got;
  }
  for (nfds_t i = 1; i < count; i++) {
    gp_peer *peer = &net->peers[s->ranks[i]];
    if (s->fds[i].revents & POLLOUT) gp_peer_serve(peer);
    if (!(s->fds[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
    pthread_mutex_lock(&net->lock);
    gp_peer_receive(net, peer);
    pthread_mutex_unlock(&net->lock);
  }
}

void gp_stream_wake(gp_net *net) {
  const uint64_t one = 1;
  ssize_t written = write(net->news, &one, sizeof one);
  (void)written; /* the counter is full: then the thread has news already */
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The descriptor stays open: another thread may be about to send. */
void gp_stream_cut(gp_net *net, gp_peer *peer) {
  (void)net;
  shutdown(peer->socket, SHUT_RDWR);
}

void gp_stream_close(gp_net *net, bool clean) {
  (void)clean;
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (net->peers[r].socket >= 0) close(net->peers[r].socket);
  gp_free(net->link);
  net->link = NULL;
}
