/* tests/links/slow_wire.c - a wire between two network namespaces with a delay, losses and a rate.
 *
 *   slow_wire SPACE_A SPACE_B DEVICE DELAY_MS LOSS_PERCENT MBIT_PER_S [CORE_A CORE_B]
 *
 * In both namespaces there is a tun device DEVICE (ip tuntap add). Packets that enter one come out
 * of the other: after the ones before them have passed at the rate, and the delay. Each packet is
 * lost with the given probability, by random numbers with a fixed seed; packets that find a full
 * queue are lost too, as in a switch. It prints "ready", and runs until it is killed. It needs
 * root, like the qdisc netem, which does this where a kernel has it.
 *
 * A network takes no turns with the processes that send over it. So this one runs ahead of all
 * others if it may: among them it would hand out packets milliseconds late where the ranks fill all
 * cores, and their step would be measured with that. It has no core of its own, though, and has to
 * take little of theirs: the kernel hands over what TCP sends at once as one bundle of segments, as
 * it does to an interface that cuts them itself. A bundle passes in the time of its segments; where
 * some of them are lost, the others come out as bundles of their own. Where hosts have cores of
 * their own, each receives on its own, as an interface's interrupts do. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PACKETS = 1024 };  /* of a direction's queue */
enum { QUEUE = 8 << 20 }; /* bytes of it */
enum { BYTES = 65536 };   /* of the largest bundle */

typedef struct virtio_net_hdr bundling; /* what stands before every packet of a tun device */

/* A packet, or a bundle of segments of one connection behind one header. */
typedef struct packet {
  int64_t due;   /* when it comes out, ns */
  size_t length; /* of the data */
  bundling how;
  uint8_t data[BYTES];
} packet;

/* One direction: a ring of packets on their way. */
typedef struct direction {
  int from, to; /* tun devices */
  int core;     /* of the host that receives; -1: any */
  uint64_t random;
  int64_t free; /* when the packets before have passed, ns */
  uint32_t head, count;
  size_t bytes;
  packet ring[PACKETS];
} direction;

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
  struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
  strncpy(wanted.ifr_name, device, IFNAMSIZ - 1);
  if (ioctl(fd, TUNSETIFF, &wanted)) fail(device);
  if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)) fail("TUNSETOFFLOAD");
  return fd;
}

/* Return a number in [0, 1): xorshift. */
static double uniform(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (double)(*state >> 11) / 9007199254740992.0;
}

/* ---- bundles --------------------------------------------------------------------------------- */

/* The bytes of headers before what a bundle of segments carries; 0 for any other packet. */
static size_t headers_of(const packet *p) {
  if (p->how.gso_type == VIRTIO_NET_HDR_GSO_NONE) return 0;
  struct tcphdr tcp;
  memcpy(&tcp, p->data + p->how.csum_start, sizeof tcp);
  return p->how.csum_start + 4u * tcp.doff;
}

/* The segments of a bundle; 1 for any other packet. */
static size_t segments_of(const packet *p) {
  const size_t carried = p->length - headers_of(p);
  return headers_of(p) ? (carried + p->how.gso_size - 1) / p->how.gso_size : 1;
}

