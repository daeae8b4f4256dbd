/* ranks/socket/meet.c - how all ranks get connected, one socket for each pair.
 *
 * Each rank calls those below it and answers those above. Calls are made one after the other, since
 * a rank needs all of them; answers are given side by side, because a connection that says nothing
 * must not hold up the others. Where there are many of these, the oldest makes room. What does not
 * know the job's key is closed and noted. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/process.h"
#include "ranks/socket/socket.h"

enum { NAP_MS = 20 };
static const int64_t SECOND = 1000000000;
static const int64_t ANSWER_NS = 5000000000; /* that a call may take */
static const double HURRIED_SECONDS = 2;     /* for a process that has failed */

/* ---- moving bytes ---------------------------------------------------------------------------- */

/* Move some bytes; false: the connection is of no use. */
static bool move_some(int socket, char *data, size_t bytes, bool sends, size_t *done) {
  ssize_t n = sends ? send(socket, data + *done, bytes - *done, MSG_NOSIGNAL | MSG_DONTWAIT)
                    : recv(socket, data + *done, bytes - *done, MSG_DONTWAIT);
  if (n > 0) *done += (size_t)n;
  if (n > 0) return true;
  return n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK);
}

bool gp_socket_move_all(int socket, void *data, size_t bytes, bool sends, int64_t end) {
  for (size_t done = 0; done < bytes;) {
    struct pollfd fd = {.fd = socket, .events = sends ? POLLOUT : POLLIN};
    if (gp_now_ns() > end || gp_interrupt_pending()) return false;
    if (poll(&fd, 1, NAP_MS) > 0 && !move_some(socket, data, bytes, sends, &done)) return false;
  }
  return true;
}

/* ---- peers ----------------------------------------------------------------------------------- */

static void keep(gp_meeting *m, int socket, const gp_hello *h) {
  gp_peer *peer = &m->net->peers[h->rank];
  peer->socket = socket;
  peer->process = h->process;
  snprintf(peer->host, sizeof peer->host, "%s", h->host);
  memcpy(m->addresses[h->rank], h->address, sizeof h->address);
  if (m->finder->tune) m->finder->tune(socket);
}

/* ---- calling --------------------------------------------------------------------------------- */

/* Wait until a connection is made; returns what is wrong with it, or 0. */
static int await_connection(const gp_meeting *m, int made) {
  int fault = EINPROGRESS;
  while (fault == EINPROGRESS && gp_now_ns() < m->end && !gp_interrupt_pending()) {
    struct pollfd fd = {.fd = made, .events = POLLOUT};
    socklen_t length = sizeof fault;
    if (poll(&fd, 1, NAP_MS) > 0) getsockopt(made, SOL_SOCKET, SO_ERROR, &fault, &length);
  }
  return fault;
}

static void note_fault(gp_meeting *m, const gp_address *to, const char *what) {
  snprintf(m->last_fault, sizeof m->last_fault, "%.160s: %s", to->text, what);
}

/* Is the socket connected to itself? The system may choose the called port for the caller's end,
 * as long as nothing listens there, and rank 0 could not have it. */
static bool is_own(int socket) {
  struct sockaddr_storage here = {0}, there = {0};
  socklen_t length = sizeof here, other = sizeof there;
  if (getsockname(socket, (struct sockaddr *)&here, &length) || here.ss_family == AF_UNIX ||
      getpeername(socket, (struct sockaddr *)&there, &other))
    return false;
  return length == other && !memcmp(&here, &there, length);
}

