/* tests/cuda/divisor_test.cpp - division by multiplication gives the quotients of division, at the
 * bounds of its range and at random. */
#include "device/cuda/kernel/divisor.cuh"

#include "test.h"

enum { DRAWS = 20000 };

/* Returns the next word of a fixed sequence (Vigna, "splitmix64"). */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static bool is_exact(uint32_t n, uint32_t by) {
  return gp_divide(n, gp_divisor_make(by)) == n / by;
}

static bool is_wide_exact(int64_t n, int64_t by) {
  return gp_wide_divide(n, gp_wide_divisor_make(by)) == n / by;
}

/* A quotient is wrong first where a multiple of the divisor begins. */
template <typename N, typename F> static void check_around(N n, N by, N most, F exact) {
  const N first = n / by * by;
  CHECK(exact(n, by));
  CHECK(exact(first, by));
  CHECK(first == 0 || exact(first - 1, by));
  CHECK(exact(most, by));
}

TEST(numbers_of_31_bits_are_divided_exactly) {
  const uint32_t most = INT32_MAX, some[] = {1, 2, 3, 7, 641, 65535, 65536, 65537, most - 1, most};
  uint64_t state = 1;
  for (uint32_t by : some)
    for (uint32_t n : some) check_around(n, by, most, is_exact);
  for (int i = 0; i < DRAWS; i++) {
    const uint32_t by = (uint32_t)(draw(&state) >> 33 >> draw(&state) % 31);
    check_around((uint32_t)(draw(&state) >> 33), by ? by : 1, most, is_exact);
  }
}

TEST(numbers_of_63_bits_are_divided_exactly) {
  const int64_t most = INT64_MAX,
                some[] = {1, 2, 3, 7, 50257, (1ll << 32), 4294967297, most / 2, most - 1, most};
  uint64_t state = 2;
  for (int64_t by : some)
    for (int64_t n : some) check_around(n, by, most, is_wide_exact);
  for (int i = 0; i < DRAWS; i++) {
    const int64_t by = (int64_t)(draw(&state) >> 1 >> draw(&state) % 63);
    check_around((int64_t)(draw(&state) >> 1), by ? by : 1, most, is_wide_exact);
  }
}

TEST_MAIN(numbers_of_31_bits_are_divided_exactly, numbers_of_63_bits_are_divided_exactly)
