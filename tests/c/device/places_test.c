/* tests/c/device/places_test.c - cpu:N is a place on the machine: its cores do not depend on the
 * other devices in a list. */
#include "device/cpu/places.h"
#include "test.h"

static void check(const gp_device_spec *devices, int32_t count, int cores, const int *wanted) {
  int first[8];
  gp_cpu_places(devices, count, cores, first);
  for (int32_t d = 0; d < count; d++) CHECK(first[d] == wanted[d]);
}

TEST(a_device_lies_behind_those_of_smaller_numbers) {
  check((gp_device_spec[]){{"cpu:0", 4, 0}}, 1, 16, (int[]){0});
  check((gp_device_spec[]){{"cpu:1", 4, 0}}, 1, 16, (int[]){4});
  check((gp_device_spec[]){{"cpu:3", 4, 0}}, 1, 16, (int[]){12});
  check((gp_device_spec[]){{"cpu", 2, 0}, {"cpu:1", 2, 0}}, 2, 16, (int[]){0, 2});
}

TEST(the_order_of_the_list_does_not_matter) {
  check((gp_device_spec[]){{"cpu:1", 2, 0}, {"cpu:0", 3, 0}}, 2, 8, (int[]){3, 0});
  check((gp_device_spec[]){{"cpu:2", 2, 0}, {"cuda:0", 1, 0}, {"cpu:0", 1, 0}}, 3, 8,
        (int[]){3, 0, 0});
}

TEST(devices_that_would_meet_take_cores_in_the_order_of_the_list) {
  check((gp_device_spec[]){{"cpu:0", 1, 0}, {"cpu:0", 1, 0}}, 2, 4, (int[]){0, 1});
  check((gp_device_spec[]){{"cpu:0", 2, 0}, {"cuda:0", 1, 0}, {"cpu:2", 2, 0}}, 3, 4,
        (int[]){0, 2, 2});
  check((gp_device_spec[]){{"cpu:7", 2, 0}}, 1, 4, (int[]){2});
}

TEST_MAIN(a_device_lies_behind_those_of_smaller_numbers, the_order_of_the_list_does_not_matter,
          devices_that_would_meet_take_cores_in_the_order_of_the_list)
