/* tests/cuda/nccl/board.c - see board.h. */
#include "board.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 4096, NAME = 48, QUEUES = 256 };

typedef enum state { UNUSED, MEMBER, POSTED, RUNS, OVER } state;

struct board_item {
  _Atomic int state;
  int32_t process, rank, number;
  bool sends;
  uint64_t stream;
  char comm[NAME];
};

typedef struct board {
  _Atomic int32_t count;
  atomic_bool was_told;
  board_item items[MOST];
} board;

/* ---- notes ----------------------------------------------------------------------------------- */

static board *shared;

static void open_board(void) {
  char path[120];
  const char *report = getenv("FAKE_NCCL_REPORT");
  if (!report) return;
  snprintf(path, sizeof path, "%.100s.board", report);
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (ftruncate(file, sizeof *shared) == 0) {
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) shared = memory;
  }
  close(file);
}

static board *board_of(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_board);
  return shared;
}

/* The end of a communicator's path tells it from others. */
static board_item *add(const char *comm, int rank, state first) {
  board *b = board_of();
  const size_t length = strlen(comm), skipped = length < NAME ? 0 : length - NAME + 1;
  const int32_t at = b ? atomic_fetch_add(&b->count, 1) : MOST;
  if (at >= MOST) return NULL;
  board_item *item = &b->items[at];
  item->process = (int32_t)getpid();
  item->rank = rank;
  snprintf(item->comm, NAME, "%s", comm + skipped);
  if (first == MEMBER) atomic_store(&item->state, MEMBER);
  return item;
}

void board_join(const char *comm, int rank) { (void)add(comm, rank, MEMBER); }

board_item *board_post(const void *stream, const char *comm, int rank, int number, bool sends) {
  board_item *item = add(comm, rank, POSTED);
  if (!item) return NULL;
  item->stream = (uint64_t)(uintptr_t)stream;
  item->number = number;
  item->sends = sends;
  atomic_store(&item->state, POSTED); /* last: others may read it now */
  return item;
}

void board_begin(board_item *item) {
  if (item) atomic_store(&item->state, RUNS);
}

void board_end(board_item *item) {
  if (item) atomic_store(&item->state, OVER);
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

/* A copy of what a judgement needs. Queues are the streams of all processes. */
typedef struct judge {
  const board *b;
  int32_t count, queue_count;
  int16_t queue[MOST], next[MOST], other[MOST]; /* per item: -1: none */
  int16_t head[QUEUES], last[QUEUES];
} judge;

static bool is_operation(const board_item *item) { return atomic_load(&item->state) >= POSTED; }

static int16_t queue_of(judge *j, int32_t i) {
  const board_item *item = &j->b->items[i];
  for (int32_t q = 0; q < j->queue_count; q++) {
    const board_item *first = &j->b->items[j->last[q]];
    if (first->process == item->process && first->stream == item->stream) return (int16_t)q;
  }
  if (j->queue_count == QUEUES) return -1;
  j->head[j->queue_count] = -1;
  return (int16_t)j->queue_count++;
}

static void append(judge *j, int32_t i) {
  const int16_t q = queue_of(j, i);
  j->queue[i] = q;
  j->next[i] = j->other[i] = -1;
  if (q < 0) return;
  if (j->head[q] < 0)
    j->head[q] = (int16_t)i;
  else
    j->next[j->last[q]] = (int16_t)i;
  j->last[q] = (int16_t)i;
}

static bool are_counterparts(const board_item *a, const board_item *b) {
  return a->number == b->number && a->rank != b->rank && a->sends != b->sends &&
         !strcmp(a->comm, b->comm);
}

static void pair(judge *j, int32_t i) {
  for (int32_t k = 0; k < i; k++) {
    if (!is_operation(&j->b->items[k]) || !are_counterparts(&j->b->items[i], &j->b->items[k]))
      continue;
    j->other[i] = (int16_t)k;
    j->other[k] = (int16_t)i;
    return;
  }
}

static void take_in(judge *j) {
  const int32_t count = atomic_load(&j->b->count);
  j->count = count < MOST ? count : MOST;
  for (int32_t i = 0; i < j->count; i++) {
    if (!is_operation(&j->b->items[i])) continue;
    append(j, i);
    pair(j, i);
  }
}

/* Let operations be over as long as any can be. */
static void run(judge *j) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t q = 0; q < j->queue_count; q++) {
      const int16_t one = j->head[q], other = one < 0 ? -1 : j->other[one];
      if (other < 0 || j->queue[other] < 0 || j->head[j->queue[other]] != other) continue;
      j->head[q] = j->next[one];
      j->head[j->queue[other]] = j->next[other];
      moved = true;
    }
  }
}