/* Connect; -1: nothing listens there yet, or it cannot be reached. */
static int connect_to(gp_meeting *m, const gp_address *to) {
  int made = socket(to->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fault = 0;
  if (made < 0) return -1;
  if (connect(made, (const struct sockaddr *)&to->at, to->length)) fault = errno;
  if (fault == EINPROGRESS) fault = await_connection(m, made);
  if (!fault && is_own(made)) fault = ECONNREFUSED;
  if (!fault) return made;
  note_fault(m, to, fault == EINPROGRESS ? "no answer" : strerror(fault));
  close(made);
  return -1;
}

/* Say hello on a connection. *met: the other side is a rank of this job. */
static gp_status introduce(gp_meeting *m, int socket, const gp_address *to, bool *met) {
  gp_challenge challenge;
  gp_hello own = gp_hello_new(m->net, m->address), answer;
  *met = false;
  note_fault(m, to, "what listens there does not say hello");
  if (!gp_socket_move_all(socket, &challenge, sizeof challenge, false, m->end)) return GP_OK;
  GP_TRY(gp_hello_check_challenge(&challenge, to->text));
  gp_hello_sign(m->net, challenge.nonce, &own);
  if (!gp_socket_move_all(socket, &own, sizeof own, true, m->end)) return GP_OK;
  if (!gp_socket_move_all(socket, &answer, sizeof answer, false, m->end)) return GP_OK;
  GP_TRY(gp_hello_check_answer(m->net, own.nonce, &answer, to->text));
  *met = true;
  keep(m, socket, &answer);
  return GP_OK;
}

/* Call a rank once. It may not listen yet: then nothing happens. */
static gp_status call(gp_meeting *m, int32_t rank) {
  gp_address to;
  bool met = false;
  if (!m->finder->find(m, rank, &to)) return GP_OK;
  int made = connect_to(m, &to);
  if (made < 0) return GP_OK;
  gp_status status = introduce(m, made, &to, &met);
  if (!met) close(made);
  return status;
}

/* ---- answering ------------------------------------------------------------------------------- */

static void name_caller(int socket, char from[64]) {
  struct sockaddr_storage at;
  socklen_t length = sizeof at;
  char host[48], port[8];
  snprintf(from, 64, "a process of this host");
  if (getpeername(socket, (struct sockaddr *)&at, &length) || at.ss_family == AF_UNIX) return;
  if (!getnameinfo((struct sockaddr *)&at, length, host, sizeof host, port, sizeof port,
                   NI_NUMERICHOST | NI_NUMERICSERV))
    snprintf(from, 64, "%s port %s", host, port);
}

static void drop(gp_meeting *m, gp_answer *a, const char *why) {
  m->refused++;
  snprintf(m->last_refused, sizeof m->last_refused, "%s: %s", a->from, why);
  close(a->socket);
  a->socket = -1;
}

/* Send the verdict. One about size or version ends this job too: it comes from a process that knows
 * the key. */
static gp_status reply(gp_meeting *m, gp_answer *a) {
  gp_hello own = gp_hello_new(m->net, m->address);
  const gp_verdict verdict = gp_hello_judge(m->net, a->challenge.nonce, &a->hello);
  own.verdict = verdict;
  gp_hello_sign(m->net, a->hello.nonce, &own);
  const bool sent = send(a->socket, &own, sizeof own, MSG_NOSIGNAL) == (ssize_t)sizeof own;
  if (verdict == GP_HELLO_GOOD && sent) {
    keep(m, a->socket, &a->hello);
    a->socket = -1;
    return GP_OK;
  }
  drop(m, a, verdict == GP_HELLO_GOOD ? "its connection was closed" : gp_verdict_text(verdict));
  if (verdict != GP_HELLO_VERSION && verdict != GP_HELLO_SIZE) return GP_OK;
  return gp_fail(GP_ESTATE,
                 "ranks: a caller (%s) says that it is rank %d of %d, version %.23s, expected "
                 "another rank than %d of %d, version %s",
                 a->from, (int)a->hello.rank, (int)a->hello.count, a->hello.version,
                 m->net->job.info.rank, m->net->job.info.count, own.version);
}

static gp_status go_on(gp_meeting *m, gp_answer *a) {
  const bool good = move_some(a->socket, (char *)&a->hello, sizeof a->hello, false, &a->done);
  if (a->done == sizeof a->hello) return reply(m, a);
  if (!good) drop(m, a, "it went away without a hello");
  if (good && gp_now_ns() > a->end) drop(m, a, "it says nothing");
  return GP_OK;
}

/* The place of a new call: a free one, else that of the call that has been silent for longest. */
static gp_answer *find_place(gp_meeting *m) {
  gp_answer *oldest = &m->answers[0];
  for (int i = 0; i < GP_MOST_ANSWERS; i++) {
    if (m->answers[i].socket < 0) return &m->answers[i];
    if (m->answers[i].end < oldest->end) oldest = &m->answers[i];
  }
  return oldest;
}

/* Challenge a call, whose place is free. */
static void challenge(gp_meeting *m, gp_answer *a, int made) {
  *a = (gp_answer){.socket = made, .end = gp_now_ns() + ANSWER_NS};
  a->challenge = gp_challenge_new();
  name_caller(made, a->from);
  if (send(made, &a->challenge, sizeof a->challenge, MSG_NOSIGNAL) != sizeof a->challenge)
    drop(m, a, "it does not listen");
}

/* Take the calls that wait, but no more than half of the places at once, so that those before can
 * say their hello in between. One that is dropped all the same calls again. */
static gp_status take_calls(gp_meeting *m) {
  for (int i = 0; i < GP_MOST_ANSWERS / 2; i++) {
    int made = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made < 0) return GP_OK;
    gp_answer *a = find_place(m);
    const gp_status status = a->socket < 0 ? GP_OK : go_on(m, a); /* its hello may just have come */
    if (status) {
      close(made);
      return status;
    }
    if (a->socket >= 0) drop(m, a, "it says nothing, and others want its place");
    challenge(m, a, made);
  }
  return GP_OK;
}

