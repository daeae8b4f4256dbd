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

void gp_ports_remove(uint64_t number) {
  gp_net *net = gp_net_get();
  if (!net) return;
  pthread_mutex_lock(&net->lock);
  gp_port *at = gp_port_find(net, number);
  if (at) {
    memmove(at, at + 1, (size_t)(net->ports + net->port_count - at - 1) * sizeof *at);
    net->port_count--;
  }
  /* the rest of a message that is being received for it goes nowhere */
  for (int32_t r = 0; r < net->job.info.count; r++) {
    gp_peer *peer = &net->peers[r];
    if (peer->in_done >= sizeof peer->in && peer->in.port == number &&
        peer->in.kind != GP_RANK_PIECE && peer->in.kind != GP_RANK_END)
      peer->in_data = NULL;
  }
  pthread_mutex_unlock(&net->lock);
  gp_ranks_withdraw(number);
}

uint64_t gp_ranks_number(void) {
  static _Atomic uint32_t last;
  return atomic_fetch_add(&last, 1) + 1;
}
