/* ranks/mpi/mpi.h - ranks that are connected by MPI.
 *
 *   api.h       what the library does for the core
 *   plugin.c    the library: the only file that knows MPI
 *   library.c   finds and opens it
 *   move.c      the transport */
#ifndef GP_RANKS_MPI_H
#define GP_RANKS_MPI_H

#include "base/status.h"
#include "gpipe/ranks.h"
#include "ranks/mpi/api.h"

/* Open the library, once. Errors: GP_EUNSUPPORTED with the reason. */
gp_status gp_mpi_find(const gp_mpi_api **api);

#endif
