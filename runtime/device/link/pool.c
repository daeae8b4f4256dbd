/* device/link/pool.c - lanes and outboxes that the links of one plan share.
 *
 * A device that cannot fetch from another one gets an extra lane on that device, which brings
 * values to host memory. One such courier serves all edges between the two devices, because a lane
 * is expensive (streams, library handles). */
#include <stdlib.h>

#include "base/memory.h"
#include "device/link/pool.h"

typedef struct courier {
  const gp_lane *from, *to; /* the lanes that it serves: borrowed */
  gp_lane lane;
} courier;

typedef struct sender {
  const gp_lane *lane; /* borrowed */
  gp_outbox *outbox;
} sender;

typedef struct way {
  const gp_lane *from, *to; /* borrowed */
  gp_wire *wire;
} way;

struct gp_link_pool {
  courier **couriers;
  size_t count;
  sender *senders;
  size_t sender_count;
  way *ways;
  size_t way_count;
};

gp_status gp_link_pool_new(gp_link_pool **pool) { return gp_alloc(sizeof **pool, (void **)pool); }

void gp_link_pool_free(gp_link_pool *pool) {
  for (size_t i = 0; pool && i < pool->count; i++) {
    gp_lane_close(&pool->couriers[i]->lane);
    gp_free(pool->couriers[i]);
  }
  for (size_t i = 0; pool && i < pool->sender_count; i++) gp_outbox_free(pool->senders[i].outbox);
  for (size_t i = 0; pool && i < pool->way_count; i++) gp_wire_free(pool->ways[i].wire);
  if (pool) gp_free(pool->ways);
  if (pool) gp_free(pool->couriers);
  if (pool) gp_free(pool->senders);
  gp_free(pool);
}

static gp_status add(gp_link_pool *pool, const gp_lane *from, const gp_lane *to) {
  size_t n = pool->count;
  courier *made;
  gp_lane_options options = {.threads = 1};
  GP_TRY(gp_resize_array(n, n + 1, sizeof(courier *), (void **)&pool->couriers));
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->from = from;
  made->to = to;
  gp_status status = gp_lane_open(from->name, &options, &made->lane);
  if (status) return gp_free(made), status;
  pool->couriers[pool->count++] = made;
  return GP_OK;
}

gp_status gp_link_pool_courier(gp_link_pool *pool, const gp_lane *from, const gp_lane *to,
                               const gp_lane **lane) {
  for (size_t i = 0; i < pool->count; i++)
    if (pool->couriers[i]->from == from && pool->couriers[i]->to == to)
      return *lane = &pool->couriers[i]->lane, GP_OK;
  GP_TRY(add(pool, from, to));
  *lane = &pool->couriers[pool->count - 1]->lane;
  return GP_OK;
}

/* ---- wires ----------------------------------------------------------------------------------- */

gp_status gp_link_pool_wire(gp_link_pool *pool, const gp_lane *from, const gp_lane *to, bool sends,
                            gp_wire **wire) {
  const size_t n = pool->way_count;
  for (size_t i = 0; i < n; i++)
    if (pool->ways[i].from == from && pool->ways[i].to == to)
      return *wire = pool->ways[i].wire, GP_OK;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(way), (void **)&pool->ways));
  GP_TRY(gp_wire_new(sends ? from : to, sends, wire));
  pool->ways[pool->way_count++] = (way){from, to, *wire};
  return GP_OK;
}

/* ---- outboxes -------------------------------------------------------------------------------- */

static gp_outbox *find_outbox(const gp_link_pool *pool, const gp_lane *lane) {
  for (size_t i = 0; i < pool->sender_count; i++)
    if (pool->senders[i].lane == lane) return pool->senders[i].outbox;
  return NULL;
}

gp_status gp_link_pool_outbox(gp_link_pool *pool, const gp_lane *lane, gp_outbox **outbox) {
  const size_t n = pool->sender_count;
  *outbox = find_outbox(pool, lane);
  if (*outbox) return GP_OK;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(sender), (void **)&pool->senders));
  GP_TRY(gp_outbox_new(lane, outbox));
  pool->senders[pool->sender_count++] = (sender){lane, *outbox};
  return GP_OK;
}

gp_status gp_link_pool_flush(gp_link_pool *pool, const gp_lane *lane) {
  gp_outbox *outbox = find_outbox(pool, lane);
  return outbox ? gp_outbox_flush(outbox) : GP_OK;
}
