/* device/lane.h - what one worker drives: a team of CPU threads, or the streams of a GPU.
 *
 * The engine asks a lane for memory and for work in order; where the order is kept by a stream, calls
 * return at once. Addresses of a GPU's memory may be handed about, but only lanes touch what lies there.
 * Threads: one at a time per lane. */
#ifndef GP_DEVICE_LANE_H
#define GP_DEVICE_LANE_H

#include "device/gpus.h"
#include "device/team.h"

typedef struct gp_lane {
  char name[32];         /* "cpu:0", "cuda:1/0of2" */
  gp_team *team;         /* of a CPU device */
  const gp_gpu_api *api; /* of a GPU; NULL on the CPU */
  gp_gpu *gpu;
  gp_space *space; /* the memory that it works on; NULL: the host's */
} gp_lane;

/* Open a GPU's lane; that of a CPU device needs nothing but its team. Errors: GP_EDEVICE, GP_ERANGE. */
gp_status gp_lane_open(const char *name, gp_lane *lane);
void gp_lane_close(gp_lane *lane); /* the team too; waits for a GPU's work */

static inline bool gp_lane_is_gpu(const gp_lane *lane) { return lane->gpu != NULL; }
/* Can b's kernels read what lies in a's memory? Logical devices of one GPU share it, and CPU devices. */
static inline bool gp_lane_shares(const gp_lane *a, const gp_lane *b) {
  return a->space == b->space;
}

/* Zeroed memory; waits. Threads: the script's. */
gp_status gp_lane_alloc(const gp_lane *lane, size_t bytes, void **memory);
void gp_lane_free(const gp_lane *lane, void *memory, size_t bytes);

/* In the lane's order. From and to are both in its memory. */
gp_status gp_lane_copy(const gp_lane *lane, void *to, const void *from, size_t bytes);
gp_status gp_lane_fill(const gp_lane *lane, void *to, int byte, size_t bytes);
/* From another lane's memory, which nobody writes meanwhile, into this one's. */
gp_status gp_lane_take(const gp_lane *lane, void *to, const gp_lane *other, const void *from,
                       size_t bytes);
/* to += from, n elements of f32 or f64, both in its memory. */
gp_status gp_lane_add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);
/* Wait for everything so far. */
gp_status gp_lane_sync(const gp_lane *lane);

#endif
