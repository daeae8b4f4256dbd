/* device/link/pool.h - what the links of one plan share: couriers, which are lanes that fetch
 * values for other lanes, outboxes and wires. */
#ifndef GP_DEVICE_LINK_POOL_H
#define GP_DEVICE_LINK_POOL_H

#include "device/link/link.h"
#include "device/link/ranks/queue/outbox.h"
#include "device/link/ranks/queue/wire.h"

/* Make the pool before the links that take lanes from it, and free it after them. */
gp_status gp_link_pool_new(gp_link_pool **pool);
void gp_link_pool_free(gp_link_pool *pool);
/* Get a second lane on the device of `from`, which only the worker of `to` uses; it is opened at
 * the first call. */
gp_status gp_link_pool_courier(gp_link_pool *pool, const gp_lane *from, const gp_lane *to,
                               const gp_lane **courier);
/* Get the wire from one lane to the other, of which one is here; it is made at the first call. */
gp_status gp_link_pool_wire(gp_link_pool *pool, const gp_lane *from, const gp_lane *to, bool sends,
                            gp_wire **wire);
/* Get the outbox of a lane with a queue; it is made at the first call. */
gp_status gp_link_pool_outbox(gp_link_pool *pool, const gp_lane *lane, gp_outbox **outbox);
/* Wait until all is sent that the lane has posted. Errors: those of the device. */
gp_status gp_link_pool_flush(gp_link_pool *pool, const gp_lane *lane);

#endif
