/* ranks/socket/socket.h - ranks that are connected by stream sockets.
 *
 *   hello.c      the handshake
 *   meet.c       calls and answers until all ranks are connected
 *   unix.c       where they find each other: sockets in the folder of a job on one host
 *   tcp.c        the same between hosts: rank 0 listens, and tells all where the others do
 *   interface.c  by which of its addresses a host takes part
 *   stream.c     how bytes move once they are connected */
#ifndef GP_RANKS_SOCKET_H
#define GP_RANKS_SOCKET_H

#include <sys/socket.h>

#include "ranks/net.h"

typedef struct gp_meeting gp_meeting;

/* ---- hello.c --------------------------------------------------------------------------------- */

/* The one that answers speaks first, with a number that was never used; the one that calls proves
 * with it that it knows the job's key, and wants the same proof. The key is never sent. */
typedef struct gp_challenge {
  char magic[8];
  uint32_t protocol;
  uint32_t order; /* of bytes: 1 */
  unsigned char nonce[16];
} gp_challenge;

typedef enum gp_verdict {
  GP_HELLO_GOOD,
  GP_HELLO_KEY,     /* another key: a process of another job, or of none */
  GP_HELLO_VERSION, /* of gpipe-lua */
  GP_HELLO_SIZE,    /* of the job, or a rank that it does not have */
  GP_HELLO_TWICE    /* this rank is connected already */
} gp_verdict;

typedef struct gp_hello {
  char magic[8];
  uint32_t protocol, verdict; /* verdict: only in the answer */
  int32_t rank, count, process;
  char version[24], host[64];
  char address[64]; /* where this rank listens; "": where everybody knows */
  unsigned char nonce[16], proof[32];
} gp_hello;

gp_challenge gp_challenge_new(void);
gp_hello gp_hello_new(const gp_net *net, const char *address);
/* Write the proof that the hello's sender knows the key, for a nonce of the other side. */
void gp_hello_sign(const gp_net *net, const unsigned char nonce[16], gp_hello *hello);
/* Look at the other side's hello; called by the one that answers. */
gp_verdict gp_hello_judge(const gp_net *net, const unsigned char nonce[16], const gp_hello *hello);
/* Say why the other side refuses this one, or is none of this job. Returns GP_OK if all is good. */
gp_status gp_hello_check_challenge(const gp_challenge *challenge, const char *where);
gp_status gp_hello_check_answer(const gp_net *net, const unsigned char nonce[16],
                                const gp_hello *answer, const char *where);
/* What the one that answers says about a call that it has refused. */
const char *gp_verdict_text(gp_verdict verdict);

/* ---- meet.c ---------------------------------------------------------------------------------- */

typedef struct gp_address {
  struct sockaddr_storage at;
  socklen_t length;
  char text[GP_RANK_NAME]; /* for people */
} gp_address;

/* How ranks find each other. */
typedef struct gp_finder {
  /* Listen: m->listener and m->address. */
  gp_status (*listen)(gp_meeting *m);
  /* Where a rank below this one listens; false: that is not known yet. */
  bool (*find)(const gp_meeting *m, int32_t rank, gp_address *address);
  /* Go on with what else is to be told; *done: nothing is missing. Optional. */
  gp_status (*tell)(gp_meeting *m, bool *done);
  void (*tune)(int socket);     /* set a connection's options */
  void (*close)(gp_meeting *m); /* optional */
} gp_finder;

enum { GP_MOST_ANSWERS = 64 }; /* calls that are answered at a time */

/* A call that is being answered. */
typedef struct gp_answer {
  int socket; /* -1: none */
  size_t done;
  int64_t end; /* gp_now_ns */
  gp_challenge challenge;
  gp_hello hello;
  char from[64];
} gp_answer;

struct gp_meeting {
  gp_net *net;
  const gp_finder *finder;
  int listener;
  char address[64];      /* of this rank, for the others */
  char (*addresses)[64]; /* per rank: from their hellos, or from rank 0 */
  int64_t end;           /* gp_now_ns, after which the others are waited for no longer */
  double seconds;        /* the same, from the beginning */
  size_t told;           /* bytes of the table of addresses that have come */
  gp_answer answers[GP_MOST_ANSWERS];
  int32_t refused;        /* calls that were refused */
  char last_refused[256]; /* the last of them */
  char last_fault[256];   /* why the last call of this rank came to nothing */
};

/* Connect the net's peers. */
gp_status gp_meet(gp_net *net, const gp_finder *finder);
/* Make m->listener, which is not bound yet. Errors: GP_EIO. */
gp_status gp_meeting_listener(gp_meeting *m, int family);
/* Send or receive all bytes, at most until m->end; false: the connection is of no use. */
bool gp_socket_move_all(int socket, void *data, size_t bytes, bool sends, int64_t end);

/* ---- interface.c ----------------------------------------------------------------------------- */

/* Look a name up. Errors: GP_EIO. */
gp_status gp_address_find(const char *host, int port, gp_address *address);
/* The same address with another port; and "10.0.0.1:4711" or "[fe80::1]:4711" as an address. */
void gp_address_set_port(gp_address *address, int port);
bool gp_address_parse(const char *text, gp_address *address);
/* The address by which this host takes part: that of GPIPE_INTERFACE, else the one from which the
 * master is reached. Errors: GP_EINVAL, GP_EIO. */
gp_status gp_interface_choose(const gp_rank_job *job, const gp_address *master, gp_address *own);

/* Where rank 0 is to be called. A host's own name may stand for loopback there: then rank 0 is on
 * this host, and listens at the address that it would choose. Errors: as above. */
gp_status gp_master_find(const gp_rank_job *job, gp_address *master);

/* ---- stream.c -------------------------------------------------------------------------------- */

gp_status gp_stream_open(gp_net *net); /* once all peers are connected */
void gp_stream_serve(gp_net *net, int64_t most_ns);
void gp_stream_flush(gp_peer *peer);
ssize_t gp_stream_receive(gp_peer *peer, char *to, size_t bytes);
void gp_stream_wake(gp_net *net);
void gp_stream_cut(gp_net *net, gp_peer *peer);
void gp_stream_close(gp_net *net, bool clean);

/* What is the same in all transports of stream sockets. */
#define GP_STREAM_MOVES                                                                            \
  .any_thread = true, .gives_up = true, .serve = gp_stream_serve, .flush = gp_stream_flush,        \
  .receive = gp_stream_receive, .wake = gp_stream_wake, .cut = gp_stream_cut,                      \
  .close = gp_stream_close

#endif
