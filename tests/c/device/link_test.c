/* tests/c/device/link_test.c - a value's way over each kind of link (device/link/link.h).
 *
 * GPUs are those of the plugin that GPIPE_CUDA_PLUGIN names, which the tests set to the one
 * compiled for the host; without a plugin only links between CPUs are tested. */
#include "device/link/link.h"
#include "device/link/pool.h"

#include <stdlib.h>

#include "base/memory.h"
#include "test.h"

enum { SLOTS = 2, TURNS = 6, VALUES = 16, BYTES = VALUES * (int)sizeof(float) };

/* ---- a link between two lanes -------------------------------------------------------------- */

typedef struct rig {
  gp_lane from, other; /* other: not opened where the link joins a lane with itself */
  const gp_lane *to;
  gp_link_pool *pool;
  gp_link_word words[SLOTS];
  char *made, *received;
  gp_link *link;
} rig;

/* Opens both lanes; false where the machine has no such device. */
static bool open_lanes(rig *r, const char *from, const char *to) {
  gp_lane_options options = {.threads = 1};
  r->to = strcmp(from, to) == 0 ? &r->from : &r->other;
  if (gp_lane_open(from, &options, &r->from)) return false;
  return r->to == &r->from || gp_lane_open(to, &options, &r->other) == GP_OK;
}

/* A CPU sends to a GPU from memory that the GPU reaches. */
static bool is_pinned(const rig *r) { return !r->from.space && r->to->memory->host_alloc; }

static void take_memory(rig *r) {
  size_t bytes = SLOTS * BYTES;
  gp_status status = is_pinned(r) ? r->to->memory->host_alloc(bytes, (void **)&r->made)
                                  : gp_lane_alloc(&r->from, bytes, (void **)&r->made);
  CHECK_STATUS(status, GP_OK);
  r->received = r->made;
  if (!gp_lane_shares(&r->from, r->to))
    CHECK_STATUS(gp_lane_alloc(r->to, bytes, (void **)&r->received), GP_OK);
}

static gp_status open_link(rig *r) {
  gp_link_spec spec = {.from = &r->from,
                       .to = r->to,
                       .slots = SLOTS,
                       .uses = 1,
                       .bytes = BYTES,
                       .made = r->made,
                       .received = r->received,
                       .words = r->words,
                       .pool = r->pool};
  GP_TRY(gp_link_pool_new(&r->pool));
  spec.pool = r->pool;
  return gp_link_open(&spec, &r->link);
}

static void close_link(rig *r) {
  gp_link_close(r->link);
  gp_link_pool_free(r->pool);
  r->link = NULL;
  r->pool = NULL;
}

static void end(rig *r) {
  if (r->received != r->made) gp_lane_free(r->to, r->received, SLOTS * BYTES);
  if (is_pinned(r))
    r->to->memory->host_free(r->made);
  else
    gp_lane_free(&r->from, r->made, SLOTS * BYTES);
  if (r->to == &r->other) gp_lane_close(&r->other);
  gp_lane_close(&r->from);
}

/* ---- its turns ----------------------------------------------------------------------------- */

static void move(const gp_lane *lane, void *there, void *here, bool out) {
  CHECK_STATUS(gp_lane_sync(lane), GP_OK);
  if (!lane->space) memcpy(out ? there : here, out ? here : there, BYTES);
  if (lane->space && out) CHECK_STATUS(lane->space->write(lane->space, there, here, BYTES), GP_OK);
  if (lane->space && !out) CHECK_STATUS(lane->space->read(lane->space, here, there, BYTES), GP_OK);
}

/* Acts as the maker's worker: asks for the slot, writes the value, publishes it. */
static void make(rig *r, gp_link_turn turn, float value) {
  float values[VALUES];
  bool ready = false;
  for (int i = 0; i < VALUES; i++) values[i] = value + (float)i;
  CHECK(atomic_load(&r->words[turn.slot].released) == turn.round);
  for (int tries = 0; tries < 100 && !ready; tries++) {
    ready = true; /* a plain link is always ready */
    CHECK_STATUS(gp_link_acquire(r->link, &r->from, turn, &ready), GP_OK);
  }
  CHECK(ready);
  move(&r->from, r->made + turn.slot * BYTES, values, true);
  CHECK_STATUS(gp_link_publish(r->link, turn), GP_OK);
  gp_link_note_published(r->words, turn);
}

/* Acts as the reader's worker: asks until the value is there, twice as two stages would, reads it,
 * and gives it back. */
static void read_it(rig *r, gp_link_turn turn, float value) {
  float values[VALUES] = {0};
  bool ready = false;
  for (int tries = 0; tries < 100 && !ready; tries++)
    CHECK_STATUS(gp_link_receive(r->link, turn, &ready), GP_OK);
  CHECK(ready);
  CHECK_STATUS(gp_link_receive(r->link, turn, &ready), GP_OK);
  move(r->to, r->link->received + turn.slot * BYTES, values, false);
  for (int i = 0; i < VALUES; i++) CHECK(values[i] == value + (float)i);
  CHECK_STATUS(gp_link_release(r->link, turn), GP_OK);
}

