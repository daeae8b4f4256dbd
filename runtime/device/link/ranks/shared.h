/* device/link/ranks/shared.h - memory that two processes of one host share: the slots of a link
 * between them.
 *
 * The reader makes it and offers it; the maker opens it by the reader's process and descriptor. The
 * kernel frees it when both are gone, so a process that is killed leaves nothing behind. */
#ifndef GP_DEVICE_LINK_SHARED_H
#define GP_DEVICE_LINK_SHARED_H

#include "base/status.h"

typedef struct gp_shared gp_shared;

/* What the other process has to know. */
typedef struct gp_shared_offer {
  int32_t process, file;
  uint64_t bytes;
  unsigned char mark[16]; /* stands in the memory: tells it from any other */
} gp_shared_offer;

/* Make memory for so many bytes. Errors: GP_EIO, GP_ENOMEM. */
gp_status gp_shared_new(size_t bytes, gp_shared **shared);
gp_shared_offer gp_shared_offer_of(const gp_shared *shared);
/* Open what was offered, which must have so many bytes. Errors: GP_EIO if it is not there. */
gp_status gp_shared_open(const gp_shared_offer *offer, size_t bytes, gp_shared **shared);
/* The other process has opened it: the descriptor is needed no longer. */
void gp_shared_seal(gp_shared *shared);
void gp_shared_free(gp_shared *shared); /* NULL is fine */

char *gp_shared_data(const gp_shared *shared); /* aligned to a page */

#endif