/* The sum of 16-bit words that checksums are made of, folded to 16 bits; `sum` goes before. */
static uint32_t folded(uint32_t sum, const void *words, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 2) {
    uint16_t word;
    memcpy(&word, (const char *)words + i, 2);
    sum += word;
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/* Make `part` of segments first .. first + count - 1 of a bundle. The receiver's kernel completes
 * the checksum of TCP, of which the header has only the part over addresses and length. */
static void cut_out(const packet *p, size_t first, size_t count, packet *part) {
  const size_t headers = headers_of(p), begin = first * p->how.gso_size;
  const size_t left = p->length - headers - begin;
  const size_t bytes = count * p->how.gso_size < left ? count * p->how.gso_size : left;
  part->due = p->due, part->how = p->how, part->length = headers + bytes;
  part->how.hdr_len = (uint16_t)headers; /* the kernel says more than it takes back */
  if (count == 1) part->how.gso_type = VIRTIO_NET_HDR_GSO_NONE, part->how.gso_size = 0;
  memcpy(part->data, p->data, headers);
  memcpy(part->data + headers, p->data + headers + begin, bytes);

  struct iphdr ip;
  struct tcphdr tcp;
  uint8_t *after = part->data + p->how.csum_start;
  memcpy(&ip, part->data, sizeof ip);
  memcpy(&tcp, after, sizeof tcp);
  ip.tot_len = htons((uint16_t)part->length);
  ip.id = htons((uint16_t)(ntohs(ip.id) + first));
  ip.check = 0;
  memcpy(part->data, &ip, sizeof ip);
  ip.check = (uint16_t)~folded(0, part->data, 4u * ip.ihl);
  tcp.seq = htonl(ntohl(tcp.seq) + (uint32_t)begin);
  if (bytes < left) tcp.fin = tcp.psh = 0;
  const uint16_t rest[] = {htons(IPPROTO_TCP), htons((uint16_t)(part->length - 4u * ip.ihl))};
  tcp.check = (uint16_t)folded(folded(0, rest, sizeof rest), &ip.saddr, 8);
  memcpy(part->data, &ip, sizeof ip);
  memcpy(after, &tcp, sizeof tcp);
}

/* ---- a direction ----------------------------------------------------------------------------- */

/* Where the next packet of the queue goes. */
static packet *place_in(direction *w) { return &w->ring[(w->head + w->count) % PACKETS]; }

static bool is_full(const direction *w) { return w->count == PACKETS || w->bytes > QUEUE; }

/* Put the packet that stands in its place into the queue. */
static void put(direction *w, const packet *p) { w->count++, w->bytes += p->length; }

/* Put into the queue what the wire does not lose of a bundle. */
static void put_rest(direction *w, const packet *whole, const bool *is_lost) {
  const size_t segments = segments_of(whole);
  for (size_t first = 0, end; first < segments; first = end + 1) {
    for (end = first; end < segments && !is_lost[end];) end++;
    if (end == first) continue;
    if (is_full(w)) return;
    packet *p = place_in(w);
    cut_out(whole, first, end - first, p);
    put(w, p);
  }
}

/* Take what has come; false if nothing is left. */
static bool take(direction *w) {
  static _Thread_local packet other;
  packet *p = is_full(w) ? &other : place_in(w);
  struct iovec parts[] = {{&p->how, sizeof p->how}, {p->data, BYTES}};
  const ssize_t got = readv(w->from, parts, 2);
  if (got <= (ssize_t)sizeof p->how) return false;
  if (p == &other) return true;
  p->length = (size_t)got - sizeof p->how;

  const size_t segments = segments_of(p);
  bool is_lost[BYTES], any = false;
  for (size_t i = 0; i < segments; i++) any |= is_lost[i] = uniform(&w->random) < loss;
  const size_t bytes = p->length + (segments - 1) * headers_of(p);
  const int64_t start = now();
  w->free = (w->free > start ? w->free : start) + (int64_t)((double)bytes * nanos);
  p->due = w->free + delay;
  if (!any) {
    put(w, p);
  } else if (segments > 1) {
    memcpy(&other, p, offsetof(packet, data) + p->length);
    put_rest(w, &other, is_lost);
  }
  return true;
}

/* Hand out what is due. Return when the next packet is, or INT64_MAX. */
static int64_t hand_out(direction *w) {
  for (; w->count > 0; w->head = (w->head + 1) % PACKETS, w->count--) {
    packet *p = &w->ring[w->head];
    if (p->due > now()) return p->due;
    const struct iovec parts[] = {{&p->how, sizeof p->how}, {p->data, p->length}};
    if (writev(w->to, parts, 2) < 0 && errno != EAGAIN && errno != EIO) fail("write");
    w->bytes -= p->length;
  }
  w->head = 0; /* places that are still in a cache */
  return INT64_MAX;
}

/* Be a direction for good: run ahead of others, on the core of the host that receives. */
static _Noreturn void *run(void *context) {
  direction *w = context;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (w->core >= 0) CPU_SET((size_t)w->core, &cores);
  if (w->core >= 0 && sched_setaffinity(0, sizeof cores, &cores)) fail("core");
  prctl(PR_SET_TIMERSLACK, 1);
  (void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 10});
  for (struct pollfd fd = {w->from, POLLIN, 0};;) {
    while (take(w)) continue;
    const int64_t next = hand_out(w), left = next - now();
    const struct timespec time = {left / 1000000000, left % 1000000000};
    if (left > 0 && ppoll(&fd, 1, next < INT64_MAX ? &time : NULL, NULL) < 0) fail("poll");
  }
}

int main(int count, char **words) {
  static direction ways[2];
  pthread_t other;
  if (count != 7 && count != 9) {
    fprintf(stderr, "usage: slow_wire SPACE_A SPACE_B DEVICE DELAY_MS LOSS_PERCENT MBIT_PER_S "
                    "[CORE_A CORE_B]\n");
    return 2;
  }
  delay = (int64_t)(atof(words[4]) * 1e6), loss = atof(words[5]) / 100,
  nanos = 8e3 / atof(words[6]);
  for (int i = 0; i < 2; i++) {
    ways[i].from = ways[1 - i].to = open_device(words[1 + i], words[3]);
    ways[i].core = count == 9 ? atoi(words[8 - i]) : -1;
    ways[i].random = 0x9e3779b97f4a7c15 + (uint64_t)i;
  }
  errno = pthread_create(&other, NULL, run, &ways[1]);
  if (errno) fail("thread");
  puts("ready");
  fflush(stdout);
  run(&ways[0]);
}
