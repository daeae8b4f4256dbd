/* device/link/ranks/side.c - see side.h. */
#include "device/link/ranks/side.h"

#include <stdio.h>

#include "base/memory.h"
#include "device/link/ranks/credits.h"

gp_status gp_link_side_open(gp_link_side *side, gp_link *link) {
  const size_t slots = (size_t)link->spec.slots;
  side->link = link;
  side->makes = link->spec.from->rank == gp_ranks_own();
  return side->makes ? GP_OK : gp_alloc_array(slots, sizeof *side->early, (void **)&side->early);
}

void gp_link_side_close(gp_link_side *side) { gp_free(side->early); }

void gp_link_side_begin(gp_link_side *side) {
  const gp_link *link = side->link;
  gp_ports_lock();
  side->run++;
  for (int32_t k = 0; !side->makes && k < link->spec.slots; k++) {
    atomic_store(&link->words[k].published, side->early[k]);
    side->early[k] = 0;
  }
  gp_ports_unlock();
}

int32_t gp_link_other(const gp_link_spec *spec) {
  const int32_t from = spec->from->rank;
  return from == gp_ranks_own() ? spec->to->rank : from;
}

/* ---- values ---------------------------------------------------------------------------------- */

gp_rank_message gp_link_side_value(const gp_link_side *side, gp_link_turn turn) {
  return (gp_rank_message){.kind = GP_RANK_VALUE,
                           .slot = turn.slot,
                           .run = side->run,
                           .round = turn.round,
                           .port = side->link->spec.port,
                           .bytes = side->link->spec.bytes};
}

bool gp_link_side_wants(const gp_link_side *side, const gp_rank_message *m) {
  const bool is_value = !side->makes && m->kind == GP_RANK_VALUE;
  const bool has_slot = m->slot >= 0 && m->slot < side->link->spec.slots;
  return is_value && has_slot && (m->run == side->run || m->run == side->run + 1);
}

void gp_link_side_take(gp_link_side *side, const gp_rank_message *m) {
  const gp_link_spec *spec = &side->link->spec;
  if (!gp_link_side_wants(side, m)) return;
  if (m->run != side->run) {
    side->early[m->slot] = m->round + 1;
    return;
  }
  gp_link_note_published(side->link->words, (gp_link_turn){m->slot, m->round});
  spec->ring(spec->context);
}

/* ---- offers ---------------------------------------------------------------------------------- */

gp_status gp_link_side_say(const gp_link_side *side, const char *what) {
  const gp_link_spec *spec = &side->link->spec;
  gp_rank_message m = {.kind = GP_RANK_SHARE, .port = spec->port};
  snprintf(m.place.what, sizeof m.place.what, "%s", what);
  return gp_ranks_send(gp_link_other(spec), &m, NULL);
}

gp_status gp_link_side_offer(const gp_link_side *side, const void *offer, size_t bytes) {
  const gp_link_spec *spec = &side->link->spec;
  const gp_rank_message m = {.kind = GP_RANK_SHARE, .port = spec->port, .bytes = bytes};
  return gp_ranks_send_copy(gp_link_other(spec), &m, offer);
}

void *gp_link_side_offer_room(const gp_rank_message *m, void *offer, size_t bytes,
                              uint64_t *expected) {
  const bool is_offer = m->kind == GP_RANK_SHARE;
  *expected = is_offer ? bytes : 0;
  return is_offer ? offer : NULL;
}

/* ---- the end of a run ------------------------------------------------------------------------ */

void gp_link_side_give_up(gp_link *link, gp_link_end end) {
  if (end == GP_LINK_READER) return;
  gp_credits_give_up(link->spec.credits);
  gp_ranks_withdraw(link->spec.port);
}
