/* device/team.h - the threads of one CPU device: run the pieces of a job, in any order, on all of
 * them.
 *
 * The calling thread is a member, so a team of one is a plain loop. Which thread runs which piece
 * is left open: pieces write disjoint memory and their boundaries do not depend on the number of
 * threads, so the bits do not either. */
#ifndef GP_DEVICE_TEAM_H
#define GP_DEVICE_TEAM_H

#include "base/status.h"

typedef struct gp_team gp_team;

/* Make a team of threads >= 1 members; the caller of gp_team_run is thread 0. Helpers are pinned to
 * cores[1..] if core_count > 0. spin: helpers may spin briefly before they sleep (false if cores
 * are shared). */
gp_status gp_team_new(int threads, const int *cores, int core_count, bool spin, gp_team **team);
void gp_team_free(gp_team *team);
int gp_team_size(const gp_team *team);

/* Run piece(context, index, member) for index 0 .. pieces - 1 and return when all are done. After a
 * failure no further piece starts; the failure of the smallest index that ran is returned with its
 * text. Allocates nothing. */
typedef gp_status (*gp_piece)(void *context, int64_t index, int member);
gp_status gp_team_run(gp_team *team, int64_t pieces, gp_piece piece, void *context);

#endif
