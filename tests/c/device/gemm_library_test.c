/* tests/c/device/gemm_library_test.c - libraries of matrix products that lack functions or fail.
 *
 * This program has a dlopen and a dlsym of its own, which return a library made here. Each case is
 * a child process, because a process looks for a library once. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cpu/gemm_library.h"
#include "gpipe/device.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The sanitizers use dlsym to find the functions that they watch. */
int main(void) { return 0; }
#else

/* ---- a library ------------------------------------------------------------------------------- */

enum { SEQUENTIAL = 1, OPENMP = 2 }; /* as in dnnl_types.h */

/* The library's properties: which of its functions exist, and what products return. */
typedef struct made {
  const char *functions;
  unsigned runtime;
  int result;
} made;

static made library;
static int opened, threads = -1;

static int sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  (void)ta, (void)tb, (void)k, (void)b, (void)beta;
  for (int64_t i = 0; i < m && lda && ldb; i++)
    for (int64_t j = 0; j < n; j++) c[i * ldc + j] = alpha * a[0];
  return library.result;
}

static const void *version(void) {
  static struct {
    int major, minor, patch;
    const char *hash;
    unsigned runtime;
  } v = {9, 8, 7, "", 0};
  v.runtime = library.runtime;
  return &v;
}

static void set_threads(int count) { threads = count; }

void *dlopen(const char *name, int flags) {
  (void)flags;
  return name && strncmp(name, "libdnnl", 7) == 0 ? opened++, &library : NULL;
}

char *dlerror(void) {
  static char text[] = "not here";
  return text;
}

void *dlsym(void *handle, const char *name) {
  static const struct {
    const char *name;
    void (*function)(void);
  } symbols[] = {{"dnnl_sgemm", (void (*)(void))sgemm},
                 {"dnnl_version", (void (*)(void))version},
                 {"omp_set_num_threads", (void (*)(void))set_threads}};
  void *address = NULL;
  for (size_t i = 0; handle == &library && i < sizeof symbols / sizeof *symbols; i++)
    if (strcmp(name, symbols[i].name) == 0 && strstr(library.functions, name))
      memcpy(&address, &symbols[i].function, sizeof address);
  return address;
}

/* ---- in a process of its own ---------------------------------------------------------------- */

/* Runs the case's check with this library in a child; checks that failed there count here. */
static void with(made m, void (*check)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    library = m;
    unsetenv("GPIPE_GEMM");
    test_failures = 0;
    check();
    exit(test_failures);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

static gp_gemm product(void) {
  return (gp_gemm){.m = 3, .n = 4, .k = 5, .lda = 5, .ldb = 4, .ldc = 4, .alpha = 2};
}

static bool usable(void) {
  bool is = true;
  CHECK_STATUS(gp_gemm_library_prepare(&is), GP_OK);
  return is;
}

static void check_unusable(const char *reason) {
  const char *why = "";
  CHECK(!usable());
  CHECK(strcmp(gp_gemm_library(&why), "") == 0);
  CHECK_TEXT(why, reason);
  CHECK(opened == 1); /* the library is looked for once */
}

static void lacks(void) { check_unusable("lacks dnnl_sgemm or dnnl_version"); }
static void has_threads(void) { check_unusable("cannot be held to one thread"); }

TEST(a_library_without_what_is_needed_is_not_used) {
  with((made){"dnnl_version omp_set_num_threads", OPENMP, 0}, lacks);
  with((made){"dnnl_sgemm omp_set_num_threads", OPENMP, 0}, lacks);
  with((made){"dnnl_sgemm dnnl_version", OPENMP, 0}, has_threads);
}

static void multiply(void) {
  float a[15] = {3}, b[20] = {0}, c[12] = {0};
  const char *why = NULL;
  CHECK(usable());
  CHECK(strcmp(gp_gemm_library(&why), "oneDNN 9.8.7") == 0 && *why == '\0');
  gp_gemm g = product();
  CHECK_STATUS(gp_gemm_library_run(&g, a, b, c), GP_OK);
  for (int i = 0; i < 12; i++) CHECK(c[i] == 6);
  CHECK(threads == (library.runtime == OPENMP ? 1 : -1));
}

TEST(a_library_is_held_to_one_thread_where_it_has_more) {
  with((made){"dnnl_sgemm dnnl_version", SEQUENTIAL, 0}, multiply);
  with((made){"dnnl_sgemm dnnl_version omp_set_num_threads", OPENMP, 0}, multiply);
}

/* The library returns 1, which is dnnl_out_of_memory. */
static void fail(void) {
  float a[15] = {3}, b[20] = {0}, c[12] = {0};
  bool memory = library.result == 1;
  CHECK(usable());
  gp_gemm g = product();
  CHECK_STATUS(gp_gemm_library_run(&g, a, b, c), memory ? GP_ENOMEM : GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), "3x4x5");
  if (!memory) CHECK_TEXT(gp_error_text(), "status 5");
}

TEST(a_product_that_fails_says_which) {
  with((made){"dnnl_sgemm dnnl_version", SEQUENTIAL, 1}, fail);
  with((made){"dnnl_sgemm dnnl_version", SEQUENTIAL, 5}, fail);
}

TEST_MAIN(a_library_without_what_is_needed_is_not_used,
          a_library_is_held_to_one_thread_where_it_has_more, a_product_that_fails_says_which)

#endif
