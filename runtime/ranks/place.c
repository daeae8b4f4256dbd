/* ranks/place.c - see place.h.
 *
 * Ranks compare their calls by names of ours, because one call of the script may make several, and
 * two calls may make the same one. People are shown what the script has called, and where. */
#include "ranks/place.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "ranks/net.h"

void gp_ranks_name_call(const char *name, const char *where) {
  gp_net *net = gp_net_place();
  pthread_mutex_lock(&net->lock);
  if (!*name && *net->place.name) {
    net->script.last = net->place;
    net->script.last_end = gp_now_ns();
  }
  snprintf(net->place.name, sizeof net->place.name, "%s", name);
  snprintf(net->place.where, sizeof net->place.where, "%s", where);
  pthread_mutex_unlock(&net->lock);
}

void gp_rank_place_end(gp_rank_place *place) {
  place->what[sizeof place->what - 1] = '\0';
  place->name[sizeof place->name - 1] = '\0';
  place->where[sizeof place->where - 1] = '\0';
}

const char *gp_rank_call_name(const gp_rank_place *place, const char *what) {
  return place->name[0] ? place->name : what;
}

/* Show our name as well where the script's does not tell the two apart. */
static void put_place(const gp_rank_place *place, bool in_full, char *text, size_t size) {
  if (!place->name[0])
    snprintf(text, size, "'%s'", place->what);
  else
    snprintf(text, size, "'%s'%s%s%s%s%s", place->name, *place->where ? " at " : "", place->where,
             in_full ? " (" : "", in_full ? place->what : "", in_full ? ")" : "");
}

bool gp_rank_are_two(uint32_t owner, uint32_t other) { return owner && other && owner != other; }

void gp_rank_part(gp_rank_stand a, gp_rank_stand b, char *text, size_t size) {
  char first[120], second[120];
  const bool same = !strcmp(a.place->name, b.place->name);
  if (a.rank > b.rank) {
    const gp_rank_stand other = a;
    a = b, b = other;
  }
  put_place(a.place, same, first, sizeof first);
  put_place(b.place, same, second, sizeof second);
  snprintf(text, size,
           "rank %d is in %s, rank %d in %s%s: expected the same calls in the same order on all "
           "ranks",
           a.rank, first, b.rank, second, a.another || b.another ? " of another pipeline" : "");
}
