/* tests/c/schedule/access_test.c - lists of accesses, lifetimes, what is alive, slots and rings. */
#include "base/memory.h"
#include "schedule/access/access.h"
#include "test.h"

#define R GP_ACCESS_READ
#define W GP_ACCESS_WRITE
#define P GP_ACCESS_REPLACE

typedef struct touch {
  int32_t task, buffer, instance;
  gp_access_mode mode;
} touch;

/* A list of `tasks` tasks, one after the other. */
static gp_access_list list_of(int32_t tasks, const touch *touches, int count, bool in_order) {
  gp_access_list list;
  gp_buffer *buffers;
  CHECK_STATUS(gp_alloc_array(2, sizeof *buffers, (void **)&buffers), GP_OK);
  for (int b = 0; b < 2; b++)
    buffers[b] = (gp_buffer){.class = GP_BUFFER_ACTIVATION, .stage = b, .in_order = in_order};
  CHECK_STATUS(gp_access_list_new(tasks, 8, buffers, 2, &list), GP_OK);
  for (int32_t t = 0; t < tasks; t++) {
    gp_access_list_begin(&list, false);
    for (int i = 0; i < count; i++)
      if (touches[i].task == t)
        CHECK_STATUS(
            gp_access_list_add(&list, touches[i].buffer, touches[i].instance, touches[i].mode),
            GP_OK);
  }
  return list;
}

#define LIST(tasks, in_order, ...)                                                                 \
  list_of(tasks, (touch[]){__VA_ARGS__}, (int)(sizeof((touch[]){__VA_ARGS__}) / sizeof(touch)),    \
          in_order)

static void check_life(const gp_lifetimes *l, int i, int32_t instance, int32_t begin, int32_t end) {
  CHECK(i < l->count);
  CHECK(l->list[i].instance == instance);
  CHECK(l->list[i].begin == begin);
  CHECK(l->list[i].end == end);
}

TEST(an_instance_lives_from_its_maker_to_its_last_reader) {
  gp_access_list list = LIST(5, false, {0, 0, 0, W}, {1, 0, 1, W}, {2, 0, 0, R}, {4, 0, 1, R});
  gp_lifetimes l;
  CHECK_STATUS(gp_lifetimes_find(&list, &l), GP_OK);
  CHECK(l.count == 2);
  CHECK(l.time_count == 5);
  check_life(&l, 0, 0, 0, 2);
  check_life(&l, 1, 1, 1, 4);
  gp_lifetimes_free(&l);
  gp_access_list_free(&list);
}

TEST(what_is_made_again_lives_twice) {
  gp_access_list list = LIST(4, false, {0, 0, 3, W}, {2, 0, 3, W}, {3, 0, 3, R});
  gp_lifetimes l;
  CHECK_STATUS(gp_lifetimes_find(&list, &l), GP_OK);
  check_life(&l, 0, 3, 0, 0);
  check_life(&l, 1, 3, 2, 3);
  gp_lifetimes_free(&l);
  gp_access_list_free(&list);
}

TEST(what_no_task_made_was_there_at_its_first_reader) {
  gp_access_list list = LIST(3, false, {1, 0, 2, R}, {2, 0, 2, R});
  gp_lifetimes l;
  CHECK_STATUS(gp_lifetimes_find(&list, &l), GP_OK);
  check_life(&l, 0, 2, 1, 2);
  gp_lifetimes_free(&l);
  gp_access_list_free(&list);
}

/* ---- alive at once -------------------------------------------------------------------------- */

typedef struct counter {
  int32_t live, peak, told;
} counter;

static gp_status born(void *context, const gp_lifetime *life) {
  counter *c = context;
  (void)life;
  c->told++;
  if (++c->live > c->peak) c->peak = c->live;
  return GP_OK;
}

static void dead(void *context, const gp_lifetime *life) {
  (void)life;
  ((counter *)context)->live--;
}

static counter count_of(gp_access_list *list) {
  gp_lifetimes l;
  counter c = {0};
  CHECK_STATUS(gp_lifetimes_find(list, &l), GP_OK);
  CHECK_STATUS(gp_lifetimes_walk(&l, &(gp_lifetime_watch){&c, born, dead}), GP_OK);
  gp_lifetimes_free(&l);
  gp_access_list_free(list);
  CHECK(c.live == 0); /* every end is told, once */
  return c;
}

TEST(what_is_replaced_gives_its_place_if_it_is_not_read_later) {
  gp_access_list alone = LIST(3, false, {0, 0, 0, W}, {1, 0, 0, R}, {1, 0, 1, P}, {2, 0, 1, R});
  gp_access_list beside = LIST(3, false, {0, 0, 0, W}, {1, 0, 0, R}, {1, 0, 1, P}, {2, 0, 0, R});
  CHECK(count_of(&alone).peak == 1);
  CHECK(count_of(&beside).peak == 2);
}

