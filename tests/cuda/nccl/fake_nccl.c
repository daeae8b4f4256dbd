/* tests/cuda/nccl/fake_nccl.c - the few functions of NCCL that the plugin calls, between processes
 * of one host, for the plugin that is compiled for the host.
 *
 * A communicator is a file beside the report: the sender appends each value with a head, the
 * receiver reads them in order. It is strict where NCCL goes wrong silently or hangs, and says what
 * it saw in the file that FAKE_NCCL_REPORT names, a line each:
 *
 *   mismatch   a value was received with another size or type than it was sent with
 *   deadlock   operations that wait for each other where a send blocks its stream until it is
 *              received, with the cycle (board.h); those that hang end with an error
 *   waits      a receive whose value did not come within ten seconds: the two sides do not agree
 *   misuse     a call before the last one was finished, or after an abort
 *   left       values that were sent and never received
 *
 * Like NCCL's calls these are in progress at first, and finished when they are asked for: a receive
 * when its value has come, so that no thread of the host waits. Work runs in the order of its
 * stream, by the stand-in for CUDA's runtime. FAKE_NCCL_FAIL=N lets the N-th
 * transfer of the process fail. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nccl.h>

#include "board.h"

#define API __attribute__((visibility("default")))

/* How long a receive waits for its value; after how long it looks for a cycle, and counts what the
 * other side has not posted. */
enum { MOST_MS = 10000, LOOK_MS = 500, HANG_MS = 3000 };

typedef struct transfer transfer;

struct ncclComm {
  char path[96];
  int rank, file;
  off_t at;           /* where the next value begins that is not received yet */
  atomic_int pending; /* times that the state is still "in progress" */
  _Atomic int error;  /* ncclResult_t */
  atomic_long posted, done;
  transfer *waiting; /* a receive whose value has not come; NULL: none */
  int64_t since;     /* when it was posted, and when a cycle was looked for: nanoseconds */
  int64_t looked;
  ncclComm_t next; /* of those that were aborted */
};

typedef struct head {
  uint64_t bytes;
  int32_t type, number;
} head;

/* ---- reports --------------------------------------------------------------------------------- */

static void report(const char *what, const ncclComm_t c, const char *text) {
  const char *path = getenv("FAKE_NCCL_REPORT");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s %s rank %d: %s\n", what, c->path, c->rank, text);
  fclose(file);
}

static bool fails_now(void) {
  static atomic_long calls;
  const char *wish = getenv("FAKE_NCCL_FAIL");
  return wish && atomic_fetch_add(&calls, 1) + 1 == atol(wish);
}

static const int64_t MILLISECOND = 1000000;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 * MILLISECOND + now.tv_nsec;
}

/* ---- communicators --------------------------------------------------------------------------- */

API ncclResult_t ncclGetVersion(int *version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
API const char *ncclGetErrorString(ncclResult_t r) {
  return r == ncclInvalidUsage ? "invalid usage" : r == ncclSuccess ? "no error" : "remote error";
}
API const char *ncclGetLastError(ncclComm_t c) { return (void)c, "of the fake"; }

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static atomic_int made;
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%.70s.%d.%d", getenv("FAKE_NCCL_REPORT"),
           (int)getpid(), atomic_fetch_add(&made, 1));
  return ncclSuccess;
}

/* Each side leaves a mark; the communicator is ready when both are there. */
static void mark_of(const ncclComm_t c, int rank, char path[112]) {
  snprintf(path, 112, "%s.%d", c->path, rank);
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int count, ncclUniqueId id, int rank,
                                        ncclConfig_t *config) {
  char mark[112];
  ncclComm_t c = calloc(1, sizeof *c);
  if (!c || count != 2 || config->blocking != 0) return ncclInvalidArgument;
  snprintf(c->path, sizeof c->path, "%.90s", id.internal);
  c->rank = rank;
  c->file = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  mark_of(c, rank, mark);
  const int own = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (own >= 0) close(own);
  atomic_store(&c->pending, 1);
  board_join(c->path, rank);
  *comm = c;
  return ncclInProgress;
}

static bool is_complete(const ncclComm_t c) {
  char mark[112];
  struct stat found;
  mark_of(c, 1 - c->rank, mark);
  return stat(mark, &found) == 0;
}

/* The receiver removes the files: the sender may be gone. */
static void forget(ncclComm_t c) {
  char mark[112];
  if (c->rank == 1) {
    for (int r = 0; r < 3; r++) mark_of(c, r, mark), unlink(mark);
    unlink(c->path);
  }
  close(c->file);
}

static bool report_cycle(const ncclComm_t c, bool hangs) {
  char text[BOARD_TEXT];
  const bool found = board_find_cycle(hangs, text);
  if (found && text[0]) report("deadlock", c, text);
  return found;
}

API ncclResult_t ncclCommDestroy(ncclComm_t c) {
  struct stat found;
  report_cycle(c, false);
  if (c->rank == 1 && fstat(c->file, &found) == 0 && found.st_size > c->at)
    report("left", c, "values that were sent and never received");
  forget(c);
  free(c);
  return ncclSuccess;
}

/* The other side sees that the communicator has failed. */
static void end(ncclComm_t c, ncclResult_t why) {
  char mark[112];
  mark_of(c, 2, mark);
  const int file = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  atomic_store(&c->error, why);
}

/* Work of its stream may still refer to it, so it is kept until the program ends. */
API ncclResult_t ncclCommAbort(ncclComm_t c) {
  static _Atomic(ncclComm_t) aborted;
  end(c, ncclInvalidUsage);
  c->next = atomic_load(&aborted);
  while (!atomic_compare_exchange_weak(&aborted, &c->next, c)) {
  }
  return ncclSuccess;
}

