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
/* What is under way: requests and their ids; places and ids of those that are over. */
static struct {
  MPI_Request *requests;
  int *ids;
  int count, room;
  int *places, *over; /* results of a poll, which are read while new moves begin */
  int result_room;
} moves;
static int own_init; /* this library has called MPI_Init */
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
  return 0;
}

/* Receives are posted at all times: they are taken back. */
static void leave(int clean) {
  if (!clean) return;
  for (int i = 0; i < moves.count; i++) {
    MPI_Cancel(&moves.requests[i]);
    MPI_Wait(&moves.requests[i], MPI_STATUS_IGNORE);
  }
  if (own_init) MPI_Finalize();
}

/* ---- messages -------------------------------------------------------------------------------- */

static int exchange(const void *own, size_t bytes, void *blocks) {
  int code = MPI_Allgather(own, (int)bytes, MPI_BYTE, blocks, (int)bytes, MPI_BYTE, all);
  return code ? fail("MPI_Allgather", code) : 0;
}

static int no_memory(size_t room) {
  snprintf(failure, sizeof failure, "out of memory: %zu requests", room);
  return 1;
}

/* Make room for one more. */
static int grow(void) {
  if (moves.count < moves.room) return 0;
  const size_t room = moves.room ? 2 * (size_t)moves.room : 64;
  void *requests = realloc(moves.requests, room * sizeof *moves.requests);
  if (requests) moves.requests = requests;
  void *ids = realloc(moves.ids, room * sizeof *moves.ids);
  if (ids) moves.ids = ids;
  if (!requests || !ids) return no_memory(room);
  moves.room = (int)room;
  return 0;
}

/* Make room for the results of a poll. */
static int grow_results(void) {
  if (moves.count <= moves.result_room) return 0;
  const size_t room = (size_t)moves.room;
  void *places = realloc(moves.places, room * sizeof *moves.places);
  if (places) moves.places = places;
  void *over = realloc(moves.over, room * sizeof *moves.over);
  if (over) moves.over = over;
  if (!places || !over) return no_memory(room);
  moves.result_room = (int)room;
  return 0;
}

static int note(const char *what, int code, int id) {
  if (code) return fail(what, code);
  moves.ids[moves.count++] = id;
  return 0;
}

/* A small message is over at once: the library has copied it. */
static int send(int to, const void *data, size_t bytes, int id, int *over) {
  if (grow()) return 1;
  MPI_Request *request = &moves.requests[moves.count];
  int code = MPI_Isend(data, (int)bytes, MPI_BYTE, to, TAG, all, request);
  if (!code) code = MPI_Test(request, over, MPI_STATUS_IGNORE);
  return !code && *over ? 0 : note("MPI_Isend", code, id);
}

static int receive(int from, void *data, size_t bytes, int id) {
  if (grow()) return 1;
  return note("MPI_Irecv",
              MPI_Irecv(data, (int)bytes, MPI_BYTE, from, TAG, all, &moves.requests[moves.count]),
              id);
}

/* Close the gaps; MPI has put null into what is over. */
static void compact(void) {
  int kept = 0;
  for (int i = 0; i < moves.count; i++) {
    if (moves.requests[i] == MPI_REQUEST_NULL) continue;
    moves.requests[kept] = moves.requests[i];
    moves.ids[kept++] = moves.ids[i];
  }
  moves.count = kept;
}

/* Look whether the only move is over: MPI_Test knows it at once, MPI_Testsome when it is called
 * again. */
static int poll_single(void) {
  int is_over = 0;
  int code = MPI_Test(moves.requests, &is_over, MPI_STATUS_IGNORE);
  if (code) return fail("MPI_Test", code), -1;
  if (!is_over) return 0;
  moves.over[0] = moves.ids[0];
  moves.count = 0;
  return 1;
}

static int poll_moves(const int **over) {
  int done = 0;
  if (!moves.count) return 0;
  if (grow_results()) return -1;
  *over = moves.over;
  if (moves.count == 1) return poll_single();
  int code = MPI_Testsome(moves.count, moves.requests, &done, moves.places, MPI_STATUSES_IGNORE);
  if (code) return fail("MPI_Testsome", code), -1;
  if (done <= 0) return 0; /* or MPI_UNDEFINED, which is negative */
  for (int i = 0; i < done; i++) moves.over[i] = moves.ids[moves.places[i]];
  compact();
  return done;
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
                                 .poll = poll_moves,
                                 .leave = leave};
  return &api;
}
