/* tests/cuda/nccl/fake_nccl_test.c - the fake NCCL says what two ranks do wrong: it names who waits
 * for whom instead of hanging.
 *
 * Two processes have two communicators, A from rank 0 to rank 1 and B back, as a pair of GPUs has
 * (device/cuda/nccl/wire.c). Work runs when it is enqueued, so that a send never blocks here; the
 * fake judges what NCCL may do. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nccl.h>

#include "test.h"

enum { A, B, COMMS };

#define FUNCTIONS(X)                                                                               \
  X(ncclGetUniqueId)                                                                               \
  X(ncclCommInitRankConfig)                                                                        \
  X(ncclCommGetAsyncError)                                                                         \
  X(ncclCommDestroy)                                                                               \
  X(ncclSend)                                                                                      \
  X(ncclRecv)

static struct {
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} nccl;

/* The fake gives its work to the stream by this. */
int gp_test_launch(cudaStream_t stream, void (*function)(void *), void *context);
int gp_test_launch(cudaStream_t stream, void (*function)(void *), void *context) {
  (void)stream;
  function(context);
  return 0;
}

static bool open_library(void) {
  void *library = dlopen(getenv("GPIPE_NCCL_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
#define FIND(name)                                                                                 \
  {                                                                                                \
    void *symbol = dlsym(library, #name);                                                          \
    memcpy(&nccl.name, &symbol, sizeof symbol);                                                    \
  }
  FUNCTIONS(FIND)
#undef FIND
  return true;
}

/* ---- two ranks ------------------------------------------------------------------------------- */

/* What a rank does, in this order: "sA0 rB1" sends by A on stream 0 and receives by B on stream
 * 1. */
typedef struct job {
  const char *todo[2]; /* per rank */
  char report[64], found[2000];
} job;

static ncclComm_t comms[COMMS];

static bool is_good(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (; state == ncclInProgress; nanosleep(&(struct timespec){0, 100000}, NULL))
    (void)nccl.ncclCommGetAsyncError(comm, &state);
  return state == ncclSuccess;
}

static void join(const ncclUniqueId *ids, int rank) {
  for (int c = 0; c < COMMS; c++) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    (void)nccl.ncclCommInitRankConfig(&comms[c], 2, ids[c], c == A ? rank : 1 - rank, &config);
  }
  for (int c = 0; c < COMMS; c++) (void)is_good(comms[c]);
}

static void work(const ncclUniqueId *ids, int rank, const char *todo) {
  static char value[64];
  static char streams[4]; /* their addresses tell them apart */
  bool good = true;
  join(ids, rank);
  for (; good && todo[0] && todo[1] && todo[2]; todo += todo[3] ? 4 : 3) {
    const int c = todo[1] == 'A' ? A : B;
    cudaStream_t stream = (cudaStream_t)(void *)&streams[todo[2] - '0'];
    if (todo[0] == 's')
      (void)nccl.ncclSend(value, sizeof value, ncclUint8, 1, comms[c], stream);
    else
      (void)nccl.ncclRecv(value, sizeof value, ncclUint8, 0, comms[c], stream);
    good = is_good(comms[c]);
  }
  for (int c = 0; good && c < COMMS; c++) (void)nccl.ncclCommDestroy(comms[c]);
  _exit(good ? 0 : 1);
}

static void read_report(job *j) {
  FILE *file = fopen(j->report, "r");
  const size_t n = file ? fread(j->found, 1, sizeof j->found - 1, file) : 0;
  j->found[n] = '\0';
  if (file) fclose(file);
  char command[160];
  snprintf(command, sizeof command, "rm -f %.60s %.60s.*", j->report, j->report);
  CHECK(system(command) == 0);
}

/* Runs both ranks; returns how many have failed. */
static int run(job *j) {
  ncclUniqueId ids[COMMS];
  int failed = 0, status;
  pid_t children[2];
  snprintf(j->report, sizeof j->report, "/tmp/fake_nccl_test.%d", (int)getpid());
  CHECK(setenv("FAKE_NCCL_REPORT", j->report, 1) == 0);
  for (int c = 0; c < COMMS; c++) CHECK(nccl.ncclGetUniqueId(&ids[c]) == ncclSuccess);
  fflush(stdout);
  for (int rank = 0; rank < 2; rank++) {
    children[rank] = fork();
    if (children[rank] == 0) work(ids, rank, j->todo[rank]);
  }
  for (int rank = 0; rank < 2; rank++) {
    CHECK(waitpid(children[rank], &status, 0) == children[rank]);
    failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  read_report(j);
  return failed;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(a_stream_for_each_direction_is_right_in_any_order) {
  static const char *const orders[][2] = {
      {"sA0 rB1", "sB0 rA1"}, {"sA0 rB1", "rA1 sB0"}, {"sA0 sA0 rB1", "rA1 sB0 rA1"}};
  for (int i = 0; open_library() && i < 3; i++) {
    job j = {.todo = {orders[i][0], orders[i][1]}};
    CHECK(run(&j) == 0);
    CHECK(!strcmp(j.found, ""));
  }
}

/* Nothing hangs here, but NCCL's sends may block. */
TEST(two_sends_that_block_what_receives_them_are_a_deadlock) {
  job j = {.todo = {"sA0 rB0", "sB0 rA0"}};
  if (!open_library()) return;
  CHECK(run(&j) == 0);
  CHECK_TEXT(j.found, "deadlock ");
  CHECK_TEXT(j.found, " waits for receive 0 of ");
  CHECK_TEXT(j.found, ", which comes behind send 0 of ");
}

/* Both hang in their receives: each sends only behind it. */
TEST(two_receives_that_wait_for_each_other_end_with_their_cycle) {
  job j = {.todo = {"rB0 sA0", "rA0 sB0"}};
  if (!open_library()) return;
  CHECK(run(&j) == 2);
  CHECK_TEXT(j.found, "deadlock ");
  CHECK_TEXT(j.found, "waits for send 0 of ");
  CHECK_TEXT(j.found, ", not posted before receive 0 of ");
}

TEST_MAIN(a_stream_for_each_direction_is_right_in_any_order,
          two_sends_that_block_what_receives_them_are_a_deadlock,
          two_receives_that_wait_for_each_other_end_with_their_cycle)
