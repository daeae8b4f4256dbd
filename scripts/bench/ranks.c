/* scripts/bench/ranks.c - what a message between two ranks costs: latency and bandwidth.
 *
 * Both run this program. A message is a value of a link's kind, to a port; each is answered when it
 * has come, by the thread that moves messages, or (with "worker") by another thread that it wakes,
 * as a pipeline's worker is. Rank 0 prints microseconds for one way of 8 bytes, and GB/s of 1 MiB
 * with so many messages under way, as osu_latency and osu_bw do.
 *
 *   gpipe-lua starts it: scripts/bench/ranks.lua */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "ranks/ranks.h"

enum {
  SMALL = 8,
  LARGE = 1 << 20,
  WINDOW = 16,
  WARM = 1000,
  PINGS = 200000,
  WAKES = 4000,
  ROUNDS = 200
};

static char incoming[LARGE], outgoing[LARGE];
static sem_t came;
static bool worker;
static int32_t own, other;
static _Atomic int64_t count;
static int64_t limit;
static enum { PING, FLOOD, ACK } mode;

static void send_value(uint64_t bytes) {
  const gp_rank_message m = {.kind = GP_RANK_VALUE, .port = 1, .bytes = bytes};
  if (gp_ranks_send(other, &m, outgoing)) abort();
}

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *wanted) {
  (void)context, (void)from, (void)m;
  *wanted = m->bytes;
  return incoming;
}

static void send_window(void) {
  for (int i = 0; i < WINDOW; i++) send_value(LARGE);
}

/* Answer, and wake the thread that waits for all of them. */
static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  (void)context, (void)from, (void)m;
  const int64_t n = atomic_fetch_add(&count, 1) + 1;
  if (mode == PING && !worker && (own || n < limit)) send_value(SMALL);
  if (mode == ACK && n < limit) send_window();
  if (mode == FLOOD && n % WINDOW == 0) send_value(SMALL);
  if (worker || n >= limit) sem_post(&came);
}

/* Both wait, so that no message comes before its time. */
static void meet(const char *what) {
  gp_rank_pieces all;
  if (gp_ranks_gather(what, 60, "", 1, &all)) {
    fprintf(stderr, "%s\n", gp_error_text());
    exit(1);
  }
  gp_rank_pieces_free(&all);
}

static double ping(int times) {
  mode = PING;
  limit = times;
  atomic_store(&count, 0);
  meet("ping");
  const int64_t begin = gp_now_ns();
  if (!own) send_value(SMALL);
  if (!worker) sem_wait(&came);
  for (int i = 0; worker && i < times; i++) {
    sem_wait(&came);
    if (own || i + 1 < times) send_value(SMALL);
  }
  return 1e-3 * (double)(gp_now_ns() - begin) / times / 2;
}

/* Rank 0 sends a window of messages, and the next one when rank 1 has them. */
static double flood(int rounds) {
  worker = false;
  mode = own ? FLOOD : ACK;
  limit = own ? (int64_t)rounds * WINDOW : rounds;
  atomic_store(&count, 0);
  meet("flood");
  const int64_t begin = gp_now_ns();
  if (!own) send_window();
  sem_wait(&came);
  return (double)rounds * WINDOW * LARGE / (double)(gp_now_ns() - begin);
}

int main(void) {
  const gp_port port = {.number = 1, .room = room, .arrived = arrived};
  sem_init(&came, 0, 0);
  memset(incoming, 1, sizeof incoming); /* pages of its own */
  memset(outgoing, 2, sizeof outgoing);
  own = gp_ranks_own();
  other = 1 - own;
  meet("begin");
  if (gp_ports_add(&port)) return 1;
  ping(WARM);
  const double direct = ping(PINGS);
  worker = true;
  const double woken = ping(WAKES);
  flood(8);
  const double rate = flood(ROUNDS);
  meet("end");
  if (!own) printf("%s %.2f %.2f %.3f\n", gp_ranks_transport(), direct, woken, rate);
  fflush(stdout);
  return gp_ranks_leave(0) ? 1 : 0;
}
