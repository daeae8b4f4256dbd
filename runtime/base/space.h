/* base/space.h - a memory space that the host cannot read: that of a GPU.
 *
 * Tensors know their space and nothing else of devices: values are brought to the host to be read
 * and taken back to be changed. device/ makes spaces, one for each GPU, and they stay until the
 * last tensor in them is gone. All functions wait for what was enqueued before and return when they
 * are done. Threads: any, one at a time per space. */
#ifndef GP_BASE_SPACE_H
#define GP_BASE_SPACE_H

#include "base/status.h"

typedef struct gp_space gp_space;
struct gp_space {
  char name[32];                                                    /* "cuda:0" */
  gp_status (*alloc)(gp_space *space, size_t bytes, void **memory); /* zeroed, 256-byte aligned */
  void (*free)(gp_space *space, void *memory, size_t bytes);
  /* The same for memory that is written before it is read: its bytes are any. It need not be new,
   * and its end need not free it. */
  gp_status (*room)(gp_space *space, size_t bytes, void **memory);
  void (*leave)(gp_space *space, void *memory, size_t bytes);
  gp_status (*read)(gp_space *space, void *to, const void *from, size_t bytes);  /* to the host */
  gp_status (*write)(gp_space *space, void *to, const void *from, size_t bytes); /* from the host */
  gp_status (*zero)(gp_space *space, void *to, size_t bytes);
  gp_status (*copy)(gp_space *space, void *to, const void *from, size_t bytes); /* within it */
};

/* "cuda:0", or "cpu" for NULL. */
static inline const char *gp_space_name(const gp_space *space) {
  return space ? space->name : "cpu";
}

#endif
