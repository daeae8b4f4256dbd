/* tests/links/socket_link.c - a kind of link whose two ends share nothing but a socket.
 *
 * It shows that a link over a process boundary fits (device/link/link.h): maker and reader have
 * state words and slots of their own, values and credits are messages of a pair of Unix sockets,
 * and no call waits. It is a library that GPIPE_LINK_PLUGIN names; it imports nothing from the
 * core. Here both halves are in one process, but the link makes no use of that.
 *
 * The reader gets (generation, slot, round) and the bytes of the value, straight from the slot,
 * which stays as it is until the credits for it are back. The maker gets (generation, slot).
 * Messages of an earlier run, which may have been given up half-way, are read and dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/link/library.h"
#include "device/link/link.h"

gp_status gp_link_plugin_open(const gp_link_host_functions *host, const gp_link_ops **ops);

static gp_status (*fail)(gp_status status, const char *text);

typedef struct header {
  uint32_t generation, round;
  int32_t slot;
} header;

/* One direction of one end: the message being sent or received, and how far it has come. */
typedef struct progress {
  header head;
  size_t done; /* bytes of header and value so far */
  bool open;   /* in the middle of a message */
} progress;

/* A ring of slots that are waiting to be sent. */
typedef struct queue {
  header *list;
  size_t room, first, count;
} queue;

typedef struct end_state {
  int socket;
  uint32_t generation;
  queue waiting;
  uint32_t owed; /* credits that the maker has not got back yet */
  progress out, in;
} end_state;

typedef struct socket_link {
  end_state ends[2]; /* GP_LINK_MAKER, GP_LINK_READER: each used by its own worker alone */
  char *slots;       /* the slots of the reader */
} socket_link;

static end_state *end_of(const gp_link *link, gp_link_end end) {
  return &((socket_link *)link->self)->ends[end];
}

/* The reader gets values, the maker bare headers. */
static size_t size_to(const gp_link *link, gp_link_end end) {
  return end == GP_LINK_READER ? link->spec.bytes : 0;
}

/* ---- life ---------------------------------------------------------------------------------- */

static bool joins(const gp_lane *from, const gp_lane *to) { return !from->space && !to->space; }

static gp_status open_link(gp_link *link) {
  size_t slots = (size_t)link->spec.slots, bytes = slots * link->spec.bytes;
  int pair[2];
  socket_link *own = link->self = calloc(1, sizeof *own);
  if (!own) return fail(GP_ENOMEM, "socket link: no memory");
  for (int e = 0; e < 2; e++) {
    own->ends[e].socket = -1;
    own->ends[e].waiting.room = 64 * slots + 64; /* credits: several stages release a slot */
    own->ends[e].waiting.list = calloc(own->ends[e].waiting.room, sizeof(header));
  }
  own->slots = calloc(bytes + 64, 1);
  if (!own->slots || !own->ends[0].waiting.list || !own->ends[1].waiting.list)
    return fail(GP_ENOMEM, "socket link: no memory");
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
    return fail(GP_EIO, "socket link: no pair of sockets");
  own->ends[0].socket = pair[0];
  own->ends[1].socket = pair[1];
  link->received = own->slots;
  link->quiet = true;
  return GP_OK;
}

static void close_link(gp_link *link) {
  socket_link *own = link->self;
  for (int e = 0; own && e < 2; e++) {
    if (own->ends[e].socket >= 0) close(own->ends[e].socket);
    free(own->ends[e].waiting.list);
  }
  if (own) free(own->slots);
  free(own);
}

/* Completes a message that is half sent or half received. */
static void begin(gp_link *link) {
  for (gp_link_end e = GP_LINK_MAKER; e <= GP_LINK_READER; e++) {
    end_of(link, e)->generation++;
    end_of(link, e)->waiting.count = 0;
    end_of(link, e)->owed = 0;
  }
}

/* ---- sending ------------------------------------------------------------------------------- */

static gp_status push(end_state *end, int32_t slot, uint32_t round) {
  queue *q = &end->waiting;
  if (q->count == q->room) return fail(GP_ESTATE, "socket link: too many messages wait");
  q->list[(q->first + q->count++) % q->room] = (header){end->generation, round, slot};
  return GP_OK;
}