static int32_t process_of(const judge *j, const char *comm, int32_t rank) {
  for (int32_t i = 0; i < j->count; i++)
    if (atomic_load(&j->b->items[i].state) != UNUSED && j->b->items[i].rank == rank &&
        !strcmp(j->b->items[i].comm, comm))
      return j->b->items[i].process;
  return -1;
}

/* The operation in which the process is that has not posted the counterpart. */
static int16_t running_one(const judge *j, const board_item *item) {
  const int32_t process = process_of(j, item->comm, 1 - item->rank);
  for (int32_t q = 0; q < j->queue_count; q++) {
    const board_item *head = j->head[q] < 0 ? NULL : &j->b->items[j->head[q]];
    if (head && head->process == process && atomic_load(&head->state) == RUNS) return j->head[q];
  }
  return -1;
}

/* What the first operation of a stream waits for: another first one, or -1. */
static int16_t blocker_of(const judge *j, int16_t i, bool hangs) {
  const int16_t other = j->other[i];
  if (other >= 0) return j->queue[other] < 0 ? -1 : j->head[j->queue[other]];
  return hangs ? running_one(j, &j->b->items[i]) : -1;
}

/* "send 0 of report.17.3 by process 17"; the item itself or its counterpart. */
static size_t put_name(const judge *j, char *text, size_t used, const board_item *item,
                       bool counterpart) {
  const bool sends = item->sends != counterpart;
  const int32_t process = counterpart ? process_of(j, item->comm, 1 - item->rank) : item->process;
  const char *slash = strrchr(item->comm, '/');
  if (used >= BOARD_TEXT) return used;
  return used + (size_t)snprintf(text + used, BOARD_TEXT - used, "%s %d of %s by process %d",
                                 sends ? "send" : "receive", item->number,
                                 slash ? slash + 1 : item->comm, process);
}

static size_t put(char *text, size_t used, const char *words) {
  return used < BOARD_TEXT ? used + (size_t)snprintf(text + used, BOARD_TEXT - used, "%s", words)
                           : used;
}

/* Print the cycle once around. */
static void print(const judge *j, int16_t begin, bool hangs, char text[BOARD_TEXT]) {
  size_t used = 0;
  int16_t i = begin;
  do {
    const board_item *item = &j->b->items[i];
    if (used) used = put(text, used, "; ");
    used = put_name(j, text, used, item, false);
    used = put(text, used, " waits for ");
    used = put_name(j, text, used, item, true);
    used = put(text, used, j->other[i] < 0 ? ", not posted before " : ", which comes behind ");
    i = blocker_of(j, i, hangs);
    used = put_name(j, text, used, &j->b->items[i], false);
  } while (i != begin);
}

/* Follow what waits for what into a cycle: a first operation that comes again. */
static bool find(const judge *j, bool hangs, char text[BOARD_TEXT]) {
  for (int32_t q = 0; q < j->queue_count; q++) {
    int16_t i = j->head[q];
    for (int32_t step = 0; i >= 0 && step < j->queue_count; step++) i = blocker_of(j, i, hangs);
    if (i < 0) continue;
    print(j, i, hangs, text);
    return true;
  }
  return false;
}

bool board_find_cycle(bool hangs, char text[BOARD_TEXT]) {
  board *b = board_of();
  text[0] = '\0';
  if (b && atomic_load(&b->was_told)) return true;
  judge *j = b ? calloc(1, sizeof *j) : NULL;
  if (!j) return false;
  j->b = b;
  take_in(j);
  run(j);
  const bool found = atomic_load(&b->count) <= MOST && find(j, hangs, text);
  free(j);
  if (found && atomic_exchange(&b->was_told, true)) text[0] = '\0';
  return found;
}
