/* tests/c/test.h - the harness of the C unit tests: one header, no library.
 *
 *   TEST(adds) { CHECK(1 + 1 == 2); }
 *   TEST_MAIN(adds)
 *
 * A failed check prints where it stands and what it compared, and the test goes on; a test that is
 * not listed is an unused function, which the compiler reports. The last line of the output is "N
 * passed, M failed"; the exit status is 1 when anything failed. */
#ifndef GP_TESTS_TEST_H
#define GP_TESTS_TEST_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpipe.h"

/* A sanitizer ends the process when it asks for too much memory, which is what some tests do. The
 * names are the sanitizers' own. */
#if defined(__SANITIZE_ADDRESS__)
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#elif defined(__SANITIZE_THREAD__)
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
#endif

static int test_failures; /* failed checks of the running test */

#define TEST(name) static void name(void)

#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)

/* Checks |a - b| <= tolerance; never true for NaN. */
#define CHECK_NEAR(a, b, tolerance)                                                                \
  test_near((double)(a), (double)(b), (double)(tolerance), #a " ~ " #b, __FILE__, __LINE__)

/* Checks that the call returns this status; prints the error text when it does not. */
#define CHECK_STATUS(call, wanted) test_status((call), (wanted), #call, __FILE__, __LINE__)

/* Checks that the text (often gp_error_text()) holds this part. */
#define CHECK_TEXT(text, part) test_text((text), (part), __FILE__, __LINE__)

static inline void test_check(bool ok, const char *what, const char *file, int line) {
  if (ok) return;
  test_failures++;
  printf("%s:%d: failed: %s\n", file, line, what);
}

static inline void test_near(double a, double b, double tolerance, const char *what,
                             const char *file, int line) {
  if (fabs(a - b) <= tolerance || a == b) return;
  test_failures++;
  printf("%s:%d: failed: %s: %.17g and %.17g differ by %.3g, allowed %.3g\n", file, line, what, a,
         b, fabs(a - b), tolerance);
}

static inline void test_status(gp_status status, gp_status wanted, const char *what,
                               const char *file, int line) {
  if (status == wanted) return;
  test_failures++;
  printf("%s:%d: failed: %s: is '%s' (%s), expected '%s'\n", file, line, what,
         gp_status_code(status), status == GP_OK ? "no error" : gp_error_text(),
         gp_status_code(wanted));
}

static inline void test_text(const char *text, const char *part, const char *file, int line) {
  if (strstr(text, part)) return;
  test_failures++;
  printf("%s:%d: failed: '%s' does not hold '%s'\n", file, line, text, part);
}

/* names is the argument list of TEST_MAIN as text: "first, second". */
static inline int test_run(void (*const *tests)(void), int count, const char *names) {
  int failed = 0;
  for (int i = 0; i < count; i++) {
    names += strspn(names, ", \n");
    int length = (int)strcspn(names, ", \n");
    test_failures = 0;
    tests[i]();
    if (test_failures > 0) printf("FAILED %.*s\n", length, names);
    failed += test_failures > 0;
    names += length;
  }
  printf("%d passed, %d failed\n", count - failed, failed);
  return failed > 0;
}

#define TEST_MAIN(...)                                                                             \
  int main(void) {                                                                                 \
    void (*const tests[])(void) = {__VA_ARGS__};                                                   \
    return test_run(tests, (int)(sizeof tests / sizeof *tests), #__VA_ARGS__);                     \
  }

#endif
