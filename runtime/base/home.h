/* base/home.h - where the memory of a tensor lies when the host cannot read it: that of a GPU.
 *
 * Tensors know their home and nothing else of devices: values are brought to the host to be looked at
 * and taken back to be changed. device/ makes homes, one for each GPU, and they stay until every tensor
 * that lives there has gone. All functions wait for what was enqueued before and return when they are
 * done. Threads: any, one at a time per home. */
#ifndef GP_BASE_HOME_H
#define GP_BASE_HOME_H

#include "base/status.h"

typedef struct gp_home gp_home;
struct gp_home {
  char name[32];                                                  /* "cuda:0" */
  gp_status (*alloc)(gp_home *home, size_t bytes, void **memory); /* zeroed, 256-byte aligned */
  void (*free)(gp_home *home, void *memory, size_t bytes);
  gp_status (*read)(gp_home *home, void *to, const void *from, size_t bytes);  /* to the host */
  gp_status (*write)(gp_home *home, void *to, const void *from, size_t bytes); /* from the host */
  gp_status (*zero)(gp_home *home, void *to, size_t bytes);
};

/* "cuda:0", or "cpu" for NULL. */
static inline const char *gp_home_name(const gp_home *home) { return home ? home->name : "cpu"; }

#endif
