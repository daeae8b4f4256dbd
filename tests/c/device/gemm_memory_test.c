/* tests/c/device/gemm_memory_test.c - products where memory runs out: an error or a result, never
 * the end of the process.
 *
 * This program has a malloc of its own, which the library calls too, and which fails when told to.
 * Each case is a child process, since the library starts once per process. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cpu/gemm.h"
#include "device/cpu/headroom.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
/* The sanitizers have a malloc of their own. */
int main(void) { return 0; }
#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* Allocations fail from number `first` on, `count` of them; 0: none. */
static _Atomic long made, first, count;

static bool fails(void) {
  long number = atomic_fetch_add(&made, 1);
  if (number < first || number >= first + count) return false;
  errno = ENOMEM;
  return true;
}

static void fail_next(long how_many) {
  first = atomic_load(&made);
  count = how_many;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return fails() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *memory, size_t bytes) { return fails() ? NULL : __libc_realloc(memory, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  void *block = fails() ? NULL : __libc_memalign(alignment, bytes);
  if (!block) return ENOMEM;
  *memory = block;
  return 0;
}

enum { SIDE = 300 };
static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];

/* Multiplies all transpositions of matrices and vectors; false for an error that is not about
 * memory. */
static bool multiply_all(int side) {
  bool good = true;
  for (int kind = 0; kind < 24; kind++) {
    gp_gemm g = {.transpose_a = kind & 1,
                 .transpose_b = kind & 2,
                 .m = side,
                 .n = side,
                 .k = side,
                 .lda = side,
                 .ldb = side,
                 .ldc = side,
                 .alpha = 1,
                 .beta = kind & 4 ? 1 : 0};
    if (kind / 8 == 1) g.m = 1;
    if (kind / 8 == 2) g.n = 1;
    gp_status status = gp_gemm_f32(&g, a, b, c);
    good = good && (status == GP_OK || status == GP_ENOMEM);
  }
  return good;
}

/* Runs products in a child while allocations fail, and again when they do not: then all must
 * succeed. */
static bool survives(long from, long how_many, int side) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    count = how_many;
    first = made + from;
    bool good = multiply_all(side);
    count = 0;
    exit(good && multiply_all(side) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0)
    printf("allocation %ld of %ld, side %d: status 0x%x\n", from, how_many, side, status);
  return status == 0;
}

/* Runs products in a child that may use only so much more address space than it has now. */
static bool survives_limit(long more) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    long pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "r");
    if (!sizes || fscanf(sizes, "%ld", &pages) != 1) exit(2);
    rlim_t limit = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + more);
    struct rlimit before;
    if (getrlimit(RLIMIT_AS, &before)) exit(4);
    if (setrlimit(RLIMIT_AS, &(struct rlimit){limit, before.rlim_max})) exit(3);
    bool good = multiply_all(8);
    setrlimit(RLIMIT_AS, &before);
    exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) printf("%ld bytes more: status 0x%x\n", more, status);
  return status == 0;
}

/* With 112 MiB all succeeds, with little there is an error; in between one of the two must
 * happen. */
TEST(a_limit_while_the_library_starts_is_survived) {
  for (long more = 0; more < 128L << 20; more += 2L << 20) CHECK(survives_limit(more));
  for (long more = 44L << 20; more < 48L << 20; more += 256L << 10) CHECK(survives_limit(more));
}

/* Calls operator new as C++ code does. */
TEST(operator_new_has_a_reserve_between_begin_and_end) {
  void *(*operator_new)(size_t) = NULL;
  void *library = dlopen("libstdc++.so.6", RTLD_NOW), *block = NULL;
  void *address = library ? dlsym(library, "_Znwm") : NULL;
  if (!address) return; /* another C++ library: nothing to call */
  memcpy(&operator_new, &address, sizeof address);
  CHECK_STATUS(gp_headroom_begin(1 << 20), GP_OK);
  for (int how_many = 1; how_many < 8; how_many++) {
    fail_next(how_many);
    block = operator_new(100);
    fail_next(0);
    CHECK(block != NULL);
    free(block);
  }
  gp_headroom_end();
  fail_next(1);
  gp_status status = gp_headroom_begin(1 << 20);
  fail_next(0);
  CHECK_STATUS(status, GP_ENOMEM);
}

TEST(memory_that_stays_away_while_the_library_starts_is_an_error) {
  CHECK(survives(0, 1000000, 8));
  CHECK(survives(1, 1000000, 8));
}

/* This test is the last one: from here on the children find the library started. */
TEST(a_workspace_that_cannot_be_had_is_an_error) {
  CHECK(multiply_all(8));
  for (int side = 8; side <= SIDE; side += 73) {
    CHECK(survives(0, 1, side));
    CHECK(survives(1, 1, side));
    CHECK(survives(0, 1000000, side));
  }
}

TEST_MAIN(a_limit_while_the_library_starts_is_survived,
          operator_new_has_a_reserve_between_begin_and_end,
          memory_that_stays_away_while_the_library_starts_is_an_error,
          a_workspace_that_cannot_be_had_is_an_error)
#endif
