/* tests/c/base/status_test.c - statuses, their names, and the error text of each thread. */
#include "base/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "test.h"

TEST(every_status_has_a_code) {
  for (int i = 0; i < GP_STATUS_COUNT; i++) CHECK(strlen(gp_status_code((gp_status)i)) > 1);
  CHECK(strcmp(gp_status_code(GP_OK), "ok") == 0);
  CHECK(strcmp(gp_status_code(GP_ESHAPE), "shape") == 0);
  CHECK(strcmp(gp_status_code(GP_EINJECTED), "injected") == 0);
  CHECK(strcmp(gp_status_code((gp_status)999), "unknown") == 0);
}

TEST(failing_sets_the_text) {
  CHECK_STATUS(gp_fail(GP_ESHAPE, "input is %dx%d", 3, 4), GP_ESHAPE);
  CHECK(strcmp(gp_error_text(), "input is 3x4") == 0);
  CHECK_STATUS(gp_fail_prefix(GP_ESHAPE, "3.fc"), GP_ESHAPE);
  CHECK(strcmp(gp_error_text(), "3.fc: input is 3x4") == 0);
  CHECK_STATUS(gp_fail_text(GP_EIO, "100% as it stands"), GP_EIO);
  CHECK(strcmp(gp_error_text(), "100% as it stands") == 0);
}

TEST(the_present_text_may_be_an_argument) {
  gp_fail(GP_EIO, "inner");
  gp_fail(GP_EIO, "outer (%s)", gp_error_text());
  CHECK(strcmp(gp_error_text(), "outer (inner)") == 0);
  gp_fail_text(GP_EIO, gp_error_text() + 6);
  CHECK(strcmp(gp_error_text(), "(inner)") == 0);
}

TEST(long_texts_are_cut) {
  char *text = calloc(100000, 1);
  memset(text, 'x', 99999);
  gp_fail_text(GP_EIO, text);
  CHECK(strlen(gp_error_text()) > 1000 && strlen(gp_error_text()) < 99999);
  gp_fail(GP_EIO, "%s", text);
  gp_fail_prefix(GP_EIO, "name");
  CHECK(strncmp(gp_error_text(), "name: xxx", 9) == 0);
  free(text);
}

static void *fail_elsewhere(void *context) {
  (void)context;
  gp_fail(GP_EIO, "another thread");
  return NULL;
}

TEST(each_thread_has_its_own_text) {
  pthread_t thread;
  gp_fail(GP_EIO, "mine");
  CHECK(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
  pthread_join(thread, NULL);
  CHECK(strcmp(gp_error_text(), "mine") == 0);
}

static gp_status try_something(gp_status status) {
  GP_TRY(status);
  return GP_OK;
}

TEST(try_passes_failures_on) {
  CHECK_STATUS(try_something(GP_OK), GP_OK);
  CHECK_STATUS(try_something(GP_EDTYPE), GP_EDTYPE);
}

TEST(interrupts_are_a_flag) {
  CHECK(!gp_interrupt_pending());
  gp_interrupt_request();
  gp_interrupt_request();
  CHECK(gp_interrupt_pending());
  gp_interrupt_clear();
  CHECK(!gp_interrupt_pending());
}

/* ---- broken invariants ---------------------------------------------------------------------- */

static sigjmp_buf trapped;

static void on_trap(int number) { siglongjmp(trapped, number); }

/* SIGILL or SIGTRAP would end the process: the test catches the trap and reads the message. */
TEST(a_broken_invariant_says_where_and_traps) {
  static char text[256];
  static int ends[2], before, number;
  before = dup(STDERR_FILENO);
  CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
  struct sigaction action = {.sa_handler = on_trap}, ill, trap;
  sigaction(SIGILL, &action, &ill);
  sigaction(SIGTRAP, &action, &trap);
  number = sigsetjmp(trapped, 1);
  if (!number) GP_ASSERT(ends[0] < 0);
  sigaction(SIGILL, &ill, NULL);
  sigaction(SIGTRAP, &trap, NULL);
  dup2(before, STDERR_FILENO);
  CHECK(number == SIGILL || number == SIGTRAP);
  CHECK(read(ends[0], text, sizeof text - 1) > 0);
  CHECK_TEXT(text, "status_test.c:");
  CHECK_TEXT(text, "ends[0] < 0");
  close(before), close(ends[0]), close(ends[1]);
}

TEST_MAIN(a_broken_invariant_says_where_and_traps, every_status_has_a_code, failing_sets_the_text,
          the_present_text_may_be_an_argument, long_texts_are_cut, each_thread_has_its_own_text,
          try_passes_failures_on, interrupts_are_a_flag)