static gp_status answer_all(gp_meeting *m) {
  GP_TRY(take_calls(m));
  for (int i = 0; i < GP_MOST_ANSWERS; i++)
    if (m->answers[i].socket >= 0) GP_TRY(go_on(m, &m->answers[i]));
  return GP_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The first rank that is not connected; -1: all are. */
static int32_t missing(const gp_net *net) {
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (r != net->job.info.rank && net->peers[r].socket < 0) return r;
  return -1;
}

static gp_status give_up(const gp_meeting *m) {
  char refused[320] = "";
  const int32_t rank = missing(m->net);
  if (m->refused)
    snprintf(refused, sizeof refused, "; refused %d connection%s, the last from %s",
             (int)m->refused, m->refused == 1 ? "" : "s", m->last_refused);
  if (rank >= 0 && rank < m->net->job.info.rank && m->last_fault[0])
    return gp_fail(
        GP_ETIMEOUT,
        "ranks: rank %d cannot reach rank %d within %g seconds (GPIPE_JOIN_SECONDS): %s%s",
        m->net->job.info.rank, (int)rank, m->seconds, m->last_fault, refused);
  return gp_fail(
      GP_ETIMEOUT,
      "ranks: rank %d did not come within %g seconds (GPIPE_JOIN_SECONDS), expected %d ranks%s",
      rank < 0 ? 0 : (int)rank, m->seconds, m->net->job.info.count, refused);
}

/* Fail if a rank that is missing has ended: it will not come. */
static gp_status look_for_ends(const gp_net *net) {
  char how[GP_RANK_NAME];
  for (int32_t r = 0; r < net->job.info.count; r++)
    if (r != net->job.info.rank && net->peers[r].socket < 0 &&
        gp_rank_job_find_end(&net->job, r, how))
      return gp_fail(GP_EDEVICE,
                     "ranks: rank %d %s before it had joined the job, expected %d ranks", (int)r,
                     how, net->job.info.count);
  return GP_OK;
}

/* Wait for a moment, or until a call comes or goes on. */
static void doze(const gp_meeting *m) {
  struct pollfd fds[GP_MOST_ANSWERS + 1];
  nfds_t count = 0;
  fds[count++] = (struct pollfd){.fd = m->listener, .events = POLLIN};
  for (int i = 0; i < GP_MOST_ANSWERS; i++)
    if (m->answers[i].socket >= 0)
      fds[count++] = (struct pollfd){.fd = m->answers[i].socket, .events = POLLIN};
  poll(fds, count, NAP_MS);
}

static gp_status meet_all(gp_meeting *m) {
  gp_net *net = m->net;
  for (bool told = false; missing(net) >= 0 || !told;) {
    if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "interrupted");
    if (gp_now_ns() > m->end) return give_up(m);
    GP_TRY(look_for_ends(net));
    for (int32_t r = 0; r < net->job.info.rank; r++)
      if (net->peers[r].socket < 0) GP_TRY(call(m, r));
    GP_TRY(answer_all(m));
    told = true;
    if (m->finder->tell) GP_TRY(m->finder->tell(m, &told));
    if (missing(net) >= 0 || !told) doze(m);
  }
  return GP_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

gp_status gp_meeting_listener(gp_meeting *m, int family) {
  m->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return m->listener < 0 ? gp_fail(GP_EIO, "ranks: no socket: %s", strerror(errno)) : GP_OK;
}

static void finish(gp_meeting *m) {
  for (int i = 0; i < GP_MOST_ANSWERS; i++)
    if (m->answers[i].socket >= 0) close(m->answers[i].socket);
  if (m->listener >= 0) close(m->listener);
  if (m->finder->close) m->finder->close(m);
  if (m->refused)
    snprintf(m->net->remark, sizeof m->net->remark,
             "ranks: refused %d connection%s while the job came together, the last from %s",
             (int)m->refused, m->refused == 1 ? "" : "s", m->last_refused);
  gp_free(m->addresses);
  gp_free(m);
}

gp_status gp_meet(gp_net *net, const gp_finder *finder) {
  gp_meeting *m;
  double seconds;
  GP_TRY(gp_rank_job_join_seconds(&seconds));
  if (net->hurried && seconds > HURRIED_SECONDS) seconds = HURRIED_SECONDS;
  GP_TRY(gp_alloc(sizeof *m, (void **)&m));
  m->net = net;
  m->finder = finder;
  m->listener = -1;
  m->seconds = seconds;
  m->end = gp_now_ns() + (int64_t)(seconds * (double)SECOND);
  for (int i = 0; i < GP_MOST_ANSWERS; i++) m->answers[i].socket = -1;
  gp_status status =
      gp_alloc_array((size_t)net->job.info.count, sizeof *m->addresses, (void **)&m->addresses);
  if (!status) status = finder->listen(m);
  if (!status) status = meet_all(m);
  if (!status) status = gp_stream_open(net);
  finish(m);
  return status;
}
