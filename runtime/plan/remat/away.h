/* plan/remat/away.h - which layers' saved values go to the host's memory. */
#ifndef GP_PLAN_REMAT_AWAY_H
#define GP_PLAN_REMAT_AWAY_H

#include "plan/remat/table.h"

/* Find the fastest list for all layers of a table, where some may go to the host. A set of layers
 * is tried for its copies' exposed time and for twice its bytes; without it, and so where nothing
 * may go, this is gp_remat_search. Of up to four such layers all sets are tried, and the list is as
 * good as that of the best set; of more, sets that take first what is dearest to make again for its
 * bytes. The list is never slower than the best one of which nothing goes.
 * Errors: as gp_remat_search. Cost: a search for each set, at most 16. */
gp_status gp_remat_search_away(gp_remat_table *table, const gp_remat_limits *limits,
                               gp_remat_list *list);

#endif
