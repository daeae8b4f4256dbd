/* gpipe/ranks.h - the processes of one job, and what they tell each other. See gpipe.h for what
 * holds everywhere.
 *
 * A job has `count` ranks, which all run the same script. They are connected pairwise, by sockets
 * or by MPI, once one of them needs another. Collective calls are made by every rank in the same
 * order; a rank that makes another call, ends or dies lets them fail on all the others.
 *
 * Threads: the script's. */
#ifndef GP_PUBLIC_RANKS_H
#define GP_PUBLIC_RANKS_H

#include "gpipe/status.h"

typedef struct gp_rank_info {
  int rank, count;      /* of the job; 0 and 1 without one */
  int local;            /* among the ranks of this host */
  bool one_host;        /* all ranks are on this host, as far as the launcher says */
  const char *launcher; /* its name for messages; "" without a job. Lives for ever */
  char host[64];
} gp_rank_info;

/* Read what the launcher has put into the environment. Errors: GP_EINVAL where that contradicts
 * itself. */
gp_status gp_ranks_info(gp_rank_info *info);

/* What each rank has given, by rank. */
typedef struct gp_rank_pieces {
  int count;
  char **data; /* data[r] is aligned for any type; NULL if bytes[r] is 0 */
  size_t *bytes;
} gp_rank_pieces;

/* Bytes of the name of a call, and of a position in a script, their ends included. */
enum { GP_RANKS_WHAT = 32, GP_RANKS_WHERE = 36 };

/* Name what the script calls just now, and where: "pipe:step", "train.lua:12". Other ranks show it
 * if they are elsewhere. Both are copied, and cut if they are long; "": nothing. Threads: the
 * script's. */
void gp_ranks_name_call(const char *name, const char *where);

/* Collect a piece from every rank, also its own; connects the job if nothing has before. what: the
 * name of the call for messages, shorter than GP_RANKS_WHAT; every rank has to make the same one.
 * seconds: how long to wait for the others, also after Ctrl-C; 0: until they come, or Ctrl-C, or
 * the script of one has stayed away for the limit (gp_ranks_set_limit). Collective. Errors:
 * GP_ESTATE if a rank makes another call, GP_EDEVICE if one has ended, is gone or stays away,
 * GP_ETIMEOUT, GP_EINTERRUPT. */
gp_status gp_ranks_gather(const char *what, double seconds, const void *own, size_t bytes,
                          gp_rank_pieces *pieces);
/* The same, where only some ranks get the piece of this one: to[ranks]; the others get an empty
 * one. */
gp_status gp_ranks_hand(const char *what, const bool *to, const void *own, size_t bytes,
                        gp_rank_pieces *pieces);
void gp_rank_pieces_free(gp_rank_pieces *pieces); /* frees what it holds, not the struct */

/* For how many seconds the script of another rank may stay away from a call that this one is in; 0:
 * for ever, as before the first call. A rank that is in another call of all ranks, and works, has
 * twice as long. Returns what it was. Errors: GP_ERANGE. */
gp_status gp_ranks_set_limit(double seconds, double *before);

/* How the thread of the messages reaches the script's. It calls these, and they must not wait. */
typedef struct gp_rank_script {
  void (*locate)(void);          /* have the script's line noted by gp_ranks_note_line */
  void (*stop)(const char *why); /* raise this as an error in the script; kept */
  void (*end)(const char *why);  /* end the process: its script does not stop */
} gp_rank_script;
void gp_ranks_set_script(const gp_rank_script *script); /* borrowed for ever */
/* The line is copied, and cut if it is long. Threads: the script's. */
void gp_ranks_note_line(const char *line);

/* Tell all other ranks a text, which they get by gp_ranks_listen: what was typed at this one. The
 * calls before it are over, also those that only some ranks have made. Errors: GP_EDEVICE if a rank
 * has ended or is gone. */
gp_status gp_ranks_dictate(const char *text, size_t bytes);
/* Wait for the next text of a rank, whatever else that has sent before; Ctrl-C does not end it. The
 * caller frees the text with gp_rank_text_free. Errors: GP_EDEVICE if the rank has ended or is
 * gone. */
