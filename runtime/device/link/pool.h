/* device/link/pool.h - lanes for links: who fetches for others. The links of one plan share
 * them. */
#ifndef GP_DEVICE_LINK_POOL_H
#define GP_DEVICE_LINK_POOL_H

#include "device/link/link.h"

/* Made before the links that take lanes of it, and freed after them. */
gp_status gp_link_pool_new(gp_link_pool **pool);
void gp_link_pool_free(gp_link_pool *pool);
/* A second lane on the device of `from`, for the worker of `to` alone; opened when first asked
 * for. */
gp_status gp_link_pool_courier(gp_link_pool *pool, const gp_lane *from, const gp_lane *to,
                               const gp_lane **courier);

#endif
