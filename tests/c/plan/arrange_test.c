/* tests/c/plan/arrange_test.c - offsets of buffers: valid, repeatable, close to the bound. */
#include <stdlib.h>

#include "plan/arrange/arrange.h"
#include "plan/stages.h"
#include "test.h"

/* Numbers that are the same every time. */
static uint32_t draw(uint64_t *seed, uint32_t n) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33) % n;
}

/* Arrange and prove the result. Returns the peak. */
static size_t arrange(gp_lifespan *buffers, int32_t count, const gp_arrange_effort *effort) {
  size_t peak = 0, bound = 0, top = 0;
  CHECK_STATUS(gp_arrange(buffers, count, effort, &peak), GP_OK);
  CHECK_STATUS(gp_arrange_check(buffers, count, NULL), GP_OK);
  CHECK_STATUS(gp_arrange_bound(buffers, count, &bound), GP_OK);
  CHECK(peak >= bound);
  for (int32_t i = 0; i < count; i++)
    if (buffers[i].bytes && buffers[i].offset + buffers[i].bytes > top)
      top = buffers[i].offset + buffers[i].bytes;
  CHECK(peak == top);
  return peak;
}

/* ---- few buffers --------------------------------------------------------------------------- */

enum { FEW = 7 };

static bool alive_together(const gp_lifespan *a, const gp_lifespan *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* Find the least peak over all orders, each buffer at the lowest free offset. An optimum, sorted by
 * offset, is such an order. */
static size_t least_peak(gp_lifespan *buffers, int32_t count, uint32_t placed, size_t peak) {
  if (placed == (1u << count) - 1) return peak;
  size_t least = SIZE_MAX;
  for (int32_t i = 0; i < count; i++) {
    gp_lifespan *b = &buffers[i];
    if (placed & 1u << i) continue;
    b->offset = 0;
    for (int32_t k = 0; k < count; k++) {
      const gp_lifespan *o = &buffers[k];
      if (!(placed & 1u << k) || !alive_together(b, o)) continue;
      if (b->offset >= o->offset + o->bytes || o->offset >= b->offset + b->bytes) continue;
      b->offset = o->offset + o->bytes;
      k = -1; /* look again */
    }
    const size_t end = b->offset + b->bytes;
    const size_t made = least_peak(buffers, count, placed | 1u << i, end > peak ? end : peak);
    if (made < least) least = made;
  }
  return least;
}

TEST(few_buffers_get_the_least_peak_there_is) {
  uint64_t seed = 3;
  int worse = 0;
  for (int round = 0; round < 300; round++) {
    gp_lifespan buffers[FEW] = {0}, tried[FEW];
    int32_t count = 1 + (int32_t)draw(&seed, FEW);
    for (int32_t i = 0; i < count; i++) {
      buffers[i].first = draw(&seed, 8);
      buffers[i].last = buffers[i].first + draw(&seed, 5);
      buffers[i].bytes = 64 * (1 + (size_t)draw(&seed, 9));
    }
    memcpy(tried, buffers, sizeof tried);
    const size_t least = least_peak(tried, count, 0, 0);
    const size_t made = arrange(buffers, count, &gp_arrange_thorough);
    CHECK(made >= least);
    worse += made > least;
    CHECK(arrange(buffers, count, &gp_arrange_quick) <= made + made / 5);
  }
  CHECK(worse == 0);
}

TEST(none_one_and_empty_buffers_are_arranged) {
  size_t peak = 1;
  CHECK_STATUS(gp_arrange(NULL, 0, &gp_arrange_thorough, &peak), GP_OK);
  CHECK(peak == 0);
  CHECK_STATUS(gp_arrange_check(NULL, 0, NULL), GP_OK);
  gp_lifespan one = {.first = -5, .last = 5, .bytes = 640, .offset = 77};
  CHECK(arrange(&one, 1, &gp_arrange_quick) == 640);
  CHECK(one.offset == 0);
  gp_lifespan some[] = {
      {.last = 9, .bytes = 64}, {.last = 9, .offset = 7}, {.last = 9, .bytes = 64}};
  CHECK(arrange(some, 3, &gp_arrange_quick) == 128);
  CHECK(some[1].offset == 0);
}

TEST(the_same_buffers_get_the_same_offsets) {
  static stage s;
  gp_lifespan *again = malloc(STAGE_SPANS * sizeof *again);
  s.spans = malloc(STAGE_SPANS * sizeof *s.spans);
  stage_sample(&s, STAGE_1F1B, false, 20);
  memcpy(again, s.spans, (size_t)s.count * sizeof *again);
  const size_t peak = arrange(s.spans, s.count, &gp_arrange_thorough);
  CHECK(arrange(again, s.count, &gp_arrange_thorough) == peak);
  for (int32_t i = 0; i < s.count; i++) CHECK(again[i].offset == s.spans[i].offset);
  free(again);
  free(s.spans);
}

/* ---- the bound, the check, fixed buffers ---------------------------------------------------- */

TEST(the_bound_is_what_is_alive_at_once) {
  size_t bound;
  gp_lifespan chain[] = {{.first = 0, .last = 1, .bytes = 10},
                         {.first = 1, .last = 2, .bytes = 20},
                         {.first = 2, .last = 3, .bytes = 15},
                         {.first = 9, .last = 9, .bytes = 34}};
  CHECK_STATUS(gp_arrange_bound(chain, 4, &bound), GP_OK);
  CHECK(bound == 35);
  chain[0].fixed = true;
  chain[0].offset = 90;
  CHECK_STATUS(gp_arrange_bound(chain, 4, &bound), GP_OK);
  CHECK(bound == 100);
}

TEST(a_planted_overlap_is_found) {
  static stage s;
  s.spans = malloc(STAGE_SPANS * sizeof *s.spans);
  stage_sample(&s, STAGE_GPIPE, false, 1);
  arrange(s.spans, s.count, &gp_arrange_quick);
  uint64_t seed = 5;
  for (int round = 0; round < 200; round++) {
    int32_t pair[2], i = (int32_t)draw(&seed, (uint32_t)s.count), k;
    do k = (int32_t)draw(&seed, (uint32_t)s.count);
    while (k == i || !alive_together(&s.spans[i], &s.spans[k]));
    const size_t offset = s.spans[i].offset;
    s.spans[i].offset = s.spans[k].offset + s.spans[k].bytes - 1;
    CHECK_STATUS(gp_arrange_check(s.spans, s.count, pair), GP_EINVAL);
    CHECK(pair[0] == i || pair[1] == i);
    CHECK(alive_together(&s.spans[pair[0]], &s.spans[pair[1]]));
    s.spans[i].offset = offset;
  }
  CHECK_STATUS(gp_arrange_check(s.spans, s.count, NULL), GP_OK);
  free(s.spans);
}

TEST(neighbours_in_time_and_in_memory_do_not_overlap) {
  gp_lifespan two[] = {{.first = 0, .last = 4, .bytes = 64}, {.first = 5, .last = 6, .bytes = 64}};
  CHECK_STATUS(gp_arrange_check(two, 2, NULL), GP_OK);
  two[1].first = 4;
  CHECK_STATUS(gp_arrange_check(two, 2, NULL), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "buffers 0 and 1");
  two[1].offset = 64;
  CHECK_STATUS(gp_arrange_check(two, 2, NULL), GP_OK);
}

TEST(fixed_buffers_stay_where_they_are) {
  uint64_t seed = 11;
  for (int round = 0; round < 100; round++) {
    gp_lifespan buffers[60] = {0};
    for (int32_t i = 0; i < 60; i++) {
      buffers[i].first = draw(&seed, 30);
      buffers[i].last = buffers[i].first + draw(&seed, 12);
      buffers[i].bytes = 64 * (1 + (size_t)draw(&seed, 9));
      buffers[i].fixed = i % 10 == 0;
      if (buffers[i].fixed) buffers[i].offset = (size_t)i / 10 * 1024 + 64;
    }
    arrange(buffers, 60, round % 2 ? &gp_arrange_quick : &gp_arrange_thorough);
    for (int32_t i = 0; i < 60; i += 10) CHECK(buffers[i].offset == (size_t)i / 10 * 1024 + 64);
  }
}

TEST(fixed_buffers_that_overlap_are_refused) {
  size_t peak;
  gp_lifespan some[] = {{.last = 9, .bytes = 64},
                        {.last = 4, .bytes = 64, .fixed = true},
                        {.last = 6, .bytes = 64, .offset = 32, .fixed = true}};
  CHECK_STATUS(gp_arrange(some, 3, &gp_arrange_quick, &peak), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "fixed: buffers 1 and 2");
}

TEST(impossible_numbers_are_refused) {
  size_t peak, bound;
  gp_lifespan two[] = {{.bytes = SIZE_MAX - 100}, {.bytes = 101}};
  CHECK_STATUS(gp_arrange(two, 2, &gp_arrange_quick, &peak), GP_ENOMEM);
  CHECK_STATUS(gp_arrange_bound(two, 2, &bound), GP_ENOMEM);
  two[0] = (gp_lifespan){.bytes = 64, .offset = SIZE_MAX - 10, .fixed = true};
  CHECK_STATUS(gp_arrange(two, 2, &gp_arrange_quick, &peak), GP_ENOMEM);
  gp_lifespan back = {.first = 3, .last = 2, .bytes = 64};
  CHECK_STATUS(gp_arrange(&back, 1, &gp_arrange_quick, &peak), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "expected ascending times");
  CHECK_STATUS(gp_arrange_check(&back, 1, NULL), GP_EINVAL);
}

/* This stage does not reach the bound, so that everything is tried. */
TEST(every_failing_allocation_is_reported) {
  static stage s;
  size_t peak;
  uint64_t n = 0;
  gp_status status = GP_ENOMEM;
  const gp_arrange_effort effort = {.looks = 1 << 22, .more = 1 << 22};
  s.spans = malloc(STAGE_SPANS * sizeof *s.spans);
  stage_sample(&s, STAGE_1F1B, false, 20);
  while (status && ++n < 1000) {
    gp_memory_fail_at(n);
    status = gp_arrange(s.spans, s.count, &effort, &peak);
    CHECK(status == GP_OK || status == GP_ENOMEM);
  }
  gp_memory_fail_at(0);
  CHECK(n > 20);
  CHECK(status == GP_OK);
  free(s.spans);
}

/* ---- many buffers -------------------------------------------------------------------------- */

/* Chains of values, some kept until a mirrored time, as in a forward and a backward pass. */
static gp_lifespan *many(int32_t count) {
  gp_lifespan *buffers = calloc((size_t)count, sizeof *buffers);
  uint64_t seed = 7;
  for (int32_t i = 0; i < count; i++) {
    const int64_t kept = 2 * (int64_t)count - i, soon = i + 1 + (int64_t)draw(&seed, 3);
    buffers[i].first = i;
    buffers[i].last = draw(&seed, 64) == 0 ? kept : soon;
    buffers[i].bytes = 256 * (1 + (size_t)draw(&seed, 40));
  }
  return buffers;
}

static void check_many(int32_t count, const gp_arrange_effort *effort) {
  size_t bound;
  gp_lifespan *buffers = many(count);
  CHECK_STATUS(gp_arrange_bound(buffers, count, &bound), GP_OK);
  CHECK(arrange(buffers, count, effort) <= bound + bound / 20);
  free(buffers);
}

TEST(many_thousands_of_buffers_are_arranged) {
  check_many(8000, &gp_arrange_quick);
  check_many(20000, &gp_arrange_quick);
  check_many(20000, &gp_arrange_thorough);
  check_many(200000, &gp_arrange_thorough);
}

/* Both ways to find what is in the way, a scan and a tree, give the same offsets. */
TEST(a_long_list_is_placed_as_a_short_one_is) {
  enum { N = 8000, REST = 400 };
  gp_lifespan *one = many(N + REST), *other = many(N);
  const gp_arrange_effort effort = {.looks = INT64_C(1) << 40};
  for (int32_t i = N; i < N + REST; i++) /* in nobody's way */
    one[i] = (gp_lifespan){.first = 3 * N + i, .last = 3 * N + i, .bytes = 256};
  for (int32_t i = 0; i < N; i++) one[i] = other[i];
  CHECK(arrange(one, N + REST, &effort) == arrange(other, N, &effort));
  for (int32_t i = 0; i < N; i++) CHECK(one[i].offset == other[i].offset);
  free(one);
  free(other);
}

TEST(without_looks_there_is_an_arrangement) {
  const gp_arrange_effort none = {0};
  gp_lifespan *buffers = many(3000);
  arrange(buffers, 3000, &none);
  buffers[5].fixed = true;
  arrange(buffers, 3000, &none);
  free(buffers);
}

/* ---- stages -------------------------------------------------------------------------------- */

typedef struct waste {
  double mean, most; /* percent above the bound */
} waste;

static waste waste_of(stage_order order, bool homo) {
  enum { SAMPLES = 30 };
  static stage s;
  waste w = {0};
  s.spans = malloc(STAGE_SPANS * sizeof *s.spans);
  for (uint64_t k = 1; k <= SAMPLES; k++) {
    size_t bound;
    stage_sample(&s, order, homo, k);
    CHECK_STATUS(gp_arrange_bound(s.spans, s.count, &bound), GP_OK);
    const size_t peak = arrange(s.spans, s.count, &gp_arrange_thorough);
    const double percent = 100 * ((double)peak / (double)bound - 1);
    w.mean += percent / SAMPLES;
    if (percent > w.most) w.most = percent;
  }
  free(s.spans);
  printf("waste of order %d, %s: %.2f %% in the mean, %.2f %% at most\n", (int)order,
         homo ? "equal widths" : "drawn widths", w.mean, w.most);
  return w;
}

TEST(a_stage_of_1f1b_wastes_at_most_2_percent) {
  waste drawn = waste_of(STAGE_1F1B, false), equal = waste_of(STAGE_1F1B, true);
  CHECK(drawn.mean <= 0.25);
  CHECK(drawn.most <= 2);
  CHECK(equal.mean <= 0.1);
  CHECK(equal.most <= 1);
}

TEST(a_stage_of_gpipe_wastes_next_to_nothing) {
  waste w = waste_of(STAGE_GPIPE, false);
  CHECK(w.mean <= 0.1);
  CHECK(w.most <= 1);
}

TEST(an_interleaved_stage_wastes_at_most_3_percent) {
  waste drawn = waste_of(STAGE_INTERLEAVED, false), equal = waste_of(STAGE_INTERLEAVED, true);
  CHECK(drawn.mean <= 0.8);
  CHECK(drawn.most <= 3);
  CHECK(equal.mean <= 0.1);
  CHECK(equal.most <= 1);
}

TEST_MAIN(few_buffers_get_the_least_peak_there_is, none_one_and_empty_buffers_are_arranged,
          the_same_buffers_get_the_same_offsets, the_bound_is_what_is_alive_at_once,
          a_planted_overlap_is_found, neighbours_in_time_and_in_memory_do_not_overlap,
          fixed_buffers_stay_where_they_are, fixed_buffers_that_overlap_are_refused,
          impossible_numbers_are_refused, every_failing_allocation_is_reported,
          many_thousands_of_buffers_are_arranged, a_long_list_is_placed_as_a_short_one_is,
          without_looks_there_is_an_arrangement, a_stage_of_1f1b_wastes_at_most_2_percent,
          a_stage_of_gpipe_wastes_next_to_nothing, an_interleaved_stage_wastes_at_most_3_percent)