/* Runs twice; the second run knows nothing of the first. */
static void run_twice(rig *r) {
  for (int run = 0; run < 2; run++) {
    gp_link_begin(r->link);
    for (int t = 0; t < TURNS; t++) {
      gp_link_turn turn = {t % SLOTS, (uint32_t)(t / SLOTS)};
      bool ready = true;
      CHECK_STATUS(gp_link_receive(r->link, turn, &ready), GP_OK);
      CHECK(!ready); /* not made yet */
      make(r, turn, (float)(10 * t + run));
      read_it(r, turn, (float)(10 * t + run));
    }
    for (int end = 0; end < 2 && r->link->ops->settle; end++)
      CHECK_STATUS(r->link->ops->settle(r->link, (gp_link_end)end), GP_OK);
  }
}

static const struct {
  const char *from, *to, *peers, *kind;
} pairs[] = {
    {"cpu:0", "cpu:0", "", "local"},   {"cpu:0", "cpu:1", "", "local"},
    {"cuda:0", "cuda:0", "", "local"}, {"cuda:0", "cuda:0/0of2", "", "local"},
    {"cpu:0", "cuda:0", "", "peer"},   {"cuda:0", "cuda:1", "", "peer"},
    {"cuda:1", "cuda:0", "1", "host"}, {"cuda:0", "cpu:0", "", "host"},
};

/* Tests every kind of link between every two kinds of lanes. A process asks once whether one GPU
 * reaches another, so the pair without peer access goes the other way. */
TEST(a_value_arrives_in_each_round_of_each_slot) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    rig r = {0};
    setenv("GPIPE_TEST_NOPEER", pairs[i].peers, 1);
    if (!open_lanes(&r, pairs[i].from, pairs[i].to)) {
      printf("%s to %s is not tested: %s\n", pairs[i].from, pairs[i].to, gp_error_text());
      gp_lane_close(&r.from);
      continue;
    }
    take_memory(&r);
    CHECK_STATUS(open_link(&r), GP_OK);
    CHECK(r.link && strcmp(r.link->ops->name, pairs[i].kind) == 0);
    if (r.link) run_twice(&r);
    close_link(&r);
    end(&r);
  }
}

/* Each allocation fails in turn. */
TEST(a_link_that_cannot_be_opened_leaves_nothing) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    rig r = {0};
    setenv("GPIPE_TEST_NOPEER", pairs[i].peers, 1);
    if (!open_lanes(&r, pairs[i].from, pairs[i].to)) {
      gp_lane_close(&r.from);
      continue;
    }
    take_memory(&r);
    size_t live = gp_memory().live;
    gp_status status = GP_ENOMEM;
    int failures = -1;
    for (uint64_t n = 1; status == GP_ENOMEM && n < 50; n++, failures++) {
      gp_memory_fail_at(n);
      status = open_link(&r);
      gp_memory_fail_at(0);
      if (status) CHECK(r.link == NULL);
      close_link(&r);
      CHECK(gp_memory().live == live);
    }
    CHECK_STATUS(status, GP_OK);
    CHECK(failures >= 3);
    end(&r);
  }
}

/* ---- lanes that nothing joins -------------------------------------------------------------- */

static bool reaches_none(const gp_lane *lane, const gp_lane *other) {
  return (void)lane, (void)other, false;
}

/* The far lane is of an unknown kind, whose memory no other lane reaches. */
TEST(what_no_kind_joins_is_refused_with_both_names) {
  static const gp_lane_facts far_facts = {0};
  static const gp_lane_memory far_memory = {.reaches = reaches_none};
  static gp_space far = {.name = "far:0"};
  rig r = {0};
  gp_link_word words[SLOTS];
  gp_link *link = NULL;
  gp_lane other = {.facts = &far_facts, .memory = &far_memory, .name = "far:0", .space = &far};
  CHECK_STATUS(gp_lane_open("cpu:0", &(gp_lane_options){.threads = 1}, &r.from), GP_OK);
  gp_link_spec spec = {.from = &r.from, .to = &other, .slots = SLOTS, .words = words};
  CHECK_STATUS(gp_link_open(&spec, &link), GP_EUNSUPPORTED);
  CHECK_TEXT(gp_error_text(), "from cpu:0 to far:0");
  CHECK(link == NULL);
  gp_link_close(NULL);
  gp_lane_close(&r.from);
}

TEST_MAIN(a_value_arrives_in_each_round_of_each_slot, a_link_that_cannot_be_opened_leaves_nothing,
          what_no_kind_joins_is_refused_with_both_names)
