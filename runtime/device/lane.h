/* device/lane.h - what one worker drives: a device's queue of work and the memory that it works on.
 *
 * A lane is the tables of functions (tables.h) and the state of one kind of device: a team of
 * threads of this process (cpu/lane.c), or the streams of a GPU (gpu/lane.c). The engine asks a
 * lane for memory and for work in order, and never asks which kind it is; if a queue keeps the
 * order, calls return at once. Any code may pass addresses of a device's memory on, but only lanes
 * touch what lies there. To add a kind of device, write a file with such tables and add a row in
 * lane.c.
 *
 * Threads: one at a time per lane. */
#ifndef GP_DEVICE_LANE_H
#define GP_DEVICE_LANE_H

#include "device/tables.h"

typedef struct gp_lane_options {
  int threads;
  const int *cores; /* borrowed: thread i runs on cores[i % core_count]; count 0: anywhere */
  int core_count;
  bool spin; /* threads may spin before they sleep */
} gp_lane_options;

/* Open the device with that name. Errors: GP_EINVAL, GP_EDEVICE, GP_ERANGE. */
gp_status gp_lane_open(const char *name, const gp_lane_options *options, gp_lane *lane);
void gp_lane_close(gp_lane *lane); /* does nothing if the lane is all zeros */

/* The first core of each device's threads; its other threads take the cores that follow
 * (cpu/places.h). */
void gp_lane_places(const gp_device_spec *devices, int32_t count, int cores, int *first);

/* Can b's kernels read what lies in a's memory? */
static inline bool gp_lane_shares(const gp_lane *a, const gp_lane *b) {
  return a->space == b->space && a->rank == b->rank;
}

/* Allocate zeroed memory; waits. Threads: the script's. */
gp_status gp_lane_alloc(const gp_lane *lane, size_t bytes, void **memory);
void gp_lane_free(const gp_lane *lane, void *memory, size_t bytes);

/* Allocate host memory that the lane copies from and to without blocking: pinned, if its kind needs
 * that. What it holds is undefined. Threads: the script's. */
gp_status gp_lane_host_alloc(const gp_lane *lane, size_t bytes, void **memory);
void gp_lane_host_free(const gp_lane *lane, void *memory); /* NULL is fine */

/* Copy and fill in the order of the compute stream. Both addresses are in the lane's memory. */
gp_status gp_lane_copy(const gp_lane *lane, void *to, const void *from, size_t bytes);
gp_status gp_lane_fill(const gp_lane *lane, void *to, int byte, size_t bytes);
/* to += from, n elements of f32 or f64, both in the lane's memory. */
gp_status gp_lane_add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from);
/* Capture what `enqueue` enqueues. *graph receives NULL if the device cannot capture it; then the
 * caller enqueues it as usual, and what failed in `enqueue` fails again unless the capture was the
 * cause. */
gp_status gp_lane_capture(const gp_lane *lane, gp_status (*enqueue)(void *context), void *context,
                          gp_lane_graph **graph);
/* Wait for everything enqueued so far. */
gp_status gp_lane_sync(const gp_lane *lane);

/* The kinds. */
gp_status gp_lane_open_cpu(const char *name, const gp_lane_options *options, gp_lane *lane);
gp_status gp_lane_open_gpu(const char *name, const gp_lane_options *options, gp_lane *lane);
/* A device of another rank: a name that takes part in plans. Its memory is always NULL, and copies
 * from and to it do nothing. Its memory space serves for comparisons only. */
gp_status gp_lane_open_far(const char *name, int32_t rank, gp_lane *lane);
bool gp_lane_is_far(const gp_lane *lane);

#endif
