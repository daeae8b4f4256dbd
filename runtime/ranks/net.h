/* ranks/net.h - what a process knows of its connections.
 *
 * One thread of ours reads all sockets and writes what a sender could not. Two kinds of locks: the
 * net's guards what is read (ports, pieces, states of peers); each peer has one for what is sent.
 * Whoever holds a peer's lock takes no other. */
#ifndef GP_RANKS_NET_H
#define GP_RANKS_NET_H

#include <pthread.h>
#include <stdatomic.h>

#include "ranks/job.h"
#include "ranks/ranks.h"

enum { GP_RANK_TEXT = 400 };

/* A message to be sent. */
typedef struct gp_rank_outgoing {
  gp_rank_message head;
  const char *payload;
  bool owned; /* the payload is freed when it is sent */
} gp_rank_outgoing;

/* The messages that wait for a socket: a ring. */
typedef struct gp_rank_queue {
  gp_rank_outgoing *list;
  size_t room, first, count;
  size_t done; /* bytes of the first one that are sent */
} gp_rank_queue;

/* A piece of a collective call that has come. */
typedef struct gp_rank_piece {
  struct gp_rank_piece *next;
  gp_rank_message head;
  char *data;
} gp_rank_piece;

typedef enum gp_peer_state { GP_PEER_OPEN, GP_PEER_ENDED, GP_PEER_GONE } gp_peer_state;

typedef struct gp_peer {
  int32_t rank;
  int socket; /* -1: it is this process */
  long process;
  /* under the net's lock */
  gp_peer_state state;
  char text[GP_RANK_TEXT];     /* why it is no longer open */
  gp_rank_message in;          /* the message that is being received */
  size_t in_done;              /* bytes of it so far, with its head */
  char *in_data;               /* where its payload goes; NULL: nowhere */
  gp_rank_piece *piece;        /* if it is a piece */
  gp_rank_piece *first, *last; /* pieces that have come, in order */
  /* under its own lock */
  pthread_mutex_t lock;
  gp_rank_queue out;
  bool broken; /* the socket takes nothing any more */
} gp_peer;

typedef struct gp_net {
  gp_rank_job job;
  gp_peer *peers; /* per rank */
  pthread_t thread;
  int news; /* eventfd: the thread looks again for what is to be sent, or ends */
  _Atomic uint32_t ends;
  pthread_mutex_t lock;
  pthread_cond_t came; /* a piece has come, or a peer is no longer open */
  gp_port *ports;      /* ascending by number */
  size_t port_count, port_room;
  int32_t culprit; /* the first peer that was no longer open; -1: none */
  uint32_t calls;  /* collective calls so far */
} gp_net;

/* The net of this process; NULL before gp_ranks_join. */
gp_net *gp_net_get(void);
gp_net *gp_net_place(void); /* the same, also before it is connected */

/* Start the thread, once all peers are connected. */
gp_status gp_net_start(gp_net *net);
/* Let the thread look at what is to be sent. */
void gp_net_wake(gp_net *net);
/* leave.c: let the end of the process call gp_ranks_leave. */
void gp_ranks_leave_at_exit(void);

/* send.c: send what the socket takes; returns whether something is left. Call with the peer's
 * lock. */
bool gp_peer_flush(gp_peer *peer);
/* Copy the payloads of a port that are not sent yet: their owner wants the memory back. */
void gp_ranks_keep(uint64_t port);
/* receive.c: read what has come, a part of it if there is much. Call with the net's lock. */
void gp_peer_receive(gp_net *net, gp_peer *peer);
/* ports.c: the port with this number, or NULL; and tell all ports that a peer is no longer open.
 * Call with the net's lock. */
gp_port *gp_port_find(gp_net *net, uint64_t number);
void gp_ports_tell(gp_net *net, const char *text);

#endif
