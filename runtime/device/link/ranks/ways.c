/* device/link/ranks/ways.c - see ways.h. */
#include "device/link/ranks/ways.h"

#include <stdlib.h>
#include <string.h>

#include "device/link/ranks/side.h"

/* Smaller values are part of their message: a second way would save nothing. */
enum { LEAST_BYTES = 16384 };

static bool is_set(const char *name, const char *value) {
  const char *wish = getenv(name);
  return wish && !strcmp(wish, value);
}

bool gp_way_is_queued(const gp_link_spec *spec, const gp_lane *lane) {
  return !spec->host && !lane->facts->at_once;
}

/* A process has bells where it shares memory with the others of its host. */
bool gp_way_is_near(const gp_link_spec *spec) {
  return spec->bells && gp_ranks_are_near(gp_link_other(spec));
}

bool gp_way_is_shared(const gp_link_spec *spec) {
  const bool has_room = spec->may_own || gp_way_is_queued(spec, spec->to);
  return has_room && spec->bytes >= LEAST_BYTES && gp_way_is_near(spec);
}

bool gp_way_is_wired(const gp_link_spec *spec) {
  const bool joins_queues = gp_way_is_queued(spec, spec->from) && gp_way_is_queued(spec, spec->to);
  if (!joins_queues || spec->bytes < LEAST_BYTES || is_set("GPIPE_NCCL", "0")) return false;
  return is_set("GPIPE_NCCL", "1") || !gp_ranks_are_near(gp_link_other(spec));
}
