/* schedule/verify/channels.c - run a schedule over channels that hold so many messages, with
 * senders that block.
 *
 * Each channel has one sender and one receiver, and a receiver says which micro-batch it wants:
 * whether all comes to an end, and when, does not depend on who is looked at first. So devices run
 * until they block, each with a clock of its own: the n-th send ends no earlier than the (n -
 * capacity)-th receive.
 */
#include "schedule/verify/channels.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

typedef struct channel {
  int32_t sent, received;    /* messages */
  int32_t receiver, sender;  /* device + 1 that waits; 0: none */
  int32_t offer, offer_time; /* capacity 0: micro-batch + 1 that the sender holds out */
} channel;

typedef struct runner {
  int32_t head;        /* its next action */
  int32_t step;        /* of it: a receive for each part, the computation, a send for each part */
  int32_t clock, peer; /* peer: the device it waits for */
} runner;

typedef struct network {
  const gp_verify *v;
  int32_t capacity;
  bool bounded;
  channel *channels; /* [direction][stage][sender's copy][receiver's copy] */
  int32_t *times;    /* per channel: when its last `capacity` messages were received */
  int32_t *sent[2];  /* per direction [stage][micro]: time + 1 at which it was sent; 0: not yet */
  runner *runners;
  int32_t *ring; /* devices that may go on */
  int32_t begin, count;
} network;

/* A message: what makes it, and what takes it. */
typedef struct message {
  int32_t from, to; /* positions */
  int direction;    /* 0: forward */
} message;

/* ---- messages ------------------------------------------------------------------------------ */

/* Does the schedule write this action down for the same stage and micro-batch? */
static bool named(const network *n, gp_act op, const gp_action *x) {
  return gp_verify_at(n->v, op, x->stage, x->micro) >= 0;
}

/* Does it cross devices? */
static bool crosses(const network *n, const message *m) {
  return m->from >= 0 && m->to >= 0 &&
         gp_verify_device(n->v->s, m->from) != gp_verify_device(n->v->s, m->to);
}

/* What action a has to receive first: its own receive, or one that nobody names. */
static bool incoming(const network *n, int32_t a, message *m) {
  const gp_action *x = &n->v->s->actions[a];
  *m = (message){-1, a, x->op != GP_ACT_F && x->op != GP_ACT_RECV_F};
  if (x->op == GP_ACT_F && named(n, GP_ACT_RECV_F, x)) return false;
  if ((x->op == GP_ACT_B || x->op == GP_ACT_I) && named(n, GP_ACT_RECV_B, x)) return false;
  m->from = gp_verify_source(n->v, a);
  return crosses(n, m);
}

/* What action a sends when it is through: its own send, or one that nobody names. */
static bool outgoing(const network *n, int32_t a, message *m) {
  const gp_verify *v = n->v;
  const gp_action *x = &v->s->actions[a];
  int32_t last = v->s->stage_count - 1;
  *m = (message){a, -1, x->op != GP_ACT_F && x->op != GP_ACT_SEND_F};
  if (x->op == GP_ACT_SEND_F) {
    m->to = gp_verify_at(v, GP_ACT_RECV_F, x->stage + 1, x->micro);
  } else if (x->op == GP_ACT_SEND_B) {
    m->to = gp_verify_at(v, GP_ACT_RECV_B, x->stage - 1, x->micro);
  } else if (x->op == GP_ACT_F && x->stage < last && !named(n, GP_ACT_SEND_F, x)) {
    m->to = gp_verify_at(v, GP_ACT_F, x->stage + 1, x->micro);
  } else if ((x->op == GP_ACT_B || x->op == GP_ACT_I) && x->stage > 0 &&
             !named(n, GP_ACT_SEND_B, x)) {
    m->to = gp_verify_backward(v, x->stage - 1, x->micro);
  }
  return crosses(n, m);
}

/* Messages of one direction between the same two holders share a channel, first in, first out. */
static size_t channel_of(const network *n, const message *m) {
  const gp_schedule *s = n->v->s;
  size_t copies = (size_t)s->copy_count;
  size_t stage = (size_t)(m->direction * s->stage_count + s->actions[m->from].stage);
  return (stage * copies + (size_t)gp_verify_copy(s, m->from)) * copies +
         (size_t)gp_verify_copy(s, m->to);
}

/* When the message that had the same place in the buffer was received. */
static int32_t *time_of(const network *n, size_t at, int32_t number) {
  return &n->times[at * (size_t)n->capacity + (size_t)(number % n->capacity)];
}

