/* ranks/socket/unix.c - ranks of one host find each other in the folder of the job: each listens at
 * a Unix socket that is named after it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "ranks/socket/socket.h"
#include "ranks/transport.h"

enum { BUFFER_BYTES = 4 << 20 };

static gp_address address_of(const gp_net *net, int32_t rank) {
  gp_address a = {.length = sizeof(struct sockaddr_un)};
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  snprintf(at.sun_path, sizeof at.sun_path, "%s/%d", net->job.folder, (int)rank);
  memcpy(&a.at, &at, sizeof at);
  snprintf(a.text, sizeof a.text, "%s", at.sun_path);
  return a;
}

static bool find(const gp_meeting *m, int32_t rank, gp_address *address) {
  *address = address_of(m->net, rank);
  return true;
}

/* Does a process listen there? A socket that a killed job has left refuses calls. */
static bool is_taken(const gp_address *at) {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool answers = made >= 0 && (!connect(made, (const struct sockaddr *)&at->at, at->length) ||
                                     errno == EAGAIN); /* many calls wait already */
  if (made >= 0) close(made);
  return answers;
}

/* Two jobs that a script has started with one port would take each other's ranks. */
static gp_status listen_here(gp_meeting *m) {
  const gp_address at = address_of(m->net, m->net->job.info.rank);
  GP_TRY(gp_rank_job_open_folder(&m->net->job));
  if (is_taken(&at))
    return gp_fail(GP_ESTATE,
                   "ranks: another process of this host is rank %d of the job at %s, expected a "
                   "MASTER_PORT of its own for each job, and each rank once",
                   m->net->job.info.rank, m->net->job.folder);
  GP_TRY(gp_meeting_listener(m, AF_UNIX));
  unlink(at.text); /* of a job that was killed */
  if (bind(m->listener, (const struct sockaddr *)&at.at, at.length) ||
      listen(m->listener, m->net->job.info.count))
    return gp_fail(GP_EIO, "ranks: cannot listen at %s: %s", at.text, strerror(errno));
  return GP_OK;
}

/* The system may give less. */
static void tune(int socket) {
  const int bytes = BUFFER_BYTES;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void close_folder(gp_meeting *m) {
  const gp_address at = address_of(m->net, m->net->job.info.rank);
  if (m->listener >= 0) unlink(at.text);
  rmdir(m->net->job.folder); /* the last rank succeeds */
}

static const gp_finder finder = {
    .listen = listen_here, .find = find, .tune = tune, .close = close_folder};

static gp_status open_all(gp_net *net) { return gp_meet(net, &finder); }

const gp_transport gp_transport_unix = {.name = "unix", .open = open_all, GP_STREAM_MOVES};
