/* ranks/probe.h - the rounds of a measurement between two ranks. */
#ifndef GP_RANKS_PROBE_H
#define GP_RANKS_PROBE_H

#include "gpipe/ranks.h"

/* Send one burst and wait for its answer. last: the other end is told that no round follows. */
typedef gp_status gp_probe_round(void *context, bool last, gp_rank_probe *taken);

/* Errors: GP_EINVAL for ranks, bytes or rounds that are none. */
gp_status gp_probe_check(const gp_rank_probe_spec *spec);
/* All rounds at the end that begins; *best receives the shortest one, and the mean. */
gp_status gp_probe_rounds(const gp_rank_probe_spec *spec, gp_probe_round *once, void *context,
                          gp_rank_probe *best);
/* Go on waiting for the answer of `peer`, since `begin`? Errors: GP_EINTERRUPT, GP_ETIMEOUT after a
 * minute. */
gp_status gp_probe_look(int32_t peer, int64_t begin);

#endif
