/* ranks/mpi/plugin.c - libgpipe_mpi.so: the calls of MPI that a job needs, see api.h.
 *
 * It is compiled against the MPI of the machine and is the only file that includes mpi.h. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/mpi/api.h"

enum { TAG = 1 };

static MPI_Comm all = MPI_COMM_NULL; /* all ranks; errors return */
static int count;
static MPI_Request *requests; /* [0, count): receives, [count, 2 count): sends */
static int own_init;          /* this library has called MPI_Init */
static char failure[GP_MPI_TEXT];
static char library_text[MPI_MAX_LIBRARY_VERSION_STRING];

/* ---- errors ---------------------------------------------------------------------------------- */

static int fail(const char *what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  snprintf(failure, sizeof failure, "%s: %.180s", what, text);
  return 1;
}

static const char *text(void) { return failure; }

static const char *library(void) {
  int length = 0;
  if (MPI_Get_library_version(library_text, &length)) return "MPI";
  library_text[strcspn(library_text, ",\n")] = '\0';
  return library_text;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The thread that calls this makes all calls, so FUNNELED is enough. */
static int start(void) {
  int is_on = 0, given = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_on);
  if (is_on) return 0;
  own_init = 1;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
  if (code) return fail("MPI_Init_thread", code);
  if (given >= MPI_THREAD_FUNNELED) return 0;
  snprintf(failure, sizeof failure, "MPI has no support for threads, expected MPI_THREAD_FUNNELED");
  return 1;
}

static int join(int *rank, int *size) {
  if (start()) return 1;
  int code = MPI_Comm_dup(MPI_COMM_WORLD, &all);
  if (code) return fail("MPI_Comm_dup", code);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Comm_rank(all, rank);
  MPI_Comm_size(all, size);
  count = *size;
  requests = malloc(2 * (size_t)count * sizeof *requests);
  if (!requests) return snprintf(failure, sizeof failure, "out of memory: requests"), 1;
  for (int i = 0; i < 2 * count; i++) requests[i] = MPI_REQUEST_NULL;
  return 0;
}

/* Receives are posted at all times: they are taken back. */
static void leave(int clean) {
  if (!clean) return;
  for (int r = 0; r < count; r++) {
    if (requests[r] == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&requests[r]);
    MPI_Wait(&requests[r], MPI_STATUS_IGNORE);
  }
  if (own_init) MPI_Finalize();
}

/* ---- messages -------------------------------------------------------------------------------- */

static int exchange(const void *own, size_t bytes, void *blocks) {
  int code = MPI_Allgather(own, (int)bytes, MPI_BYTE, blocks, (int)bytes, MPI_BYTE, all);
  return code ? fail("MPI_Allgather", code) : 0;
}

static int send(int to, const void *data, size_t bytes) {
  int code = MPI_Isend(data, (int)bytes, MPI_BYTE, to, TAG, all, &requests[count + to]);
  return code ? fail("MPI_Isend", code) : 0;
}

static int receive(int from, void *data, size_t bytes) {
  int code = MPI_Irecv(data, (int)bytes, MPI_BYTE, from, TAG, all, &requests[from]);
  return code ? fail("MPI_Irecv", code) : 0;
}

static int poll_requests(int *over) {
  int done = 0;
  int code = MPI_Testsome(2 * count, requests, &done, over, MPI_STATUSES_IGNORE);
  if (code) return fail("MPI_Testsome", code), -1;
  return done == MPI_UNDEFINED ? 0 : done;
}

/* ---- the entry point ------------------------------------------------------------------------- */

__attribute__((visibility("default"))) const gp_mpi_api *gp_mpi_open(void);

const gp_mpi_api *gp_mpi_open(void) {
  static const gp_mpi_api api = {.version = GP_MPI_VERSION,
                                 .text = text,
                                 .library = library,
                                 .join = join,
                                 .exchange = exchange,
                                 .send = send,
                                 .receive = receive,
                                 .poll = poll_requests,
                                 .leave = leave};
  return &api;
}
