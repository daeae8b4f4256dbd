/* ranks/socket/tcp.c - ranks of several hosts find each other at an address that all know.
 *
 * Rank 0 listens there, at MASTER_ADDR:MASTER_PORT; each of the others at a port that the system
 * gives it, which its hello tells rank 0. When all have come, rank 0 sends everyone the table of
 * these addresses, and they connect pairwise. Ranks of one host use TCP, too. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "gpipe/process.h"
#include "ranks/socket/socket.h"
#include "ranks/transport.h"

/* Keep-alive probes, for what the heartbeats do not see: seconds until the first, between two, and
 * how many may be lost. */
enum { PROBE_AFTER = 15, PROBE_EVERY = 5, PROBES = 4 };

/* Options of Linux 6.15 that older headers do not name: the least time until a packet is sent
 * again, and the most for which an acknowledgement may wait. */
enum { RTO_MIN_US = 45, DELACK_MAX_US = 46 };

/* Both in microseconds. Linux waits 200 ms for the acknowledgement of a packet behind which no
 * other one comes, as that of a short message, however near the other host is. It takes no less
 * than two of its ticks. */
enum { AGAIN_AFTER_US = 10000 };

static const int64_t BIND_NS = 3000000000;

/* ---- listening ------------------------------------------------------------------------------- */

/* The process of a job that has just ended may still have the port: try for some seconds. */
static bool bind_in_time(const gp_meeting *m, const gp_address *at) {
  const struct timespec nap = {.tv_nsec = 100000000};
  const int64_t end = gp_now_ns() + BIND_NS;
  while (bind(m->listener, (const struct sockaddr *)&at->at, at->length)) {
    const bool taken = errno == EADDRINUSE;
    if (!taken || gp_now_ns() > end || gp_now_ns() > m->end || gp_interrupt_pending()) return false;
    nanosleep(&nap, NULL);
    errno = EADDRINUSE;
  }
  return true;
}

static gp_status bind_to(gp_meeting *m, const gp_address *at) {
  const int yes = 1;
  GP_TRY(gp_meeting_listener(m, at->at.ss_family));
  /* connections of the job before may still be closing */
  setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  /* strangers may call, too: the longest queue that the system allows */
  if (!bind_in_time(m, at) || listen(m->listener, SOMAXCONN))
    return gp_fail(GP_EIO,
                   "ranks: rank %d cannot listen at %s: %s, expected a free port of this host "
                   "(MASTER_ADDR, MASTER_PORT, GPIPE_INTERFACE)",
                   m->net->job.info.rank, at->text, strerror(errno));
  return GP_OK;
}

/* The port that the system has chosen. */
static gp_status read_port(gp_meeting *m, gp_address *own) {
  struct sockaddr_storage at;
  socklen_t length = sizeof at;
  if (getsockname(m->listener, (struct sockaddr *)&at, &length))
    return gp_fail(GP_EIO, "ranks: no port: %s", strerror(errno));
  const bool v6 = at.ss_family == AF_INET6;
  gp_address_set_port(own, ntohs(v6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                    : ((struct sockaddr_in *)&at)->sin_port));
  snprintf(m->address, sizeof m->address, "%.63s", own->text);
  return GP_OK;
}

static gp_status listen_here(gp_meeting *m) {
  const gp_rank_job *job = &m->net->job;
  gp_address master, own;
  GP_TRY(gp_address_find(job->master, job->port, &master));
  GP_TRY(gp_interface_choose(job, &master, &own));
  if (job->info.rank == 0) {
    gp_address_set_port(&own, job->port);
    return bind_to(m, &own);
  }
  gp_address_set_port(&own, 0);
  GP_TRY(bind_to(m, &own));
  return read_port(m, &own);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The master's name may not be known yet when a job of containers begins: it is looked up at every
 * call. */
static bool find(const gp_meeting *m, int32_t rank, gp_address *address) {
  const gp_rank_job *job = &m->net->job;
  if (rank == 0) return !gp_master_find(job, address);
  return m->addresses[rank][0] && gp_address_parse(m->addresses[rank], address);
}

static bool has_all(const gp_net *net) {
  for (int32_t r = 1; r < net->job.info.count; r++)
    if (net->peers[r].socket < 0) return false;
  return true;
}

static gp_status send_table(gp_meeting *m, size_t bytes, bool *done) {
  *done = has_all(m->net);
  for (int32_t r = 1; *done && r < m->net->job.info.count; r++)
    if (!gp_socket_move_all(m->net->peers[r].socket, m->addresses, bytes, true, m->end))
      return gp_fail(GP_EDEVICE, "ranks: rank %d (process %ld on %s) has gone while the job began",
                     (int)r, m->net->peers[r].process, m->net->peers[r].host);
  return GP_OK;
}

/* Rank 0 tells all where the others listen; what comes first on its connections is this table. */
static gp_status tell(gp_meeting *m, bool *done) {
  const size_t bytes = (size_t)m->net->job.info.count * sizeof *m->addresses;
  if (m->net->job.info.rank == 0) return send_table(m, bytes, done);
  *done = m->told == bytes;
  if (*done || m->net->peers[0].socket < 0) return GP_OK;
  ssize_t n =
      recv(m->net->peers[0].socket, (char *)m->addresses + m->told, bytes - m->told, MSG_DONTWAIT);
  if (n > 0) m->told += (size_t)n;
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
    return gp_fail(GP_EDEVICE, "ranks: rank 0 (process %ld on %s) has gone while the job began",
                   m->net->peers[0].process, m->net->peers[0].host);
  *done = m->told == bytes;
  return GP_OK;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Messages go out at once, and what is lost is sent again soon where the kernel can. Buffers stay
 * as the system makes them: it fits them to the bandwidth and the delay, unless a program has set
 * them. */
static void tune(int socket) {
  const int again = AGAIN_AFTER_US, yes = 1, after = PROBE_AFTER, every = PROBE_EVERY,
            probes = PROBES;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(socket, IPPROTO_TCP, RTO_MIN_US, &again, sizeof again);
  setsockopt(socket, IPPROTO_TCP, DELACK_MAX_US, &again, sizeof again);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof after);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static const gp_finder finder = {.listen = listen_here, .find = find, .tell = tell, .tune = tune};

static gp_status open_all(gp_net *net) { return gp_meet(net, &finder); }

const gp_transport gp_transport_tcp = {.name = "tcp", .open = open_all, GP_STREAM_MOVES};
