/* tests/c/base/map_test.c - a map finds what was stored, and nothing else. */
#include "base/map.h"

#include "base/memory.h"
#include "test.h"

TEST(what_was_stored_is_found_whatever_else_is_there) {
  gp_map map = {0};
  CHECK(gp_map_get(&map, (gp_map_key){.thing = 1}) == -1);
  for (int32_t i = 0; i < 5000; i++)
    CHECK_STATUS(gp_map_put(&map, (gp_map_key){(uint64_t)(i / 10) * 64, i % 2, i % 10 / 2}, i),
                 GP_OK);
  for (int32_t i = 0; i < 5000; i++)
    CHECK(gp_map_get(&map, (gp_map_key){(uint64_t)(i / 10) * 64, i % 2, i % 10 / 2}) == i);
  CHECK(gp_map_get(&map, (gp_map_key){64, 2, 0}) == -1);
  CHECK(gp_map_get(&map, (gp_map_key){65, 0, 0}) == -1);
  CHECK(gp_map_get(&map, (gp_map_key){64, 0, 5}) == -1);
  gp_map_free(&map);
}

TEST(a_failed_allocation_keeps_what_is_there) {
  gp_map map = {0};
  size_t live = gp_memory().live;
  for (int32_t i = 0; i < 8; i++) CHECK_STATUS(gp_map_put(&map, (gp_map_key){.part = i}, i), GP_OK);
  gp_memory_fail_at(1);
  CHECK_STATUS(gp_map_put(&map, (gp_map_key){.part = 8}, 8), GP_ENOMEM);
  gp_memory_fail_at(0);
  for (int32_t i = 0; i < 8; i++) CHECK(gp_map_get(&map, (gp_map_key){.part = i}) == i);
  gp_map_free(&map);
  CHECK(gp_memory().live == live);
}

TEST_MAIN(what_was_stored_is_found_whatever_else_is_there, a_failed_allocation_keeps_what_is_there)
