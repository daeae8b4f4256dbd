/* ranks/mpi/api.h - what libgpipe_mpi.so does for the core.
 *
 * The core links nothing of MPI: the library is opened when a job wants it, and imports nothing
 * from the core. One thread makes all calls. There is one communicator of our own, on which nothing
 * but these messages travels. Between two ranks messages arrive in the order in which they were
 * sent; none is larger than its receiver expects. */
#ifndef GP_RANKS_MPI_API_H
#define GP_RANKS_MPI_API_H

#include <stddef.h>
#include <stdint.h>

#define GP_MPI_ENTRY "gp_mpi_open"
enum { GP_MPI_VERSION = 2, GP_MPI_TEXT = 256 };

/* Functions that return int return 0, or fail with a text. */
typedef struct gp_mpi_api {
  uint32_t version;
  const char *(*text)(void);    /* the last failure */
  const char *(*library)(void); /* "Open MPI v4.1.4, ..." */
  /* Join the job, unless a library has done so before; collective. */
  int (*join)(int *rank, int *count);
  /* Exchange blocks of the same size; all has one for each rank. Collective. */
  int (*exchange)(const void *own, size_t bytes, void *all);
  /* Begin to send, and to receive; id comes back when it is over. bytes < 2^31. *over: it is over
   * already, and id does not come back. */
  int (*send)(int to, const void *data, size_t bytes, int id, int *over);
  int (*receive)(int from, void *data, size_t bytes, int id);
  /* List what is over by its ids, until the next call. Returns how many, or -1. */
  int (*poll)(const int **over);
  /* clean: all ranks end, which is collective. */
  void (*leave)(int clean);
} gp_mpi_api;

typedef const gp_mpi_api *(*gp_mpi_entry)(void);

#endif
