/* ranks/connect.c - the connections of a job: one Unix socket for each pair of ranks.
 *
 * Each rank listens at a socket of its own in the job's folder, calls the ranks below it and
 * answers those above. Both sides say who they are before anything else is read: magic, protocol,
 * key of the job, rank and size, each checked. A foreign process gets no further. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/process.h"
#include "ranks/net.h"

enum { PROTOCOL = 1, NAP_MS = 20, HELLO_MS = 5000, BUFFER_BYTES = 4 << 20 };
static const int64_t SECOND = 1000000000;
static const int64_t WAIT_SECONDS = 60;
static const char magic[8] = {'g', 'p', 'i', 'p', 'e', 'r', 'n', 'k'};

typedef struct hello {
  char magic[8];
  uint32_t protocol;
  int32_t rank, count, process;
  char key[64];
} hello;

/* ---- hello ----------------------------------------------------------------------------------- */

static hello own_hello(const gp_net *net) {
  hello h = {.protocol = PROTOCOL,
             .rank = net->job.info.rank,
             .count = net->job.info.count,
             .process = (int32_t)getpid()};
  memcpy(h.magic, magic, sizeof magic);
  memcpy(h.key, net->job.key, sizeof h.key);
  return h;
}

/* Send or receive all of a hello within some seconds. */
static bool exchange(int socket, hello *h, bool sends) {
  size_t done = 0;
  const int64_t end = gp_now_ns() + HELLO_MS * INT64_C(1000000);
  while (done < sizeof *h) {
    struct pollfd fd = {.fd = socket, .events = sends ? POLLOUT : POLLIN};
    if (gp_now_ns() > end) return false;
    if (poll(&fd, 1, NAP_MS) <= 0) continue;
    char *at = (char *)h + done;
    ssize_t n = sends ? send(socket, at, sizeof *h - done, MSG_NOSIGNAL)
                      : recv(socket, at, sizeof *h - done, 0);
    if (n <= 0 && (n == 0 || (errno != EINTR && errno != EAGAIN))) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

/* Is it a process of this job? The error names what differs, except for foreign processes: these
 * are ignored. */
static gp_status check_hello(const gp_net *net, const hello *h, bool *ours) {
  const gp_rank_info *own = &net->job.info;
  *ours = !memcmp(h->magic, magic, sizeof magic) && !memcmp(h->key, net->job.key, sizeof h->key);
  if (!*ours) return GP_OK;
  if (h->protocol != PROTOCOL)
    return gp_fail(GP_ESTATE, "ranks: rank %d speaks protocol %d, expected %d as rank %d",
                   (int)h->rank, (int)h->protocol, (int)PROTOCOL, own->rank);
  if (h->count != own->count || h->rank < 0 || h->rank >= own->count || h->rank == own->rank)
    return gp_fail(GP_ESTATE,
                   "ranks: a process says that it is rank %d of %d, expected another than rank %d "
                   "of %d",
                   (int)h->rank, (int)h->count, own->rank, own->count);
  return GP_OK;
}

/* Both sides say who they are; *rank receives whom the socket leads to, or -1 for a foreign
 * process. */
static gp_status meet(gp_net *net, int socket, int32_t *rank) {
  hello own = own_hello(net), other = {0};
  bool ours = false;
  *rank = -1;
  if (!exchange(socket, &own, true) || !exchange(socket, &other, false)) return GP_OK;
  GP_TRY(check_hello(net, &other, &ours));
  if (!ours || net->peers[other.rank].socket >= 0) return GP_OK;
  net->peers[other.rank].socket = socket;
  net->peers[other.rank].process = other.process;
  *rank = other.rank;
  return GP_OK;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static struct sockaddr_un address_of(const gp_net *net, int32_t rank) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  snprintf(at.sun_path, sizeof at.sun_path, "%s/%d", net->job.folder, (int)rank);
  return at;
}

static gp_status new_socket(int *made) {
  const int bytes = BUFFER_BYTES;
  *made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*made < 0) return gp_fail(GP_EIO, "ranks: no socket: %s", strerror(errno));
  /* the system may give less */
  setsockopt(*made, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  return GP_OK;
}

static gp_status listen_here(const gp_net *net, int *listener) {
  struct sockaddr_un at = address_of(net, net->job.info.rank);
  GP_TRY(new_socket(listener));
  unlink(at.sun_path); /* of a job that was killed */
  if (bind(*listener, (struct sockaddr *)&at, sizeof at) || listen(*listener, net->job.info.count))
    return gp_fail(GP_EIO, "ranks: cannot listen at %s: %s", at.sun_path, strerror(errno));
  return GP_OK;
}

/* Call a rank once. It may not listen yet: then nothing happens. */
static gp_status call(gp_net *net, int32_t rank) {
  struct sockaddr_un at = address_of(net, rank);
  int made;
  int32_t met = -1;
  GP_TRY(new_socket(&made));
  gp_status status = GP_OK;
  if (!connect(made, (struct sockaddr *)&at, sizeof at)) status = meet(net, made, &met);
  if (met < 0) close(made);
  return status;
}

/* Answer all calls that have come. */
static gp_status answer(gp_net *net, int listener) {
  const int bytes = BUFFER_BYTES;
  for (;;) {
    int made = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int32_t met = -1;
    if (made < 0) return GP_OK;
    setsockopt(made, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    gp_status status = meet(net, made, &met);
    if (met < 0) close(made);
    GP_TRY(status);
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The first rank that is not connected; -1: all are. */
static int32_t missing(const gp_net *net) {
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (r != net->job.info.rank && net->peers[r].socket < 0) return r;
  return -1;
}

static gp_status meet_all(gp_net *net, int listener) {
  const int64_t end = gp_now_ns() + WAIT_SECONDS * SECOND;
  while (missing(net) >= 0) {
    struct pollfd fd = {.fd = listener, .events = POLLIN};
    if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "interrupted");
    if (gp_now_ns() > end)
      return gp_fail(GP_ETIMEOUT,
                     "ranks: rank %d did not come within %d seconds, expected %d ranks",
                     (int)missing(net), (int)WAIT_SECONDS, net->job.info.count);
    for (int32_t r = 0; r < net->job.info.rank; r++)
      if (net->peers[r].socket < 0) GP_TRY(call(net, r));
    if (poll(&fd, 1, NAP_MS) > 0) GP_TRY(answer(net, listener));
  }
  return GP_OK;
}

static gp_status make_peers(gp_net *net) {
  const size_t count = (size_t)net->job.info.count;
  GP_TRY(gp_alloc_array(count, sizeof *net->peers, (void **)&net->peers));
  for (size_t r = 0; r < count; r++) {
    net->peers[r].rank = (int32_t)r;
    net->peers[r].socket = -1;
    pthread_mutex_init(&net->peers[r].lock, NULL);
  }
  return GP_OK;
}

static void hang_up(gp_net *net) {
  for (int32_t r = 0; net->peers && r < net->job.info.count; r++)
    if (net->peers[r].socket >= 0) close(net->peers[r].socket);
  gp_free(net->peers);
  net->peers = NULL;
}

gp_status gp_ranks_join(void) {
  gp_net *net = gp_net_place();
  int listener = -1;
  if (gp_net_get()) return GP_OK;
  GP_TRY(gp_rank_job_read(&net->job));
  if (net->job.info.count == 1)
    return gp_fail(GP_ESTATE, "ranks: there is one process, expected several");
  GP_TRY(gp_rank_job_open_folder(&net->job));
  GP_TRY(make_peers(net));
  gp_status status = listen_here(net, &listener);
  if (!status) status = meet_all(net, listener);
  if (listener >= 0) {
    struct sockaddr_un at = address_of(net, net->job.info.rank);
    close(listener);
    unlink(at.sun_path);
    rmdir(net->job.folder); /* the last rank succeeds */
  }
  if (!status) status = gp_net_start(net);
  if (status) hang_up(net);
  return status;
}
