/* device/link/pool.c - lanes that the links of one plan share.
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

struct gp_link_pool {
  courier **couriers;
  size_t count;
};

gp_status gp_link_pool_new(gp_link_pool **pool) { return gp_alloc(sizeof **pool, (void **)pool); }

void gp_link_pool_free(gp_link_pool *pool) {
  for (size_t i = 0; pool && i < pool->count; i++) {
    gp_lane_close(&pool->couriers[i]->lane);
    gp_free(pool->couriers[i]);
  }
  if (pool) gp_free(pool->couriers);
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
