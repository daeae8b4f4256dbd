/* ranks/ranks.h - messages between the processes of a job, for the levels above.
 *
 *   job/         which process of which job this is
 *   join.c       how the connections are made: by which transport
 *   transport.h  what a transport is; socket/ and mpi/ have them
 *   net.h        what a process knows of its connections
 *   send.c       messages that go out
 *   receive.c    messages that come in
 *   net.c        the thread that moves both
 *   heartbeat.c  signs of life
 *   ports.c      where messages for links and pipelines go
 *   probe.c      how fast is the way between two ranks?
 *   gather.c     calls that all ranks make together
 *   place.c      where a rank is, in words
 *   stray.c      is another rank in another call?
 *   script.c     what the script of this rank does, while the others wait for it
 *   absent.c     whose script does not come to a call?
 *   leave.c      how a process ends */
#ifndef GP_RANKS_H
#define GP_RANKS_H

#include "base/status.h"
#include "gpipe/ranks.h"

/* What a message is about. */
typedef enum gp_rank_kind {
  GP_RANK_PIECE = 1, /* a piece of a collective call */
  GP_RANK_VALUE,     /* a value of an edge */
  GP_RANK_CREDIT,    /* a last use of a value: its slot may be written again */
  GP_RANK_FAILURE,   /* a run has failed */
  GP_RANK_END,       /* the rank ends */
  GP_RANK_BEAT,      /* it is alive; what it does */
  GP_RANK_SHARE,     /* memory for values, which both can reach */
  GP_RANK_ASK,       /* where is your script? The answer is a heartbeat */
  GP_RANK_GIVE_UP    /* your script has not come for too long: the job goes on without you */
} gp_rank_kind;

/* Where a rank is: in which call of all ranks or which run, and what its script has called. */
typedef struct gp_rank_place {
  char what[GP_RANKS_WHAT];
  char name[28], where[GP_RANKS_WHERE]; /* "": not known */
} gp_rank_place;

/* The head of a message, followed by `bytes` bytes. Numbers are as they are in memory: the
 * handshake refuses machines of another byte order. */
typedef struct gp_rank_message {
  uint32_t kind;
  int32_t slot;
  uint32_t run, round;
  uint64_t port;       /* whom it is for */
  uint64_t bytes;      /* that follow */
  gp_rank_place place; /* of who sends pieces and heartbeats */
} gp_rank_message;

/* This process's rank and how many there are, without an error: 0 of 1 where the environment makes
 * no sense, which gp_ranks_join reports. */
int32_t gp_ranks_own(void);
/* Note whether the watchdog has given up the last run, on the rank that all of them blame. */
void gp_ranks_note_hang(bool hangs);
int32_t gp_ranks_count(void);
/* Is the rank on a host of this name? Then both may share memory. */
bool gp_ranks_are_near(int32_t rank);
/* Connect to all other ranks, unless that was done. Collective. */
gp_status gp_ranks_join(void);

/* Fail on all ranks with the first rank's failure, if one of them brings one; the text names the
 * rank. text: of this rank's failure. Collective. */
gp_status gp_ranks_agree(const char *what, gp_status status, const char *text);

/* Say which run this rank is in until its next collective call, of a pipeline with this number: the
 * others learn it by heartbeats. "": none. */
void gp_ranks_note_pass(uint32_t owner, const char *what);
/* Is another rank in a call or a run that is not this one's, whose next collective call is `what`?
 * Then the text says in which. */
bool gp_ranks_find_stray(const char *what, char *text, size_t size);

typedef enum gp_rank_absence {
  GP_RANK_ALL_COME, /* each of them waits, or runs what this rank runs */
  GP_RANK_ASKED,    /* not known yet: ask again */
  GP_RANK_ABSENT    /* one was given up: it counts as gone */
} gp_rank_absence;

/* Does another rank's script stay away from the run that this one is in, whose next collective call
 * is `what`? To be asked when nothing has moved for so long. */
gp_rank_absence gp_ranks_find_absent(const char *what, int64_t quiet_ns);

/* ---- ports ---------------------------------------------------------------------------------- */

/* Where messages with one number go. The functions run on the thread of net.c, one at a time, while
 * no port is added or removed; they must not wait. */
typedef struct gp_port {
  uint64_t number;
  void *context;
  /* Where to put the bytes that follow; NULL: they are dropped. *expected receives how many there
   * must be. */
  void *(*room)(void *context, int32_t from, const gp_rank_message *message, uint64_t *expected);
  void (*arrived)(void *context, int32_t from, const gp_rank_message *message);
  /* A rank has ended or is gone; optional. */
  void (*gone)(void *context, const char *text);
  /* Say in a few words what is under way, or nothing; optional. */
  void (*words)(void *context, char *text, size_t size);
} gp_port;

/* Add a port (copied). The number must be new; gp_ranks_number makes numbers that are the same on
 * all ranks. */
gp_status gp_ports_add(const gp_port *port);
/* Remove it: nothing is written to its room any more, and nothing more is read for it. Its messages
 * that are not under way yet are dropped. */
void gp_ports_remove(uint64_t number);
/* The same, but its messages are still sent: all of them are copies (gp_ranks_send_copy). */
void gp_ports_close(uint64_t number);
/* Make a number below 2^32, never 0. Collective, under the name `what`. */
gp_status gp_ranks_number(const char *what, uint64_t *number);

/* Keep the thread of net.c from calling ports meanwhile. */
void gp_ports_lock(void);
void gp_ports_unlock(void);

/* ---- messages ------------------------------------------------------------------------------- */

/* Send a message, or queue it where the connection takes no more. payload: message->bytes bytes,
 * which stay as they are until the other side has answered. Never waits. Threads: any. */
gp_status gp_ranks_send(int32_t to, const gp_rank_message *message, const void *payload);
/* The same with a copy of the payload. */
gp_status gp_ranks_send_copy(int32_t to, const gp_rank_message *message, const void *payload);
/* Forget the messages of a port that were not sent yet: their payload may go away. */
void gp_ranks_withdraw(uint64_t port);

#endif
