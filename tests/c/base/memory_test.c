/* tests/c/base/memory_test.c - counted allocation: alignment, zeros, counters, injected
 * failures. */
#include "base/memory.h"

#include "test.h"

static bool is_zero(const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return false;
  return true;
}

TEST(blocks_are_zero_and_aligned) {
  static const size_t sizes[] = {0, 1, 15, 64, 1000, 70000, 5u << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int round = 0; round < 2; round++) { /* the second one may get the first one's memory */
      void *memory = NULL;
      CHECK_STATUS(gp_alloc(sizes[i], &memory), GP_OK);
      CHECK(memory && (uintptr_t)memory % 64 == 0);
      CHECK(is_zero(memory, sizes[i]));
      memset(memory, 0xff, sizes[i]);
      gp_free(memory);
    }
  gp_free(NULL);
}

TEST(bytes_and_calls_are_counted) {
  gp_memory_info before = gp_memory();
  void *a = NULL, *b = NULL;
  CHECK_STATUS(gp_alloc(1000, &a), GP_OK);
  CHECK_STATUS(gp_alloc(1 << 20, &b), GP_OK);
  gp_memory_info held = gp_memory();
  CHECK(held.live == before.live + 1000 + (1 << 20));
  CHECK(held.peak >= held.live);
  CHECK(held.allocations == before.allocations + 2);
  gp_free(a);
  gp_free(b);
  CHECK(gp_memory().live == before.live);
  CHECK(gp_memory().peak >= held.live);
}

TEST(the_nth_allocation_can_be_made_to_fail) {
  void *memory[4] = {0};
  size_t live = gp_memory().live;
  gp_memory_fail_at(3);
  CHECK_STATUS(gp_alloc(8, &memory[0]), GP_OK);
  CHECK_STATUS(gp_alloc(8, &memory[1]), GP_OK);
  CHECK_STATUS(gp_alloc(8, &memory[2]), GP_ENOMEM);
  CHECK(memory[2] == NULL);
  CHECK_TEXT(gp_error_text(), "8 bytes");
  CHECK_STATUS(gp_alloc(8, &memory[3]), GP_OK); /* once only */
  gp_memory_fail_at(1);
  gp_memory_fail_at(0);
  CHECK_STATUS(gp_alloc(8, &memory[2]), GP_OK);
  for (int i = 0; i < 4; i++) gp_free(memory[i]);
  CHECK(gp_memory().live == live);
}

TEST(too_much_memory_is_an_error) {
  void *memory = NULL;
  CHECK_STATUS(gp_alloc(SIZE_MAX - 10, &memory), GP_ENOMEM);
  CHECK_STATUS(gp_alloc(SIZE_MAX / 4, &memory), GP_ENOMEM);
  CHECK_STATUS(gp_alloc_array(SIZE_MAX / 2, 4, &memory), GP_ENOMEM);
  CHECK(memory == NULL);
}

TEST(arrays_grow_and_shrink) {
  void *memory = NULL;
  CHECK_STATUS(gp_resize_array(0, 3, sizeof(int), &memory), GP_OK);
  int *values = memory;
  for (int i = 0; i < 3; i++) values[i] = i + 1;
  CHECK_STATUS(gp_resize_array(3, 1000, sizeof(int), &memory), GP_OK);
  values = memory;
  CHECK(values[0] == 1 && values[2] == 3 && values[3] == 0 && values[999] == 0);
  gp_memory_fail_at(1);
  CHECK_STATUS(gp_resize_array(1000, 2000, sizeof(int), &memory), GP_ENOMEM);
  CHECK(memory == values && values[2] == 3);
  CHECK_STATUS(gp_resize_array(1000, 2, sizeof(int), &memory), GP_OK);
  values = memory;
  CHECK(values[0] == 1 && values[1] == 2);
  gp_free(memory);
}

TEST(strings_are_copied) {
  char *copy = NULL;
  CHECK_STATUS(gp_copy_string("pipeline", &copy), GP_OK);
  CHECK(strcmp(copy, "pipeline") == 0);
  gp_free(copy);
}

TEST(sizes_never_wrap) {
  size_t size = 7;
  CHECK_STATUS(gp_size_add(SIZE_MAX - 1, 1, &size), GP_OK);
  CHECK(size == SIZE_MAX);
  CHECK_STATUS(gp_size_add(SIZE_MAX, 1, &size), GP_ENOMEM);
  CHECK_STATUS(gp_size_mul(SIZE_MAX / 2, 3, &size), GP_ENOMEM);
  CHECK_STATUS(gp_size_align(SIZE_MAX - 3, 64, &size), GP_ENOMEM);
  CHECK(size == SIZE_MAX); /* failures leave it */
  CHECK_STATUS(gp_size_mul(6, 7, &size), GP_OK);
  CHECK(size == 42);
  CHECK_STATUS(gp_size_align(65, 64, &size), GP_OK);
  CHECK(size == 128);
  CHECK_STATUS(gp_size_align(128, 64, &size), GP_OK);
  CHECK(size == 128);
  CHECK_STATUS(gp_size_align(10, 3, &size), GP_OK);
  CHECK(size == 12);
}

TEST_MAIN(blocks_are_zero_and_aligned, bytes_and_calls_are_counted,
          the_nth_allocation_can_be_made_to_fail, too_much_memory_is_an_error,
          arrays_grow_and_shrink, strings_are_copied, sizes_never_wrap)
