/* device/room.c - see room.h. */
#include "device/room.h"

/* Round up to a multiple of 256 bytes or, for large blocks, of an eighth of the power of two
 * below. */
size_t gp_room_size(size_t bytes) {
  size_t step = 256;
  if (bytes == 0) return step;
  while (step <= GP_ROOM_LARGEST && bytes / step >= 16) step *= 2;
  return (bytes + step - 1) / step * step;
}

static void *take_at(gp_room *room, int i) {
  void *memory = room->block[i].memory;
  room->bytes -= room->block[i].size;
  room->count--;
  for (; i < room->count; i++) room->block[i] = room->block[i + 1];
  return memory;
}

void *gp_room_take(gp_room *room, size_t bytes) {
  const size_t size = gp_room_size(bytes);
  for (int i = room->count; i-- > 0;)
    if (room->block[i].size == size) return take_at(room, i);
  return NULL;
}

bool gp_room_keep(gp_room *room, void *memory, size_t bytes) {
  const size_t size = gp_room_size(bytes);
  if (size > GP_ROOM_LARGEST || room->count == GP_ROOM_BLOCKS) return false;
  if (size > GP_ROOM_BYTES - room->bytes) return false;
  room->block[room->count].memory = memory;
  room->block[room->count++].size = size;
  room->bytes += size;
  return true;
}

void *gp_room_empty(gp_room *room) { return room->count > 0 ? take_at(room, 0) : NULL; }
