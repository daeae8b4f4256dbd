/* ranks/transport.h - how the ranks of a job are connected, and how bytes move between them.
 *
 *   socket/      Unix sockets of a folder, and TCP between hosts
 *   mpi/         messages of MPI, by a library that is opened when it is wanted
 *
 * The rest of this folder is common: messages and their heads, queues, ports, calls of all ranks,
 * heartbeats. A transport moves the bytes of messages, in order, between each pair of ranks. All of
 * its functions are called by the net's thread, but those that say otherwise. */
#ifndef GP_RANKS_TRANSPORT_H
#define GP_RANKS_TRANSPORT_H

#include <sys/types.h>

#include "ranks/net.h"

/* A move that has not happened yet, and one that never will. */
enum { GP_MOVE_LATER = 0, GP_MOVE_NEVER = -1 };

/* Bytes that are moved at most in one call: both sides cut a message into pieces of this size,
 * because MPI counts messages, not bytes. */
enum { GP_MOVE_MOST = 1 << 20 };

struct gp_transport {
  const char *name;
  bool any_thread;    /* messages are sent by the thread that has them */
  bool gives_up;      /* opening ends by itself if a rank does not come */
  bool ends_together; /* a process may end when all have said that they do */
  /* Connect to all other ranks and shake hands with them. Collective. */
  gp_status (*open)(gp_net *net);
  /* Sleep until something may move, or as long as that, and move it: call gp_peer_flush and
   * gp_peer_receive. */
  void (*serve)(gp_net *net, int64_t most_ns);
  /* Send what the connection takes of the peer's queue, and pop what is sent. Called with the
   * peer's lock, by any thread with any_thread. Marks the peer as broken if it takes nothing any
   * more. */
  void (*flush)(gp_peer *peer);
  /* Receive some bytes, at most so many. A transport that says LATER may still write to them: it
   * sets peer->receiving until it is done, and is called again with the same. */
  ssize_t (*receive)(gp_peer *peer, char *to, size_t bytes);
  /* Wake the thread from `serve`; any thread. */
  void (*wake)(gp_net *net);
  /* Move nothing to or from this peer any more; any thread. */
  void (*cut)(gp_net *net, gp_peer *peer);
  /* The last call. clean: all ranks have said that they end. */
  void (*close)(gp_net *net, bool clean);
};

extern const gp_transport gp_transport_unix, gp_transport_tcp;
/* Find MPI's library. Errors: GP_EUNSUPPORTED with the reason. */
gp_status gp_transport_find_mpi(const gp_transport **transport);

#endif
