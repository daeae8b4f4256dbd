/* device/link/ranks/queue/wired.h - the end of a rank's link whose values go by a wire (wire.h),
 * from the maker's slots to the reader's.
 *
 * Threads: those of the link; expect, want and abort: any. */
#ifndef GP_DEVICE_LINK_WIRED_H
#define GP_DEVICE_LINK_WIRED_H

#include "device/link/link.h"
#include "device/link/ranks/queue/wire.h"

typedef struct gp_wired_end gp_wired_end;

/* makes: the maker's end. */
gp_status gp_wired_new(const gp_link *link, bool makes, gp_wired_end **end);
void gp_wired_free(gp_wired_end *end); /* NULL is fine */
void gp_wired_abort(gp_wired_end *end);
/* Enqueue what waits; busy receives whether something still does. Errors: those of the library. */
gp_status gp_wired_poll(gp_wired_end *end, bool *busy);

/* The maker: connect with the reader's id, or note why it has none; ask whether values may go this
 * way; send one. */
void gp_wired_connect(gp_wired_end *end, const unsigned char *id, const char *why);
bool gp_wired_is_up(gp_wired_end *end);
gp_status gp_wired_send(gp_wired_end *end, int32_t slot);

/* The reader: its id, or NULL and why; connect as well; a value is under way; bring it. */
const unsigned char *gp_wired_id(const gp_wired_end *end, const char **why);
void gp_wired_want(gp_wired_end *end);
void gp_wired_expect(gp_wired_end *end, int32_t slot);
gp_status gp_wired_receive(gp_wired_end *end, int32_t slot, bool *ready);

#endif
