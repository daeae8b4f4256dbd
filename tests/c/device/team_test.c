/* tests/c/device/team_test.c - teams of one to four threads, whatever the number of cores. */
#include "device/team.h"

#include <stdatomic.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "test.h"

enum { MAX_PIECES = 500 };

typedef struct job {
  _Atomic int runs[MAX_PIECES]; /* how often each piece ran */
  int members;                  /* threads of the team */
  _Atomic int wrong_members;
  int fail_from, fail_every; /* pieces that fail; 0: none */
} job;

static gp_status run_piece(void *context, int64_t index, int member) {
  job *j = context;
  atomic_fetch_add_explicit(&j->runs[index], 1, memory_order_relaxed);
  if (member < 0 || member >= j->members) atomic_fetch_add(&j->wrong_members, 1);
  if (j->fail_every && index >= j->fail_from && (index - j->fail_from) % j->fail_every == 0)
    return gp_fail(GP_EFINITE, "piece %d is not finite", (int)index);
  return GP_OK;
}

static gp_team *new_team(int threads, bool spin) {
  gp_team *team = NULL;
  CHECK_STATUS(gp_team_new(threads, NULL, 0, spin, &team), GP_OK);
  CHECK(gp_team_size(team) == threads);
  return team;
}

static int count_runs(const job *j) {
  int runs = 0;
  for (int i = 0; i < MAX_PIECES; i++) runs += j->runs[i];
  return runs;
}

static void run_job(gp_team *team, int64_t pieces) {
  job j = {.members = gp_team_size(team)};
  CHECK_STATUS(gp_team_run(team, pieces, run_piece, &j), GP_OK);
  int wrong = 0;
  for (int64_t i = 0; i < MAX_PIECES; i++) wrong += j.runs[i] != (i < pieces);
  CHECK(wrong == 0 && j.wrong_members == 0);
}

TEST(every_piece_runs_once) {
  for (int threads = 1; threads <= 4; threads++)
    for (int spin = 0; spin < 2; spin++) {
      gp_team *team = new_team(threads, spin);
      static const int64_t pieces[] = {0, 1, 2, 3, 4, 7, 100, 500};
      for (int round = 0; round < 40; round++)
        run_job(team, pieces[round % (int)(sizeof pieces / sizeof *pieces)]);
      gp_team_free(team);
    }
}

TEST(the_smallest_failure_is_reported) {
  for (int threads = 1; threads <= 4; threads++) {
    gp_team *team = new_team(threads, false);
    for (int round = 0; round < 50; round++) {
      job j = {.members = threads, .fail_from = 17, .fail_every = 1};
      CHECK_STATUS(gp_team_run(team, MAX_PIECES, run_piece, &j), GP_EFINITE);
      CHECK(strcmp(gp_error_text(), "piece 17 is not finite") == 0);
      for (int i = 0; i <= 17; i++) CHECK(j.runs[i] == 1);
      CHECK(count_runs(&j) <= 17 + threads); /* those that had already started */
      run_job(team, 20);                     /* the team goes on */
    }
    gp_team_free(team);
  }
}

TEST(running_allocates_nothing) {
  gp_team *team = new_team(3, false);
  gp_memory_info before = gp_memory();
  for (int i = 0; i < 20; i++) run_job(team, 50);
  CHECK(gp_memory().allocations == before.allocations);
  gp_team_free(team);
}

/* The job changes at once after each run: a late helper must not see the next one half written. */
TEST(many_short_jobs_follow_each_other) {
  for (int spin = 0; spin < 2; spin++) {
    gp_team *team = new_team(4, spin);
    int64_t total = 0;
    for (int round = 0; round < 3000; round++) {
      job j = {.members = 4};
      CHECK_STATUS(gp_team_run(team, 2 + round % 5, run_piece, &j), GP_OK);
      total += count_runs(&j) - (2 + round % 5);
    }
    CHECK(total == 0);
    gp_team_free(team);
  }
}

static gp_status sleep_a_little(void *context, int64_t index, int member) {
  (void)member;
  struct timespec pause = {.tv_nsec = 1000000};
  if (index % 2) nanosleep(&pause, NULL);
  atomic_fetch_add((_Atomic int *)context, 1);
  return GP_OK;
}

/* Pieces are long, so the caller sleeps until the last helper wakes it. */
TEST(the_caller_waits_for_long_pieces) {
  gp_team *team = new_team(3, false);
  _Atomic int done = 0;
  for (int round = 0; round < 20; round++)
    CHECK_STATUS(gp_team_run(team, 4, sleep_a_little, &done), GP_OK);
  CHECK(done == 80);
  gp_team_free(team);
}

TEST(idle_teams_end) {
  for (int round = 0; round < 20; round++) {
    gp_team *team = new_team(1 + round % 4, round % 2);
    gp_team_free(team);
  }
  gp_team_free(NULL);
}

TEST(teams_are_pinned_to_cores) {
  gp_team *team = NULL;
  int core = 0, none = 100000;
  CHECK_STATUS(gp_team_new(3, &core, 1, false, &team), GP_OK);
  run_job(team, 30);
  gp_team_free(team);
  size_t live = gp_memory().live;
  CHECK_STATUS(gp_team_new(3, &none, 1, false, &team), GP_ERANGE);
  CHECK_STATUS(gp_team_new(0, NULL, 0, false, &team), GP_EINVAL);
  CHECK(gp_memory().live == live);
}

TEST(no_failing_allocation_loses_a_thread) {
  size_t live = gp_memory().live;
  gp_team *team = NULL;
  gp_status status = GP_ENOMEM;
  for (uint64_t n = 1; status != GP_OK && n < 20; n++) {
    gp_memory_fail_at(n);
    status = gp_team_new(3, NULL, 0, false, &team);
    gp_memory_fail_at(0);
    if (status != GP_OK) CHECK(status == GP_ENOMEM && gp_memory().live == live);
  }
  CHECK_STATUS(status, GP_OK);
  gp_team_free(team);
  CHECK(gp_memory().live == live);
}

TEST_MAIN(every_piece_runs_once, the_smallest_failure_is_reported, running_allocates_nothing,
          many_short_jobs_follow_each_other, the_caller_waits_for_long_pieces, idle_teams_end,
          teams_are_pinned_to_cores, no_failing_allocation_loses_a_thread)
