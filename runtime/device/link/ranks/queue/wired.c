/* device/link/ranks/queue/wired.c - see wired.h. */
#include "device/link/ranks/queue/wired.h"

#include <stdio.h>

#include "base/memory.h"
#include "device/link/pool.h"

typedef struct slot {
  gp_lane_event *event; /* the maker's: the value is made; the reader's: it has come */
  _Atomic int state;    /* gp_wire_state, of the reader */
} slot;

struct gp_wired_end {
  const gp_link *link; /* borrowed */
  const gp_lane *lane; /* borrowed: of this end */
  gp_wire *wire;       /* borrowed: of the pair of devices */
  bool was_noted;
  slot *slots;
};

gp_status gp_wired_new(const gp_link *link, bool makes, gp_wired_end **end) {
  const gp_lane *lane = makes ? link->spec.from : link->spec.to;
  const size_t count = (size_t)link->spec.slots;
  GP_TRY(gp_alloc(sizeof **end, (void **)end));
  (*end)->link = link;
  (*end)->lane = lane;
  GP_TRY(gp_link_pool_wire(link->spec.pool, link->spec.from, link->spec.to, makes, &(*end)->wire));
  GP_TRY(gp_alloc_array(count, sizeof(slot), (void **)&(*end)->slots));
  for (size_t k = 0; k < count; k++)
    GP_TRY(lane->streams->event_new(lane, false, &(*end)->slots[k].event));
  return gp_wire_reserve((*end)->wire, count);
}

void gp_wired_free(gp_wired_end *end) {
  if (!end) return;
  for (int32_t k = 0; end->slots && k < end->link->spec.slots; k++)
    end->lane->streams->event_free(end->lane, end->slots[k].event);
  gp_free(end->slots);
  gp_free(end);
}

void gp_wired_abort(gp_wired_end *end) { gp_wire_abort(end->wire); }

gp_status gp_wired_poll(gp_wired_end *end, bool *busy) {
  const gp_status status = gp_wire_move(end->wire);
  *busy = !gp_wire_is_idle(end->wire);
  return status;
}

/* ---- the maker ------------------------------------------------------------------------------- */

static void note(gp_wired_end *end, const char *why) {
  char name[80];
  if (end->was_noted) return;
  end->was_noted = true;
  snprintf(name, sizeof name, "%s to %s", end->lane->name, end->link->spec.to->name);
  end->lane->wires->note(end->lane, name, why);
}

void gp_wired_connect(gp_wired_end *end, const unsigned char *id, const char *why) {
  if (id)
    gp_wire_connect(end->wire, id);
  else
    note(end, why);
}

bool gp_wired_is_up(gp_wired_end *end) {
  const bool up = gp_wire_is_up(end->wire);
  const char *why = gp_wire_why(end->wire);
  if (up || *why) note(end, up ? NULL : why);
  return up;
}

gp_status gp_wired_send(gp_wired_end *end, int32_t k) {
  const gp_lane *lane = end->lane;
  const size_t bytes = end->link->spec.bytes;
  const gp_wire_item item = {.after = end->slots[k].event,
                             .memory = end->link->spec.made + (size_t)k * bytes,
                             .bytes = bytes};
  GP_TRY(lane->streams->record(lane, GP_STREAM_COMPUTE, end->slots[k].event));
  gp_wire_post(end->wire, &item);
  return gp_wire_move(end->wire);
}

/* ---- the reader ------------------------------------------------------------------------------ */

const unsigned char *gp_wired_id(const gp_wired_end *end, const char **why) {
  *why = gp_wire_why(end->wire);
  return gp_wire_id(end->wire);
}

void gp_wired_want(gp_wired_end *end) { gp_wire_want(end->wire); }

/* The slot is free: the maker sends only after its last use was told. */
void gp_wired_expect(gp_wired_end *end, int32_t k) {
  const size_t bytes = end->link->spec.bytes;
  gp_wire_post(end->wire, &(gp_wire_item){.done = end->slots[k].event,
                                          .memory = end->link->received + (size_t)k * bytes,
                                          .bytes = bytes,
                                          .state = &end->slots[k].state});
}

/* Stages of one device wait for the event once each, which costs nothing. */
gp_status gp_wired_receive(gp_wired_end *end, int32_t k, bool *ready) {
  GP_TRY(gp_wire_move(end->wire));
  *ready = atomic_load(&end->slots[k].state) == GP_WIRE_MOVED;
  if (*ready) return end->lane->streams->wait(end->lane, GP_STREAM_COMPUTE, end->slots[k].event);
  const char *why = gp_wire_why(end->wire);
  return *why ? gp_fail(GP_EDEVICE, "%s: the value of %s does not come: %s", end->lane->name,
                        end->link->spec.from->name, why)
              : GP_OK;
}
