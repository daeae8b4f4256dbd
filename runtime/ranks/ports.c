/* ranks/ports.c - where messages for links and pipelines go: an array of ports, ascending by
 * number. */
#include <string.h>

#include "base/memory.h"
#include "ranks/net.h"

/* The place of the first port with at least this number. */
static size_t place_of(const gp_net *net, uint64_t number) {
  size_t low = 0, high = net->port_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (net->ports[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

gp_port *gp_port_find(gp_net *net, uint64_t number) {
  const size_t place = place_of(net, number);
  return place < net->port_count && net->ports[place].number == number ? &net->ports[place] : NULL;
}

void gp_ports_tell(gp_net *net, const char *text) {
  for (size_t i = 0; i < net->port_count; i++)
    if (net->ports[i].gone) net->ports[i].gone(net->ports[i].context, text);
}

void gp_ports_lock(void) { pthread_mutex_lock(&gp_net_get()->lock); }
void gp_ports_unlock(void) { pthread_mutex_unlock(&gp_net_get()->lock); }

gp_status gp_ports_add(const gp_port *port) {
  gp_net *net = gp_net_get();
  pthread_mutex_lock(&net->lock);
  gp_status status =
      gp_grow_array(net->port_count, &net->port_room, sizeof *net->ports, (void **)&net->ports);
  if (!status) {
    const size_t place = place_of(net, port->number);
    gp_port *at = &net->ports[place];
    memmove(at + 1, at, (net->port_count - place) * sizeof *at);
    *at = *port;
    net->port_count++;
  }
  pthread_mutex_unlock(&net->lock);
  return status;
}

static bool receives_for(const gp_peer *peer, uint64_t number) {
  const uint32_t kind = peer->in.kind;
  return peer->in_done >= sizeof peer->in && peer->in.port == number &&
         (kind == GP_RANK_VALUE || kind == GP_RANK_CREDIT || kind == GP_RANK_SHARE ||
          kind == GP_RANK_FAILURE);
}

/* Let the rest of a message that is being received for the port go nowhere. What a library writes
 * to just now is waited for. */
static void stop_receiving(gp_net *net, gp_peer *peer, uint64_t number) {
  while (receives_for(peer, number) && peer->receiving && peer->state != GP_PEER_GONE)
    pthread_cond_wait(&net->came, &net->lock);
  if (receives_for(peer, number)) peer->in_data = NULL;
}

void gp_ports_close(uint64_t number) {
  gp_net *net = gp_net_get();
  if (!net) return;
  pthread_mutex_lock(&net->lock);
  gp_port *at = gp_port_find(net, number);
  if (at) {
    memmove(at, at + 1, (size_t)(net->ports + net->port_count - at - 1) * sizeof *at);
    net->port_count--;
  }
  for (int32_t r = 0; r < net->job.info.count; r++) stop_receiving(net, &net->peers[r], number);
  pthread_mutex_unlock(&net->lock);
}

void gp_ports_remove(uint64_t number) {
  gp_ports_close(number);
  gp_ranks_withdraw(number);
}

/* A rank that has gone another way may have taken more numbers than the others, so all take the one
 * behind the largest. */
gp_status gp_ranks_number(const char *what, uint64_t *number) {
  static uint32_t last; /* collective calls are made by one thread */
  gp_rank_pieces all;
  GP_TRY(gp_ranks_gather(what, 0, &last, sizeof last, &all));
  for (int r = 0; r < all.count; r++) {
    uint32_t theirs = 0;
    if (all.bytes[r] == sizeof theirs) memcpy(&theirs, all.data[r], sizeof theirs);
    if (theirs > last) last = theirs;
  }
  gp_rank_pieces_free(&all);
  *number = ++last;
  return GP_OK;
}
