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

#include "test.h"

/* As connect.c sends it. */
typedef struct hello {
  char magic[8];
  uint32_t protocol;
  int32_t rank, count, process;
  char key[64];
} hello;

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

static hello right_hello(void) {
  hello h = {.protocol = 1, .rank = 1, .count = 2, .process = 1, .key = "the key"};
  memcpy(h.magic, "gpipernk", 8);
  return h;
}

/* Say hello; returns whether rank 0 goes on to talk. */
static bool say_hello(int made, const hello *h) {
  hello other;
  return send(made, h, sizeof *h, MSG_NOSIGNAL) == (ssize_t)sizeof *h &&
         recv(made, &other, sizeof other, MSG_WAITALL) == (ssize_t)sizeof other && other.rank == 0;
}

static bool is_closed(int made) {
  char byte;
  return recv(made, &byte, 1, 0) <= 0;
}

static void send_piece(int made) {
  gp_rank_message head = {.kind = GP_RANK_PIECE, .run = 1, .bytes = 3, .what = "test"};
  CHECK(send(made, &head, sizeof head, 0) == (ssize_t)sizeof head);
  CHECK(send(made, "one", 3, 0) == 3);
}

/* Connect as rank 1, send a message's head, and return rank 0's exit code. */
static int answer_to(const gp_rank_message *head) {
  pid_t child = start();
  int made = call_rank_0();
  const hello h = right_hello();
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
  const hello h = right_hello();
  CHECK(say_hello(made, &h));
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

/* The job forms all the same. */
TEST(foreign_connections_are_closed_without_being_read) {
  pid_t child = start();
  hello wrong_key = right_hello(), wrong_magic = right_hello();
  snprintf(wrong_key.key, sizeof wrong_key.key, "another key");
  wrong_magic.magic[0] = 'G';
  const hello *wrong[] = {&wrong_key, &wrong_magic};
  for (int i = 0; i < 2; i++) {
    int foreign = call_rank_0();
    say_hello(foreign, wrong[i]);
    CHECK(is_closed(foreign));
    close(foreign);
  }
  int made = call_rank_0();
  const hello h = right_hello();
  CHECK(say_hello(made, &h));
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

TEST(a_rank_of_another_size_or_protocol_ends_the_job) {
  hello size = right_hello(), protocol = right_hello(), rank = right_hello();
  size.count = 3;
  protocol.protocol = 9;
  rank.rank = 7;
  const hello *wrong[] = {&size, &protocol, &rank};
  for (int i = 0; i < 3; i++) {
    pid_t child = start();
    int made = call_rank_0();
    say_hello(made, wrong[i]);
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
  const hello h = right_hello();
  CHECK(say_hello(made, &h));
  CHECK(send(made, &value, sizeof value, 0) == (ssize_t)sizeof value);
  CHECK(send(made, "values", 6, 0) == 6);
  send_piece(made);
  CHECK(end_of(child) == GP_OK);
  close(made);
}

TEST(another_call_is_an_error_and_so_is_an_end) {
  const gp_rank_message call = {.kind = GP_RANK_PIECE, .run = 1, .what = "another"};
  const gp_rank_message end = {.kind = GP_RANK_END, .slot = 3};
  CHECK(answer_to(&call) == GP_ESTATE);
  CHECK(answer_to(&end) == GP_EDEVICE);
}

TEST_MAIN(a_rank_with_the_key_is_heard, foreign_connections_are_closed_without_being_read,
          a_rank_of_another_size_or_protocol_ends_the_job,
          messages_that_make_no_sense_end_the_connection, messages_for_nothing_are_skipped,
          another_call_is_an_error_and_so_is_an_end)