gp_status gp_ranks_listen(int from, char **text, size_t *bytes);
void gp_rank_text_free(char *text);

/* For the launcher: note in the job's folder that a rank has ended, and how ("has ended with exit
 * code 3"), for those that still wait for it to connect. Errors: GP_EIO. */
gp_status gp_ranks_note_end(const char *folder, int rank, const char *how);

/* By what the ranks are connected: "unix", "tcp", "mpi"; "" before they are. */
const char *gp_ranks_transport(void);
/* The file of the MPI plugin; false: this build has none. Does not open it. */
bool gp_ranks_find_mpi(char *path, size_t size);
/* What was refused while they connected, for people; "": nothing. */
const char *gp_ranks_remark(void);
/* The exit code of a run that wants to be started again (EX_TEMPFAIL). */
enum { GP_RANKS_AGAIN = 75 };
/* Is a rank gone that had not said that it ends: was it killed, stopped, or cut off? Or was the
 * last run given up because a device of one of them hangs? */
bool gp_ranks_are_lost(void);
/* Say whether there is a checkpoint from which the job can go on. The launcher hears it, too: a
 * rank that is killed cannot end with GP_RANKS_AGAIN. Threads: the script's. */
void gp_ranks_note_checkpoint(bool there);
bool gp_ranks_can_go_on(void);
/* What the launcher hears of each rank, from a socket whose other end has the number in this
 * variable. */
#define GP_RANKS_NOTES "GPIPE_RANKS_NOTES"
typedef struct gp_rank_note {
  int32_t rank, goes_on;
} gp_rank_note;
/* A number that is the same on all ranks of a job, and another for the next one where the launcher
 * tells jobs apart; 0 without a job. */
uint64_t gp_ranks_seed(void);

/* How the way between two ranks is measured: rounds of a burst of messages and an answer. */
typedef struct gp_rank_probe_spec {
  int from, to; /* ranks */
  size_t bytes; /* of a message */
  int burst, rounds;
  double precision; /* of the mean: rounds end once its standard error is this part of it; 0: all */
  double most;      /* seconds; then they end as well, where a precision is asked for */
  double work;      /* seconds of more rounds, beside threads that compute; 0: none */
} gp_rank_probe_spec;

typedef struct gp_rank_probe {
  double seconds; /* the shortest round: from the first message to the answer */
  double offset;  /* how many seconds the clock of `to` is ahead of that of `from`, to within half
                     of that round */
  double mean;    /* seconds of a round: lost packets and other delays count */
  double work;    /* seconds of a round, at both ends: that it takes from threads that compute on
                     the cores of this process; without such rounds those that the process works, or
                     0 where a thread that waits for messages asks again and again. 0 through
                     memory */
} gp_rank_probe;

/* Measure the way of messages from one rank to another; *probe receives the figures on rank
 * `from`, zeros on the others, but for `work`. Collective. Errors: as gp_ranks_gather; GP_EINVAL
 * for ranks that are none. */
gp_status gp_ranks_probe(const gp_rank_probe_spec *spec, gp_rank_probe *probe);
/* The same for the way that values of a pipeline take between CPU devices: the memory that two
 * ranks of one host share, and messages elsewhere (device/link/ranks/probe.c). */
gp_status gp_link_probe(const gp_rank_probe_spec *spec, gp_rank_probe *probe);

/* Fails if a rank has ended or is gone. Threads: any. Errors: GP_EDEVICE with its name. */
gp_status gp_ranks_check(void);

/* Note the error that ends this process: the other ranks will show it. */
void gp_ranks_note_failure(const char *text);
/* Tell the others that this process ends, with its exit code; -1: unknown. After an error that was
 * noted before this rank has joined its job it joins, for two seconds at most. Else it does nothing
 * without connections; the end of the process does the same with -1. Returns whether the process
 * should end without cleaning up (_exit), because the library that moves messages may hang. */
bool gp_ranks_leave(int code);

#endif
