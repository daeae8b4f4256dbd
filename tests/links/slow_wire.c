/* tests/links/slow_wire.c - a wire between two network namespaces with a delay, losses and a rate.
 *
 *   slow_wire SPACE_A SPACE_B DEVICE DELAY_MS LOSS_PERCENT MBIT_PER_S
 *
 * In both namespaces there is a tun device DEVICE (ip tuntap add). Packets that enter one come out
 * of the other: after the ones before them have passed at the rate, and the delay. Each packet is
 * lost with the given probability, by random numbers with a fixed seed; packets that find a full
 * queue are lost too, as in a switch. It prints "ready", and runs until it is killed. It needs
 * root, like the qdisc netem, which does this where a kernel has it.
 *
 * A network takes no turns with the processes that send over it. So this one runs ahead of all
 * others if it may: among them it would hand out packets milliseconds late where the ranks fill all
 * cores, and their step would be measured with that. It has no core of its own, though: to take
 * little of theirs it looks after packets only every fifth of a millisecond, as an interface that
 * collects interrupts does. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKETS = 1024, BYTES = 9216 }; /* a direction's queue, and the largest packet */
enum { TICK = 200000 };                /* ns */

typedef struct packet {
  int64_t due; /* when it comes out, ns */
  ssize_t length;
  char data[BYTES];
} packet;

/* One direction: a ring of packets on their way. */
typedef struct direction {
  int from, to; /* tun devices */
  int64_t free; /* when the packets before have passed, ns */
  uint32_t head, count;
  packet ring[PACKETS];
} direction;

static direction ways[2];
static int64_t delay;      /* ns */
static double loss, nanos; /* the share that is lost; ns of a byte */

static void fail(const char *what) {
  fprintf(stderr, "slow_wire: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Return the tun device of a namespace, and stay there. */
static int open_device(const char *space, const char *device) {
  char path[256];
  snprintf(path, sizeof path, "/var/run/netns/%s", space);
  int net = open(path, O_RDONLY | O_CLOEXEC);
  if (net < 0 || setns(net, CLONE_NEWNET)) fail(path);
  close(net);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail("/dev/net/tun");
  struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strncpy(wanted.ifr_name, device, IFNAMSIZ - 1);
  if (ioctl(fd, TUNSETIFF, &wanted)) fail(device);
  return fd;
}

/* Return a number in [0, 1): xorshift with a fixed seed. */
static double uniform(void) {
  static uint64_t state = 0x9e3779b97f4a7c15;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

/* Take what has come; false if nothing is left. */
static bool take(direction *w) {
  static char lost[BYTES];
  const bool full = w->count == PACKETS;
  packet *p = &w->ring[(w->head + w->count) % PACKETS];
  const ssize_t length = read(w->from, full ? lost : p->data, BYTES);
  if (length <= 0) return false;
  if (full || uniform() < loss) return true;
  const int64_t start = now();
  w->free = (w->free > start ? w->free : start) + (int64_t)((double)length * nanos);
  p->length = length;
  p->due = w->free + delay;
  w->count++;
  return true;
}

/* Hand out what is due. Return when the next packet is, or INT64_MAX. */
static int64_t hand_out(direction *w) {
  for (; w->count > 0; w->head = (w->head + 1) % PACKETS, w->count--) {
    packet *p = &w->ring[w->head];
    if (p->due > now()) return p->due;
    if (write(w->to, p->data, (size_t)p->length) < 0 && errno != EAGAIN && errno != EIO)
      fail("write");
  }
  return INT64_MAX;
}

int main(int count, char **words) {
  if (count != 7) {
    fprintf(stderr, "usage: slow_wire SPACE_A SPACE_B DEVICE DELAY_MS LOSS_PERCENT MBIT_PER_S\n");
    return 2;
  }
  delay = (int64_t)(atof(words[4]) * 1e6), loss = atof(words[5]) / 100,
  nanos = 8e3 / atof(words[6]);
  for (int i = 0; i < 2; i++) ways[i].from = ways[1 - i].to = open_device(words[1 + i], words[3]);
  prctl(PR_SET_TIMERSLACK, 1);
  (void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 10});
  puts("ready");
  fflush(stdout);
  for (;;) {
    int64_t next = INT64_MAX;
    for (int i = 0; i < 2; i++) {
      while (take(&ways[i])) continue;
      const int64_t due = hand_out(&ways[i]);
      if (due < next) next = due;
    }
    struct pollfd fds[2] = {{ways[0].from, POLLIN, 0}, {ways[1].from, POLLIN, 0}};
    if (next < INT64_MAX)
      nanosleep(&(struct timespec){.tv_nsec = TICK}, NULL);
    else if (poll(fds, 2, 1000) < 0)
      fail("poll");
  }
}
