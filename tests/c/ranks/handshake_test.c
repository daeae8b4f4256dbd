/* tests/c/ranks/handshake_test.c - who may talk to a rank, and what it does with messages that make
 * no sense.
 *
 * Rank 0 is a child process that makes one collective call; the test is the other end, a bare
 * socket. */
#include "ranks/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks/socket/socket.h"
#include "test.h"

static char folder[64];

/* ---- the child ------------------------------------------------------------------------------- */

/* Gather "zero" with rank 1; the exit code is the status, or 99 for a wrong piece. */
static _Noreturn void be_rank_0(void) {
  gp_rank_pieces all;
  setenv("GPIPE_RANKS_FOLDER", folder, 1);
  setenv("GPIPE_RANKS_KEY", "the key", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("RANK", "0", 1);
  gp_status status = gp_ranks_gather("test", 20, "zero", 4, &all);
  if (!status && (all.bytes[1] != 3 || memcmp(all.data[1], "one", 3))) _exit(99);
  _exit((int)status);
}

static pid_t start(void) {
  snprintf(folder, sizeof folder, "/tmp/gpipe-test-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) be_rank_0();
  return child;
}

static int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  rmdir(folder);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- the other end --------------------------------------------------------------------------- */

/* Connect once rank 0 listens. */
static int call_rank_0(void) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(at.sun_path, sizeof at.sun_path, "%s/0", folder);
  for (int i = 0; i < 1000 && connect(made, (struct sockaddr *)&at, sizeof at); i++) usleep(10000);
  return made;
}

/* This end, as far as the handshake is concerned. */
static gp_net rank_1(const char *key) {
  gp_net net = {.job = {.info = {.rank = 1, .count = 2}}};
  snprintf(net.job.key, sizeof net.job.key, "%s", key);
  return net;
}

static gp_hello right_hello(void) {
  const gp_net net = rank_1("the key");
  return gp_hello_new(&net, "");
}

/* What rank 0 has said so far. */
static gp_challenge challenge;
static gp_hello answer;

/* Say hello with a key; returns whether rank 0 finds it good. */
static bool say_hello_with(int made, gp_hello h, const char *key) {
  const gp_net net = rank_1(key);
  memset(&answer, 0, sizeof answer);
  if (recv(made, &challenge, sizeof challenge, MSG_WAITALL) != (ssize_t)sizeof challenge)
    return false;
  gp_hello_sign(&net, challenge.nonce, &h);
  return send(made, &h, sizeof h, MSG_NOSIGNAL) == (ssize_t)sizeof h &&
         recv(made, &answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer &&
         !gp_hello_check_answer(&net, h.nonce, &answer, "rank 0") && answer.rank == 0;
}

static bool say_hello(int made, const gp_hello *h) { return say_hello_with(made, *h, "the key"); }

static bool is_closed(int made) {
  char byte;
  return recv(made, &byte, 1, 0) <= 0;
}

static void send_piece(int made) {
  gp_rank_message head = {.kind = GP_RANK_PIECE, .run = 1, .bytes = 3, .place.what = "test"};
  CHECK(send(made, &head, sizeof head, 0) == (ssize_t)sizeof head);
  CHECK(send(made, "one", 3, 0) == 3);
}

/* Connect as rank 1, send a message's head, and return rank 0's exit code. */
static int answer_to(const gp_rank_message *head) {
  pid_t child = start();
  int made = call_rank_0();
  const gp_hello h = right_hello();
  CHECK(say_hello(made, &h));
  CHECK(send(made, head, sizeof *head, MSG_NOSIGNAL) == (ssize_t)sizeof *head);
  int code = end_of(child);
  close(made);
  return code;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(a_rank_with_the_key_is_heard) {
  pid_t child = start();
  int made = call_rank_0();
  const gp_hello h = right_hello();
  CHECK(say_hello(made, &h));
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

/* The job forms all the same. */
TEST(foreign_connections_are_closed_without_being_read) {
  pid_t child = start();
  const gp_hello h = right_hello();
  gp_hello wrong_magic = h;
  wrong_magic.magic[0] = 'G';
  int foreign = call_rank_0();
  CHECK(!say_hello_with(foreign, h, "another key"));
  CHECK(answer.verdict == GP_HELLO_KEY && is_closed(foreign));
  close(foreign);
  foreign = call_rank_0();
  CHECK(!say_hello(foreign, &wrong_magic) && is_closed(foreign));
  close(foreign);
  int made = call_rank_0();
  CHECK(say_hello(made, &h));
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

TEST(connections_that_say_nothing_hold_no_one_up) {
  pid_t child = start();
  const gp_hello h = right_hello();
  int silent[3];
  for (int i = 0; i < 3; i++) silent[i] = call_rank_0();
  int made = call_rank_0();
  CHECK(say_hello(made, &h));
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  for (int i = 0; i < 3; i++) close(silent[i]);
  close(made);
}

static bool holds(const void *data, size_t bytes, const char *text) {
  return memmem(data, bytes, text, strlen(text)) != NULL;
}

TEST(the_key_is_never_sent_and_a_hello_cannot_be_used_again) {
  pid_t child = start();
  gp_hello h = right_hello();
  int made = call_rank_0();
  const gp_net net = rank_1("the key");
  CHECK(say_hello(made, &h));
  CHECK(!holds(&challenge, sizeof challenge, "the key"));
  CHECK(!holds(&answer, sizeof answer, "the key"));
  gp_hello_sign(&net, challenge.nonce, &h);
  CHECK(!holds(&h, sizeof h, "the key"));
  unsigned char before[32];
  memcpy(before, h.proof, sizeof before);
  challenge = gp_challenge_new();
  gp_hello_sign(&net, challenge.nonce, &h);
  CHECK(memcmp(before, h.proof, sizeof before) != 0);
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

TEST(a_rank_of_another_size_or_version_ends_the_job) {
  gp_hello size = right_hello(), protocol = size, rank = size, version = size;
  size.count = 3;
  protocol.protocol = 9;
  rank.rank = 7;
  snprintf(version.version, sizeof version.version, "0.0.0");
  const gp_hello *wrong[] = {&size, &protocol, &rank, &version};
  for (int i = 0; i < 4; i++) {
    pid_t child = start();
    int made = call_rank_0();
    CHECK(!say_hello(made, wrong[i]));
    CHECK(end_of(child) == GP_ESTATE);
    close(made);
  }
}

TEST(messages_that_make_no_sense_end_the_connection) {
  const gp_rank_message kind = {.kind = 77};
  const gp_rank_message length = {.kind = GP_RANK_PIECE, .bytes = UINT64_C(1) << 60};
  const gp_rank_message text = {.kind = GP_RANK_END, .bytes = 5000};
  CHECK(answer_to(&kind) == GP_EDEVICE);
  CHECK(answer_to(&length) == GP_EDEVICE);
  CHECK(answer_to(&text) == GP_EDEVICE);
}

/* A message for a port that is not there is dropped: its run may have been given up. */
TEST(messages_for_nothing_are_skipped) {
  const gp_rank_message value = {.kind = GP_RANK_VALUE, .port = 12345, .bytes = 6};
  pid_t child = start();
  int made = call_rank_0();
  const gp_hello h = right_hello();
  CHECK(say_hello(made, &h));
  CHECK(send(made, &value, sizeof value, 0) == (ssize_t)sizeof value);
  CHECK(send(made, "values", 6, 0) == 6);
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

TEST(another_call_is_an_error_and_so_is_an_end) {
  const gp_rank_message call = {.kind = GP_RANK_PIECE, .run = 1, .place.what = "another"};
  const gp_rank_message end = {.kind = GP_RANK_END, .slot = 3};
  CHECK(answer_to(&call) == GP_ESTATE);
  CHECK(answer_to(&end) == GP_EDEVICE);
}

TEST_MAIN(a_rank_with_the_key_is_heard, foreign_connections_are_closed_without_being_read,
          connections_that_say_nothing_hold_no_one_up,
          the_key_is_never_sent_and_a_hello_cannot_be_used_again,
          a_rank_of_another_size_or_version_ends_the_job,
          messages_that_make_no_sense_end_the_connection, messages_for_nothing_are_skipped,
          another_call_is_an_error_and_so_is_an_end)