/* Version 1 is never read, version 0 to the end. */
TEST(in_a_ring_later_instances_wait_for_earlier_ones) {
  const touch versions[] = {{0, 0, 0, W}, {1, 0, 0, R}, {1, 0, 1, P}, {2, 0, 1, R},
                            {2, 0, 2, P}, {3, 0, 2, R}, {3, 0, 0, R}};
  gp_access_list free = list_of(4, versions, 7, false), ring = list_of(4, versions, 7, true);
  CHECK(count_of(&free).peak == 2);
  CHECK(count_of(&ring).peak == 3);
}

TEST(joined_tasks_overlap) {
  gp_access_list list;
  gp_buffer *buffers;
  CHECK_STATUS(gp_alloc_array(1, sizeof *buffers, (void **)&buffers), GP_OK);
  *buffers = (gp_buffer){.class = GP_BUFFER_ACTIVATION};
  CHECK_STATUS(gp_access_list_new(3, 2, buffers, 1, &list), GP_OK);
  gp_access_list_begin(&list, false);
  CHECK_STATUS(gp_access_list_add(&list, 0, 0, W), GP_OK);
  gp_access_list_begin(&list, false);
  CHECK_STATUS(gp_access_list_add(&list, 0, 0, R), GP_OK);
  gp_access_list_begin(&list, true);
  CHECK_STATUS(gp_access_list_add(&list, 0, 1, W), GP_OK);
  CHECK(list.time[1] == list.time[2]);
  CHECK(count_of(&list).peak == 2);
}

/* ---- slots ---------------------------------------------------------------------------------- */

TEST(the_lowest_free_slot_is_taken) {
  gp_access_list list = LIST(6, false, {0, 0, 0, W}, {1, 0, 1, W}, {2, 0, 0, R}, {3, 0, 2, W},
                             {4, 0, 1, R}, {4, 0, 2, R}, {5, 1, 0, W});
  gp_lifetimes l;
  int32_t slot[8], count[2];
  CHECK_STATUS(gp_lifetimes_find(&list, &l), GP_OK);
  CHECK_STATUS(gp_lifetimes_colour(&list, &l, slot, count), GP_OK);
  CHECK(slot[0] == 0 && slot[1] == 1 && slot[2] == 0 && slot[3] == 0);
  CHECK(count[0] == 2 && count[1] == 1);
  gp_lifetimes_free(&l);
  gp_access_list_free(&list);
}

/* Instances 0 and 2 are alive together: two slots would not do. */
TEST(a_ring_is_as_large_as_no_two_live_instances_meet) {
  gp_access_list list =
      LIST(6, false, {0, 0, 0, W}, {1, 0, 1, W}, {1, 0, 1, R}, {3, 0, 2, W}, {4, 0, 0, R});
  gp_lifetimes l;
  int32_t slots = 2;
  CHECK_STATUS(gp_lifetimes_find(&list, &l), GP_OK);
  CHECK_STATUS(gp_lifetimes_ring(&l, 0, 8, &slots), GP_OK);
  CHECK(slots == 3);
  slots = 0;
  CHECK_STATUS(gp_lifetimes_ring(&l, 0, 8, &slots), GP_OK);
  CHECK(slots == 0);
  gp_lifetimes_free(&l);
  gp_access_list_free(&list);
}

/* ---- without memory ------------------------------------------------------------------------- */

TEST(nothing_is_kept_where_memory_runs_out) {
  for (uint64_t n = 1; n < 40; n++) {
    gp_access_list list = LIST(3, false, {0, 0, 0, W}, {1, 0, 0, R}, {2, 0, 1, W});
    gp_lifetimes l = {0};
    counter c = {0};
    int32_t slot[4], count[2];
    gp_memory_fail_at(n);
    gp_status status = gp_lifetimes_find(&list, &l);
    if (!status) status = gp_lifetimes_walk(&l, &(gp_lifetime_watch){&c, born, dead});
    if (!status) status = gp_lifetimes_colour(&list, &l, slot, count);
    gp_memory_fail_at(0);
    CHECK(status == GP_OK || status == GP_ENOMEM);
    gp_lifetimes_free(&l);
    gp_access_list_free(&list);
  }
}

TEST_MAIN(an_instance_lives_from_its_maker_to_its_last_reader, what_is_made_again_lives_twice,
          what_no_task_made_was_there_at_its_first_reader,
          what_is_replaced_gives_its_place_if_it_is_not_read_later,
          in_a_ring_later_instances_wait_for_earlier_ones, joined_tasks_overlap,
          the_lowest_free_slot_is_taken, a_ring_is_as_large_as_no_two_live_instances_meet,
          nothing_is_kept_where_memory_runs_out)