/* Put the device that waits into the ring; 0: nobody does. */
static void wake(network *n, int32_t *waiting) {
  int32_t devices = n->v->s->device_count, at = n->begin + n->count;
  if (!*waiting) return;
  n->ring[at < devices ? at : at - devices] = *waiting - 1;
  n->count++;
  *waiting = 0;
}

/* ---- steps: true, or false and the device waits ---------------------------------------------- */

/* A device cannot go on before the other was there. */
static void meet(int32_t *clock, int32_t time) {
  if (*clock < time) *clock = time;
}

/* Capacity 0: the sender holds its message out and waits; the receiver takes it and lets both go
 * on. */
static bool offer(network *n, int32_t device, channel *c, int32_t micro) {
  if (c->offer == -1 - micro) {
    meet(&n->runners[device].clock, c->offer_time);
    c->offer = 0;
    return true;
  }
  c->offer = micro + 1;
  c->offer_time = n->runners[device].clock;
  c->sender = device + 1;
  wake(n, &c->receiver);
  return false;
}

/* The receiver's half of offer. */
static bool accept(network *n, int32_t device, channel *c, int32_t micro) {
  if (c->offer != micro + 1) {
    c->receiver = device + 1;
    return false;
  }
  meet(&n->runners[device].clock, c->offer_time);
  c->offer = -1 - micro;
  c->offer_time = n->runners[device].clock;
  wake(n, &c->sender);
  return true;
}

/* With room it goes on at once; without, it waits for a receive. */
static bool send(network *n, int32_t device, const message *m) {
  size_t at = channel_of(n, m);
  channel *c = &n->channels[at];
  runner *r = &n->runners[device];
  const gp_action *x = &n->v->s->actions[m->from];
  if (n->capacity == 0) return offer(n, device, c, x->micro);
  if (n->bounded && c->sent - c->received >= n->capacity) {
    c->sender = device + 1;
    return false;
  }
  if (n->bounded && c->sent >= n->capacity) meet(&r->clock, *time_of(n, at, c->sent));
  c->sent++;
  n->sent[m->direction][gp_verify_cell(n->v, x->stage, x->micro)] = r->clock + 1;
  wake(n, &c->receiver);
  return true;
}

/* It waits until the message was sent, and frees its place. */
static bool receive(network *n, int32_t device, const message *m) {
  size_t at = channel_of(n, m);
  channel *c = &n->channels[at];
  runner *r = &n->runners[device];
  const gp_action *x = &n->v->s->actions[m->from];
  int32_t sent = n->sent[m->direction][gp_verify_cell(n->v, x->stage, x->micro)];
  if (n->capacity == 0) return accept(n, device, c, x->micro);
  if (!sent) {
    c->receiver = device + 1;
    return false;
  }
  meet(&r->clock, sent - 1);
  if (n->bounded) *time_of(n, at, c->received) = r->clock;
  c->received++;
  wake(n, &c->sender);
  return true;
}

/* A backward pass in one piece is two units, as its halves are. */
static int32_t cost_of(const gp_action *x) {
  return x->op == GP_ACT_B ? 2 : x->op <= GP_ACT_R ? 1 : 0;
}

/* What a device does next, of the parts begin .. end - 1: receives, computation, sends. */
static bool take_step(network *n, int32_t device, int32_t begin, int32_t end) {
  runner *r = &n->runners[device];
  int32_t parts = end - begin;
  message m;
  if (r->step < parts) {
    if (!incoming(n, begin + r->step, &m)) return true;
    r->peer = gp_verify_device(n->v->s, m.from);
    return receive(n, device, &m);
  }
  if (r->step == parts) {
    for (int32_t a = begin; a < end; a++) r->clock += cost_of(&n->v->s->actions[a]);
    return true;
  }
  if (!outgoing(n, begin + r->step - parts - 1, &m)) return true;
  r->peer = gp_verify_device(n->v->s, m.to);
  return send(n, device, &m);
}

static void run_device(network *n, int32_t device) {
  const gp_schedule *s = n->v->s;
  runner *r = &n->runners[device];
  while (r->head < s->first[device + 1]) {
    int32_t end = gp_schedule_group_end(s, r->head);
    for (; r->step <= 2 * (end - r->head); r->step++)
      if (!take_step(n, device, r->head, end)) return;
    r->head = end;
    r->step = 0;
  }
}

