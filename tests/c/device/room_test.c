/* tests/c/device/room_test.c - memory that is kept for the next tensors of a GPU. */
#include "device/room.h"
#include "test.h"

static char memory[GP_ROOM_BLOCKS + 2]; /* addresses that stand for blocks */

TEST(sizes_are_rounded_up_by_at_most_an_eighth) {
  for (size_t bytes = 1; bytes < (size_t)2 * GP_ROOM_LARGEST; bytes += bytes / 7 + 1) {
    const size_t size = gp_room_size(bytes);
    CHECK(size >= bytes && size % 256 == 0);
    CHECK(size <= bytes + bytes / 8 + 255);
    CHECK(gp_room_size(size) == size);
  }
  CHECK(gp_room_size(0) == 256);
}

TEST(the_newest_block_of_a_size_comes_back_first) {
  gp_room room = {0};
  CHECK(!gp_room_take(&room, 100));
  CHECK(gp_room_keep(&room, &memory[0], 100));
  CHECK(gp_room_keep(&room, &memory[1], 5000));
  CHECK(gp_room_keep(&room, &memory[2], 200)); /* as large as that of 100 bytes */
  CHECK(!gp_room_take(&room, 10000));
  CHECK(gp_room_take(&room, 17) == &memory[2]);
  CHECK(gp_room_take(&room, 17) == &memory[0]);
  CHECK(!gp_room_take(&room, 17));
  CHECK(gp_room_empty(&room) == &memory[1] && !gp_room_empty(&room) && room.bytes == 0);
}

TEST(what_is_kept_is_bounded) {
  gp_room room = {0};
  CHECK(!gp_room_keep(&room, memory, (size_t)GP_ROOM_LARGEST + 1));
  int kept = 0;
  while (gp_room_keep(&room, &memory[kept], GP_ROOM_LARGEST)) kept++;
  CHECK(kept == GP_ROOM_BYTES / GP_ROOM_LARGEST);
  while (gp_room_empty(&room)) kept--;
  CHECK(kept == 0);
  while (gp_room_keep(&room, &memory[kept], 1)) kept++;
  CHECK(kept == GP_ROOM_BLOCKS);
}

TEST_MAIN(sizes_are_rounded_up_by_at_most_an_eighth, the_newest_block_of_a_size_comes_back_first,
          what_is_kept_is_bounded)