/* Sends as much of one part as the socket takes; false where it takes no more. */
static bool send_part(end_state *end, const char *from, size_t begin_at, size_t bytes) {
  while (end->out.done < begin_at + bytes) {
    size_t at = end->out.done - begin_at;
    ssize_t n = send(end->socket, from + at, bytes - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    end->out.done += (size_t)n;
  }
  return true;
}

static void send_all(const gp_link *link, end_state *end, gp_link_end to) {
  size_t bytes = size_to(link, to);
  for (;;) {
    queue *q = &end->waiting;
    if (!end->out.open && !q->count) return;
    if (!end->out.open) {
      end->out = (progress){.head = q->list[q->first], .open = true};
      q->first = (q->first + 1) % q->room;
      q->count--;
    }
    const char *value = bytes ? link->spec.made + (size_t)end->out.head.slot * bytes : NULL;
    if (!send_part(end, (const char *)&end->out.head, 0, sizeof(header))) return;
    if (!send_part(end, value, sizeof(header), bytes)) return;
    end->out.open = false;
  }
}

/* ---- receiving ----------------------------------------------------------------------------- */

static bool take_part(end_state *end, char *to, size_t begin_at, size_t bytes) {
  while (end->in.done < begin_at + bytes) {
    size_t at = end->in.done - begin_at;
    ssize_t n = recv(end->socket, to + at, bytes - at, 0);
    if (n <= 0) return false;
    end->in.done += (size_t)n;
  }
  return true;
}

/* A message of an earlier run changes only its slot, which no task reads yet. */
static void take_all(gp_link *link, end_state *end, gp_link_end at) {
  size_t bytes = size_to(link, at);
  for (;;) {
    if (!end->in.open) end->in = (progress){.open = true};
    if (!take_part(end, (char *)&end->in.head, 0, sizeof(header))) return;
    const header *h = &end->in.head;
    char *to = bytes ? link->received + (size_t)h->slot * bytes : NULL;
    if (!take_part(end, to, sizeof(header), bytes)) return;
    end->in.open = false;
    if (h->generation != end->generation) continue;
    if (at == GP_LINK_READER)
      gp_link_note_published(link->words, (gp_link_turn){h->slot, h->round});
    else
      end->owed--, gp_link_note_released(link, h->slot);
  }
}

/* ---- the table ----------------------------------------------------------------------------- */

/* The maker has finished only when all credits are back, because another device that takes turns
 * with it may wait for them. */
static gp_status poll_end(gp_link *link, gp_link_end e, gp_link_left *left) {
  end_state *end = end_of(link, e);
  take_all(link, end, e);
  send_all(link, end, e == GP_LINK_MAKER ? GP_LINK_READER : GP_LINK_MAKER);
  *left = end->owed > 0 ? GP_LINK_CREDITS_LEFT : GP_LINK_NOTHING_LEFT;
  if (end->out.open || end->waiting.count > 0) *left = GP_LINK_MESSAGES_LEFT;
  return GP_OK;
}

static gp_status acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready) {
  (void)link;
  (void)lane;
  (void)turn;
  *ready = true; /* the credits are back: the maker's state said so */
  return GP_OK;
}

static gp_status publish(gp_link *link, gp_link_turn turn) {
  gp_link_left left;
  gp_status status = push(end_of(link, GP_LINK_MAKER), turn.slot, turn.round);
  end_of(link, GP_LINK_MAKER)->owed += link->spec.uses;
  return status ? status : poll_end(link, GP_LINK_MAKER, &left);
}

static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  gp_link_left left;
  gp_status status = poll_end(link, GP_LINK_READER, &left);
  *ready = gp_link_has(link, turn);
  return status;
}

static gp_status release(gp_link *link, gp_link_turn turn) {
  gp_link_left left;
  gp_status status = push(end_of(link, GP_LINK_READER), turn.slot, turn.round);
  return status ? status : poll_end(link, GP_LINK_READER, &left);
}

static void give_up(gp_link *link, gp_link_end e) {
  end_of(link, e)->waiting.count = 0;
  end_of(link, e)->owed = 0;
}

gp_status gp_link_plugin_open(const gp_link_host_functions *host, const gp_link_ops **ops) {
  static const gp_link_ops table = {.name = "socket",
                                    .carries_words = true,
                                    .joins = joins,
                                    .open = open_link,
                                    .close = close_link,
                                    .begin = begin,
                                    .acquire = acquire,
                                    .publish = publish,
                                    .receive = receive,
                                    .release = release,
                                    .poll = poll_end,
                                    .give_up = give_up};
  fail = host->fail;
  if (host->version != GP_LINK_VERSION) return fail(GP_EUNSUPPORTED, "socket link: other version");
  *ops = &table;
  return GP_OK;
}
