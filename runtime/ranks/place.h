/* ranks/place.h - where a rank is, in words; gp_rank_place is in ranks.h. */
#ifndef GP_RANKS_PLACE_H
#define GP_RANKS_PLACE_H

#include "ranks/ranks.h"

/* One of two ranks that have parted. */
typedef struct gp_rank_stand {
  int rank;
  const gp_rank_place *place;
  bool another; /* it is in a run of another pipeline than the other rank */
} gp_rank_stand;

/* Say that two ranks have parted, the lower one first: all ranks say the same. */
void gp_rank_part(gp_rank_stand a, gp_rank_stand b, char *text, size_t size);
bool gp_rank_are_two(uint32_t owner, uint32_t other); /* pipelines; 0: none */

/* The script's name of a call of all ranks, or else `what`. */
const char *gp_rank_call_name(const gp_rank_place *place, const char *what);
/* End the texts of a place that another process has sent. */
void gp_rank_place_end(gp_rank_place *place);

#endif
