/* tests/c/device/near_test.c - the two ends of a link in memory that processes share
 * (device/link/ranks/near.h); a second process takes the maker's part where it matters. */
#include "device/link/ranks/near.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/bell.h"
#include "test.h"

enum { SLOTS = 2, BYTES = 24, BELLS = 3, MAKER = 2, READER = 1 };

/* Both ends; each has the bells of its own process's workers. */
typedef struct rig {
  gp_link_spec maker, reader;
  gp_near *made, *read;
} rig;

static gp_shared *new_bells(void) {
  gp_shared *bells = NULL;
  CHECK_STATUS(gp_shared_new(BELLS * sizeof(gp_bell), &bells), GP_OK);
  for (int d = 0; d < BELLS; d++) ((gp_bell *)gp_shared_data(bells))[d].is_shared = true;
  return bells;
}

static gp_bell *bell_of(const gp_link_spec *spec, int32_t number) {
  return (gp_bell *)gp_shared_data(spec->bells) + number;
}

static rig begin(void) {
  rig r = {.maker = {.slots = SLOTS,
                     .bytes = BYTES,
                     .bell_count = BELLS,
                     .from_bell = MAKER,
                     .to_bell = READER}};
  r.reader = r.maker;
  r.maker.bells = new_bells();
  r.reader.bells = new_bells();
  CHECK_STATUS(gp_near_new(&r.reader, &r.read), GP_OK);
  const gp_near_offer asks = {.bells = gp_shared_offer_of(r.maker.bells)};
  CHECK_STATUS(gp_near_meet(r.read, &asks), GP_OK);
  return r;
}

static void open_maker(rig *r) {
  const gp_near_offer offer = gp_near_offer_of(r->read);
  CHECK_STATUS(gp_near_open(&r->maker, &offer, &r->made), GP_OK);
}

static void end(rig *r) {
  gp_near_free(r->made);
  gp_near_free(r->read);
  gp_shared_free(r->maker.bells);
  gp_shared_free(r->reader.bells);
}

TEST(a_value_is_there_in_its_run_and_round_only) {
  rig r = begin();
  const gp_link_turn first = {1, 0}, second = {1, 1}, elsewhere = {0, 0};
  open_maker(&r);
  CHECK(!gp_near_has(r.read, 7, first));
  gp_near_publish(r.made, 7, first, "values of twenty-three.");
  CHECK(gp_near_has(r.read, 7, first));
  CHECK(!gp_near_has(r.read, 7, second) && !gp_near_has(r.read, 7, elsewhere));
  CHECK(!gp_near_has(r.read, 6, first) && !gp_near_has(r.read, 8, first));
  CHECK(!strcmp(gp_near_slot(r.read, 1), "values of twenty-three."));
  gp_near_publish(r.made, 8, first, "those of the next run..");
  CHECK(!gp_near_has(r.read, 7, first) && gp_near_has(r.read, 8, first));
  end(&r);
}

TEST(last_uses_are_counted_anew_in_each_run) {
  rig r = begin();
  open_maker(&r);
  CHECK(gp_near_released(r.made, 7, 0) == 0);
  for (int i = 0; i < 3; i++) gp_near_release(r.read, 7, 0);
  CHECK(gp_near_released(r.made, 7, 0) == 3 && gp_near_released(r.made, 7, 1) == 0);
  CHECK(gp_near_released(r.made, 8, 0) == 0);
  gp_near_release(r.read, 8, 0);
  CHECK(gp_near_released(r.made, 8, 0) == 1);
  end(&r);
}

TEST(only_a_sleeper_is_rung_for_and_the_right_one) {
  rig r = begin();
  open_maker(&r);
  gp_near_publish(r.made, 1, (gp_link_turn){0, 0}, "the reader is awake....");
  CHECK(bell_of(&r.reader, READER)->rings == 0);
  bell_of(&r.reader, READER)->sleeping = bell_of(&r.maker, MAKER)->sleeping = 1;
  gp_near_publish(r.made, 1, (gp_link_turn){0, 1}, "the reader sleeps......");
  CHECK(bell_of(&r.reader, READER)->rings == 1 && bell_of(&r.maker, MAKER)->rings == 0);
  gp_near_release(r.read, 1, 0);
  CHECK(bell_of(&r.reader, READER)->rings == 1 && bell_of(&r.maker, MAKER)->rings == 1);
  end(&r);
}

/* The child: opens what is offered, as the maker on another rank does. */
static int make_in_another_process(const rig *r, const gp_near_offer *offer) {
  gp_near *way;
  if (gp_near_open(&r->maker, offer, &way)) return 1;
  while (!atomic_load(&bell_of(&r->reader, READER)->sleeping)) usleep(100);
  gp_near_publish(way, 3, (gp_link_turn){0, 0}, "from another process...");
  return 0;
}

TEST(a_process_wakes_a_sleeper_of_another) {
  rig r = begin();
  const gp_near_offer offer = gp_near_offer_of(r.read);
  const gp_link_turn turn = {0, 0};
  gp_bell *bell = bell_of(&r.reader, READER);
  const pid_t child = fork();
  int status = -1;
  if (child == 0) _exit(make_in_another_process(&r, &offer));
  while (!gp_near_has(r.read, 3, turn)) {
    atomic_store(&bell->sleeping, 1);
    const uint32_t rings = atomic_load(&bell->rings);
    if (!gp_near_has(r.read, 3, turn)) gp_bell_sleep(bell, rings, INT64_C(20000000000));
  }
  CHECK(atomic_load(&bell->rings) == 1);
  CHECK(!strcmp(gp_near_slot(r.read, 0), "from another process..."));
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  end(&r);
}

TEST(memory_of_another_size_or_none_is_refused) {
  rig r = begin();
  gp_near_offer offer = gp_near_offer_of(r.read);
  gp_link_spec other = r.maker;
  other.slots = SLOTS + 1000;
  CHECK_STATUS(gp_near_open(&other, &offer, &r.made), GP_EIO);
  other = r.maker;
  other.bell_count = BELLS + 1;
  CHECK_STATUS(gp_near_open(&other, &offer, &r.made), GP_EIO);
  gp_near_seal(r.read);
  CHECK_STATUS(gp_near_open(&r.maker, &offer, &r.made), GP_EIO);
  r.made = NULL;
  end(&r);
}

TEST_MAIN(a_value_is_there_in_its_run_and_round_only, last_uses_are_counted_anew_in_each_run,
          only_a_sleeper_is_rung_for_and_the_right_one, a_process_wakes_a_sleeper_of_another,
          memory_of_another_size_or_none_is_refused)