/* ---- transfers ------------------------------------------------------------------------------- */

struct transfer {
  ncclComm_t comm;
  cudaStream_t stream;
  void *memory;
  head head;
  off_t at; /* a receive: where its value lies */
  board_item *item;
};

static void send_now(void *context) {
  transfer *t = context;
  board_begin(t->item);
  if (write(t->comm->file, &t->head, sizeof t->head) != (ssize_t)sizeof t->head ||
      write(t->comm->file, t->memory, t->head.bytes) != (ssize_t)t->head.bytes)
    report("mismatch", t->comm, "the file takes no more");
  board_end(t->item);
  free(t);
}

/* The value is there. */
static void receive_now(void *context) {
  transfer *t = context;
  if (pread(t->comm->file, t->memory, t->head.bytes, t->at) != (ssize_t)t->head.bytes)
    report("mismatch", t->comm, "the file has lost a value");
  board_end(t->item);
  free(t);
}

/* The stand-in for CUDA's runtime is in the plugin. */
typedef int (*launch_function)(cudaStream_t stream, void (*function)(void *), void *context);

static launch_function find_launch(void) {
  launch_function found = NULL;
  void *plugin = dlopen(getenv("GPIPE_CUDA_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
  void *symbol = plugin ? dlsym(plugin, "gp_test_launch") : NULL;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

static ncclResult_t launch(transfer *t, void (*function)(void *)) {
  launch_function give = find_launch();
  return give && give(t->stream, function, t) == 0 ? ncclInProgress : ncclSystemError;
}

/* Note a transfer, or let it fail. */
static ncclResult_t post(const transfer *what, bool sends, transfer **made) {
  ncclComm_t c = what->comm;
  if (atomic_load(&c->pending) > 0 || c->waiting)
    report("misuse", c, "a call before the last one was finished");
  if (atomic_load(&c->error) != ncclSuccess) report("misuse", c, "a call after an abort");
  if (fails_now()) return end(c, ncclRemoteError), ncclRemoteError;
  *made = malloc(sizeof **made);
  if (!*made) return ncclSystemError;
  **made = *what;
  (*made)->head.number = (int32_t)atomic_fetch_add(&c->posted, 1);
  (*made)->item = board_post(what->stream, c->path, c->rank, (*made)->head.number, sends);
  atomic_store(&c->pending, 1);
  return ncclSuccess;
}

API ncclResult_t ncclSend(const void *memory, size_t count, ncclDataType_t type, int peer,
                          ncclComm_t c, cudaStream_t stream) {
  transfer *made;
  const transfer what = {.comm = c,
                         .stream = stream,
                         .memory = (void *)memory,
                         .head = {.bytes = count, .type = (int32_t)type}};
  if (peer != 1 - c->rank) return ncclInvalidArgument;
  const ncclResult_t result = post(&what, true, &made);
  return result == ncclSuccess ? launch(made, send_now) : result;
}

API ncclResult_t ncclRecv(void *memory, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                          cudaStream_t stream) {
  transfer *made;
  const transfer what = {.comm = c,
                         .stream = stream,
                         .memory = memory,
                         .head = {.bytes = count, .type = (int32_t)type}};
  if (peer != 1 - c->rank) return ncclInvalidArgument;
  const ncclResult_t result = post(&what, false, &made);
  if (result != ncclSuccess) return result;
  board_begin(made->item);
  c->since = c->looked = now_ns();
  c->waiting = made;
  return ncclInProgress;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Has the value come for which the communicator waits? Then give its receive to the stream. */
static void take_value(ncclComm_t c) {
  transfer *t = c->waiting;
  struct stat found;
  head sent;
  const off_t body = c->at + (off_t)sizeof sent;
  if (fstat(c->file, &found) != 0 || found.st_size < body) return;
  if (pread(c->file, &sent, sizeof sent, c->at) != (ssize_t)sizeof sent) return;
  if (found.st_size < body + (off_t)sent.bytes) return;
  c->waiting = NULL;
  c->at = body + (off_t)sent.bytes;
  t->at = body;
  if (sent.bytes == t->head.bytes && sent.type == t->head.type) {
    if (launch(t, receive_now) != ncclInProgress) end(c, ncclSystemError);
    return;
  }
  report("mismatch", c, "a value was received with another size or type");
  atomic_store(&c->error, ncclInvalidUsage);
}

/* Look now and then for a reason why the value does not come. */
static void look(ncclComm_t c) {
  char over[112];
  struct stat found;
  const int64_t now = now_ns();
  mark_of(c, 2, over);
  if (stat(over, &found) == 0) atomic_store(&c->error, ncclRemoteError);
  if (now - c->looked < LOOK_MS * MILLISECOND) return;
  c->looked = now;
  if (report_cycle(c, now - c->since > HANG_MS * MILLISECOND)) end(c, ncclRemoteError);
  if (now - c->since < MOST_MS * MILLISECOND) return;
  report("waits", c, "a value that was to be received was not sent");
  end(c, ncclRemoteError);
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state) {
  const bool waits = c->waiting != NULL;
  if (waits) take_value(c);
  if (c->waiting) look(c);
  *state = (ncclResult_t)atomic_load(&c->error);
  if (*state != ncclSuccess) return ncclSuccess;
  if (waits || !is_complete(c) || atomic_fetch_sub(&c->pending, 1) > 0) *state = ncclInProgress;
  return ncclSuccess;
}
