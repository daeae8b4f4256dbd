/* schedule/simulate/channels.c - bounded channels: when a device may send.
 *
 * A value is sent no earlier than the one that lay in its place was taken out and its sender has
 * heard of that, so places are free again in the order in which they were taken. In a channel that
 * holds nothing both ends meet: the sender waits until its reader waits too. A reader names the
 * micro-batch that it wants; if it takes a value out of turn, the place of the first one becomes
 * free all the same.
 */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* Returns the channel from `sender` to the action `to`: there is one per cut, direction, and copies
 * of both stages. */
static int32_t channel_of(const gp_sim *r, int32_t sender, int32_t to) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[sender];
  bool back = x->op != GP_ACT_F && x->op != GP_ACT_SEND_F;
  int32_t copies = s->copy_count, edge = 2 * x->stage + back;
  return (edge * copies + gp_action_copy(s, sender)) * copies + gp_action_copy(s, to);
}

/* Wake the device of `sender` if it waits for room in this channel. */
static void wake_sender(gp_sim *r, int32_t sender, int32_t channel) {
  int32_t device = gp_action_device(r->schedule, sender);
  if (r->cursors[device].full == channel) gp_turns_wake(&r->turns, device);
}

/* Returns from when on there is room for the value of `sender`, and the action that made room; a
 * time below 0: not yet. If the channel holds nothing, the reader must be waiting. */
static gp_sim_slot room_for(const gp_sim *r, int32_t sender, int32_t to) {
  if (r->capacity < 0) return (gp_sim_slot){0, -1};
  if (r->capacity == 0) return (gp_sim_slot){r->places[to].posted, to};
  int32_t channel = channel_of(r, sender, to);
  const gp_sim_queue *queue = &r->queues[channel];
  if (queue->sent < r->capacity) return (gp_sim_slot){0, -1};
  if (queue->sent - queue->received >= r->capacity) return (gp_sim_slot){-1, -1};
  return r->slots[(size_t)channel * (size_t)r->capacity + (size_t)(queue->sent % r->capacity)];
}

void gp_sim_post(gp_sim *r, int32_t sender, int32_t to, double time) {
  if (r->capacity != 0 || r->places[to].posted >= 0) return;
  r->places[to].posted = time;
  wake_sender(r, sender, channel_of(r, sender, to));
}

void gp_sim_take(gp_sim *r, int32_t sender, int32_t to, double time) {
  if (r->capacity < 1) return;
  int32_t channel = channel_of(r, sender, to);
  int32_t slot = r->queues[channel].received++ % r->capacity;
  r->slots[(size_t)channel * (size_t)r->capacity + (size_t)slot] = (gp_sim_slot){time, to};
  wake_sender(r, sender, channel);
}

/* Returns when a value that its device hands over at `time` begins to travel. What a device sends
 * passes its link one by one, in the order of its list; the device itself does not wait. */
static double enter_link(gp_sim *r, int32_t sender, double time) {
  if (!r->links) return time;
  double *until = &r->links[gp_action_device(r->schedule, sender)];
  double start = *until > time ? *until : time;
  *until = start + gp_sim_busy(r, sender);
  return start;
}

bool gp_sim_put(gp_sim *r, gp_sim_cursor *c, int32_t to) {
  double *arrival = &r->arrivals[c->part];
  gp_sim_slot room = room_for(r, c->part, to);
  if (r->capacity >= 0) c->full = channel_of(r, c->part, to);
  if (room.time < 0) return false;
  if (r->capacity > 0) r->queues[c->full].sent++;
  const double heard = room.taker < 0 ? 0 : room.time + gp_sim_credit(r, c->part);
  const double start = heard > c->ready ? heard : c->ready;
  if (r->places) {
    gp_sim_place *place = &r->places[c->part];
    place->freed_by = heard > c->ready ? room.taker : -1;
    place->freed = room.time;
    place->start = start;
  }
  *arrival = enter_link(r, c->part, start) + gp_sim_delay(r, c->part);
  c->ready = r->costs->blocking ? *arrival : start;
  return true;
}

gp_status gp_sim_open_channels(gp_sim *r, size_t total) {
  const gp_schedule *s = r->schedule;
  size_t channels = 2 * (size_t)s->stage_count * (size_t)(s->copy_count * s->copy_count), slots;
  bool takes = r->costs->busy[0] || r->costs->busy[1];
  if (takes) GP_TRY(gp_alloc_array((size_t)s->device_count, sizeof *r->links, (void **)&r->links));
  if (r->capacity < 0 && !r->costs->blocking && !takes) return GP_OK;
  GP_TRY(gp_alloc_array(total, sizeof *r->arrivals, (void **)&r->arrivals));
  for (size_t a = 0; a < total; a++) r->arrivals[a] = -1;
  if (r->capacity < 0) return GP_OK;
  GP_TRY(gp_alloc_array(total, sizeof *r->places, (void **)&r->places));
  for (size_t a = 0; a < total; a++) r->places[a] = (gp_sim_place){.posted = -1, .freed_by = -1};
  if (r->capacity < 1) return GP_OK;
  GP_TRY(gp_size_mul(channels, (size_t)r->capacity, &slots));
  GP_TRY(gp_alloc_array(channels, sizeof *r->queues, (void **)&r->queues));
  return gp_alloc_array(slots, sizeof *r->slots, (void **)&r->slots);
}
