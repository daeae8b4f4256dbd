/* ranks/net.h - what a process knows of its connections.
 *
 * One thread of ours opens the transport, receives everything and sends what a sender could not.
 * Two kinds of locks: the net's guards what is read (ports, pieces, states of peers); each peer has
 * one for what is sent. A thread that holds a peer's lock takes no other. */
#ifndef GP_RANKS_NET_H
#define GP_RANKS_NET_H

#include <pthread.h>
#include <stdatomic.h>

#include "ranks/job/job.h"
#include "ranks/ranks.h"
#include "ranks/script.h"

typedef struct gp_transport gp_transport;

/* A message to be sent. */
typedef struct gp_rank_outgoing {
  gp_rank_message head;
  const char *payload;
  bool owned; /* the payload is freed when it is sent */
} gp_rank_outgoing;

/* The messages that wait to be sent: a ring. */
typedef struct gp_rank_queue {
  gp_rank_outgoing *list;
  size_t room, first, count;
  size_t done;  /* bytes of the first one that are sent */
  size_t begun; /* messages that a library reads from just now: the first ones */
} gp_rank_queue;

/* A piece of a collective call that has come. */
typedef struct gp_rank_piece {
  struct gp_rank_piece *next;
  gp_rank_message head;
  char *data;
} gp_rank_piece;

/* A run that a rank is in before its next collective call; place.what is "": none. */
typedef struct gp_rank_pass {
  uint32_t call, owner; /* the number of that call; of whom the run is */
  gp_rank_place place;
} gp_rank_pass;

typedef enum gp_peer_state { GP_PEER_OPEN, GP_PEER_ENDED, GP_PEER_GONE } gp_peer_state;

typedef struct gp_peer {
  int32_t rank;
  bool is_own; /* it is this process: there is no connection */
  int socket;  /* of the transports that have one; else -1 */
  long process;
  char host[64];
  /* under the net's lock */
  gp_peer_state state;
  char text[GP_RANK_TEXT];     /* why it is no longer open */
  int32_t in_code;             /* the exit code with which it has ended; -1: unknown */
  gp_rank_message in;          /* the message that is being received */
  size_t in_done;              /* bytes of it so far, with its head */
  char *in_data;               /* where its payload goes; NULL: nowhere */
  gp_rank_piece *piece;        /* if it is a piece */
  gp_rank_piece *first, *last; /* pieces that have come, in order */
  bool lost;                   /* it is gone without having said that it ends */
  int64_t heard;               /* when the last bytes came; gp_now_ns */
  bool has_spoken;             /* some have come */
  char words[GP_RANK_WORDS];   /* what it did when its last heartbeat came */
  int64_t words_at;            /* when that was; gp_now_ns */
  gp_rank_pass pass;           /* the same, for comparison */
  gp_rank_news news;
  bool receiving; /* the transport may write to in_data just now */
  /* under its own lock */
  pthread_mutex_t lock;
  pthread_cond_t sent; /* one of those that were begun is over */
  gp_rank_queue out;
  _Atomic uint32_t broken; /* the connection takes nothing any more */
} gp_peer;

typedef struct gp_net {
  gp_rank_job job;
  const gp_transport *transport;
  void *link;     /* the transport's own */
  gp_peer *peers; /* per rank */
  pthread_t thread;
  int news;                /* eventfd: something is to be sent, or the thread is to end */
  _Atomic uint32_t posted; /* counts messages that wait for the thread */
  _Atomic uint32_t ends;
  pthread_mutex_t lock;
  pthread_cond_t came; /* a piece has come, or a peer is no longer open, or the transport is */
  gp_port *ports;      /* ascending by number */
  size_t port_count, port_room;
  int32_t culprit;     /* the first peer that was no longer open; -1: none */
  uint32_t calls;      /* collective calls so far */
  gp_rank_place place; /* what the script has called; under the lock */
  const char *call;    /* the one under way, for heartbeats; NULL: none */
  int64_t call_begin;  /* gp_now_ns */
  gp_rank_pass pass;   /* the run under way, for heartbeats; under the lock */
  gp_rank_own_script script;
  _Atomic uint32_t asked; /* another rank waits for an answer: heartbeats are looked at often */
  gp_rank_absentees absentees;
  int64_t beat;            /* when the last heartbeats were sent */
  int64_t stood;           /* for how long the process has been stopped so far, in ns */
  int64_t silence_most_ns; /* a peer that is silent for longer is lost; 0: never */
  bool tried;              /* has this process begun to join? */
  bool hurried;            /* it ends, and joins only to say why */
  /* how opening has ended */
  bool opened;
  gp_status status;
  char why[1024];
  char remark[GP_RANK_TEXT]; /* connections that were refused meanwhile; "": none */
} gp_net;

/* The net of this process; NULL before gp_ranks_join. */
gp_net *gp_net_get(void);
gp_net *gp_net_place(void); /* the same, also before it is connected */

/* Start the thread, and wait until it has opened the transport. */
gp_status gp_net_start(gp_net *net);
/* Sleep until the condition is signalled, or for a moment: Ctrl-C rings no bell. Call with the
 * lock. */
void gp_net_doze(pthread_cond_t *came, pthread_mutex_t *lock);
/* Let the thread look at what is to be sent. */
void gp_net_wake(gp_net *net);
/* leave.c: let the end of the process call gp_ranks_leave. */
void gp_ranks_leave_at_exit(void);

/* send.c: a message of the queue, and the end of the first one. */
gp_rank_outgoing *gp_rank_queue_at(const gp_rank_queue *queue, size_t i);
void gp_rank_queue_pop(gp_rank_queue *queue);
/* Send what the connection takes; returns whether something is left. Call with the peer's lock. */
bool gp_peer_flush(gp_peer *peer);
/* The same, taking the lock. */
void gp_peer_serve(gp_peer *peer);
bool gp_peer_has_outgoing(gp_peer *peer);
/* Copy the payloads of a port that are not sent yet: their owner wants the memory back. */
void gp_ranks_keep(uint64_t port);
/* receive.c: read what has come, a part of it if there is much. Call with the net's lock. */
void gp_peer_receive(gp_net *net, gp_peer *peer);
/* Note that a peer is gone, and why; tell everything that may wait for it. Call with the net's
 * lock. */
void gp_peer_lose(gp_net *net, gp_peer *peer, const char *why);
/* Note that a peer is lost although its connection stands. Call with the net's lock. */
void gp_peer_give_up(gp_net *net, gp_peer *peer, const char *text);
/* stray.c: the piece that a rank has sent for the call with this number or a later one, or NULL. */
const gp_rank_piece *gp_peer_piece_of(const gp_peer *peer, uint32_t number);
/* heartbeat.c: send heartbeats if it is time, and look for peers that send none. Returns for how
 * many ns the thread may sleep. */
int64_t gp_net_beat(gp_net *net);
/* ports.c: the port with this number, or NULL; and tell all ports that a peer is no longer open.
 * Call with the net's lock. */
gp_port *gp_port_find(gp_net *net, uint64_t number);
void gp_ports_tell(gp_net *net, const char *text);

#endif
