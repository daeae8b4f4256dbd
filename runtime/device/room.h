/* device/room.h - memory of a GPU that tensors have given back, kept for the next ones.
 *
 * A script's ops make a result each, often of the same few sizes. To allocate one from the driver
 * and to free it waits for all work of the GPU, each time; here both are a walk through a short
 * list. Sizes are rounded up, by at most an eighth, so that results of nearly one size share
 * blocks. Large blocks are not kept, and all kept blocks together have a bound: what a pipeline
 * allocates is not in here. Threads: one at a time; the space locks. */
#ifndef GP_DEVICE_ROOM_H
#define GP_DEVICE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

enum {
  GP_ROOM_BLOCKS = 64,
  GP_ROOM_LARGEST = 64 << 20, /* bytes of a block */
  GP_ROOM_BYTES = 256 << 20   /* of all blocks */
};

typedef struct gp_room {
  struct {
    void *memory;
    size_t size;           /* rounded */
  } block[GP_ROOM_BLOCKS]; /* the newest last */
  int count;
  size_t bytes;
} gp_room;

/* Return the bytes that a block for so many has. */
size_t gp_room_size(size_t bytes);
/* Take a block out that has just the size for so many bytes, the newest; NULL: there is none. */
void *gp_room_take(gp_room *room, size_t bytes);
/* Put a block for so many bytes in; false: it is too large, or there is no room for it. */
bool gp_room_keep(gp_room *room, void *memory, size_t bytes);
/* Take any block out; NULL after the last. */
void *gp_room_empty(gp_room *room);

#endif