/* ---- what went wrong ----------------------------------------------------------------------- */

/* It has not come to its end although nobody can go on. */
static bool is_stuck(const network *n, int32_t device) {
  return n->runners[device].head < n->v->s->first[device + 1];
}

/* The action at which a device is stuck, and in words what it waits for. */
static int32_t describe(const network *n, int32_t device, char *text, size_t size) {
  const runner *r = &n->runners[device];
  int32_t parts = gp_schedule_group_end(n->v->s, r->head) - r->head;
  bool receives = r->step < parts;
  int32_t a = r->head + (receives ? r->step : r->step - parts - 1);
  char one[GP_ACTION_TEXT];
  message m;
  if (receives) {
    incoming(n, a, &m);
    snprintf(text, size, "waits for %s of device %d", gp_verify_name(n->v, m.from, one),
             (int)r->peer);
  } else {
    snprintf(text, size, "cannot send to device %d (%s)", (int)r->peer,
             n->capacity ? "the channel is full" : "it is not receiving");
  }
  return a;
}

/* Every device that is stuck waits for one that is stuck: follow them into the circle. */
static gp_status report(const network *n, int32_t device) {
  char text[420] = "", one[GP_ACTION_TEXT], wait[96];
  for (int32_t i = 0; i < n->v->s->device_count; i++) device = n->runners[device].peer;
  int32_t d = device, first = describe(n, device, wait, sizeof wait);
  size_t used = (size_t)snprintf(text, sizeof text, "%s", wait);
  for (d = n->runners[d].peer; d != device && used + 150 < sizeof text; d = n->runners[d].peer) {
    int32_t a = describe(n, d, wait, sizeof wait);
    used += (size_t)snprintf(text + used, sizeof text - used, "; device %d at %s %s", (int)d,
                             gp_verify_name(n->v, a, one), wait);
  }
  return gp_verify_fail(n->v, first, "capacity", "%s%s: a deadlock with channels of capacity %d",
                        text, d == device ? "" : "; ...", (int)n->capacity);
}

/* ---- the run ------------------------------------------------------------------------------- */

static void run(network *n) {
  const gp_schedule *s = n->v->s;
  for (int32_t d = 0; d < s->device_count; d++) {
    n->runners[d].head = s->first[d];
    wake(n, &(int32_t){d + 1});
  }
  while (n->count > 0) {
    int32_t device = n->ring[n->begin];
    n->begin = n->begin + 1 < s->device_count ? n->begin + 1 : 0;
    n->count--;
    run_device(n, device);
  }
}

static gp_status settle(const network *n, bool tell, int32_t *makespan) {
  *makespan = 0;
  for (int32_t d = 0; d < n->v->s->device_count; d++) {
    if (is_stuck(n, d)) {
      *makespan = -1;
      return tell ? report(n, d) : GP_OK;
    }
    meet(makespan, n->runners[d].clock);
  }
  return GP_OK;
}

static gp_status allocate(network *n) {
  const gp_schedule *s = n->v->s;
  size_t devices = (size_t)s->device_count, copies = (size_t)s->copy_count;
  size_t channels = 2 * (size_t)s->stage_count * copies * copies, times;
  size_t cells = (size_t)s->stage_count * (size_t)s->micro_count;
  GP_TRY(gp_size_mul(channels, n->bounded ? (size_t)n->capacity : 0, &times));
  GP_TRY(gp_alloc_array(channels, sizeof *n->channels, (void **)&n->channels));
  GP_TRY(gp_alloc_array(times + 1, sizeof *n->times, (void **)&n->times));
  GP_TRY(gp_alloc_array(2 * cells, sizeof(int32_t), (void **)&n->sent[0]));
  n->sent[1] = n->sent[0] + cells;
  GP_TRY(gp_alloc_array(devices, sizeof *n->runners, (void **)&n->runners));
  return gp_alloc_array(devices, sizeof *n->ring, (void **)&n->ring);
}

gp_status gp_channels_run(const gp_verify *v, int32_t capacity, bool tell, int32_t *makespan) {
  network n = {.v = v, .capacity = capacity, .bounded = capacity < v->s->micro_count};
  gp_status status = allocate(&n);
  if (!status) {
    run(&n);
    status = settle(&n, tell, makespan);
  }
  gp_free(n.channels);
  gp_free(n.times);
  gp_free(n.sent[0]);
  gp_free(n.runners);
  gp_free(n.ring);
  return status;
}
