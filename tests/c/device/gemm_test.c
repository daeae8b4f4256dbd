/* tests/c/device/gemm_test.c - matrix products against a naive one: all transpositions, odd sizes,
 * rows with gaps, both kernels, cuts, threads. */
#include "device/cpu/gemm.h"

#include <float.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "base/thread.h"
#include "device/cpu/gemm_plain.h"
#include "device/team.h"
#include "test.h"

/* f32 runs on the library (or its replacement), f32 and f64 on our own kernel. */
typedef enum kernel { KERNEL_F32, KERNEL_PLAIN_F32, KERNEL_F64, KERNEL_COUNT } kernel;

static uint32_t random_state = 1;
static double draw(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return (double)(random_state >> 8) * 0x1p-23 - 1;
}

/* Matrices as doubles that floats hold exactly. */
typedef struct matrices {
  gp_gemm g;
  int64_t a_count, b_count, c_count;
  double *a, *b, *c;
} matrices;

static double *draw_many(int64_t count) {
  double *values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = (double)(float)draw();
  return values;
}

/* Makes matrices whose rows have `gap` elements more than the product needs. */
static matrices make(gp_gemm g, int64_t gap) {
  g.lda = (g.transpose_a ? g.m : g.k) + gap + 1;
  g.ldb = (g.transpose_b ? g.k : g.n) + gap;
  g.ldc = g.n + gap;
  if (g.ldb == 0) g.ldb = 1;
  if (g.ldc == 0) g.ldc = 1;
  matrices m = {.g = g};
  m.a_count = (g.transpose_a ? g.k : g.m) * g.lda;
  m.b_count = (g.transpose_b ? g.n : g.k) * g.ldb;
  m.c_count = g.m * g.ldc;
  m.a = draw_many(m.a_count);
  m.b = draw_many(m.b_count);
  m.c = draw_many(m.c_count);
  return m;
}

static void drop(matrices *m) {
  free(m->a);
  free(m->b);
  free(m->c);
}

/* Computes an element by definition, and the sum of the sizes of its terms. */
static double naive(const matrices *m, int64_t i, int64_t j, double *size) {
  const gp_gemm *g = &m->g;
  double before = g->beta == 0 ? 0 : g->beta * m->c[i * g->ldc + j], sum = before;
  *size = fabs(before);
  for (int64_t k = 0; k < g->k; k++) {
    double a = g->transpose_a ? m->a[k * g->lda + i] : m->a[i * g->lda + k];
    double b = g->transpose_b ? m->b[j * g->ldb + k] : m->b[k * g->ldb + j];
    sum += g->alpha * a * b;
    *size += fabs(g->alpha * a * b);
  }
  return sum;
}

/* Source: Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1: no order of
 * summation errs by more than about k roundings of the sum of sizes. A lost term is far above. */
static double error_bound(const gp_gemm *g, kernel which, double size) {
  double epsilon = which == KERNEL_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
  return (double)(g->k + 4) * epsilon * size; /* twice the bound: the naive sum errs in f64 too */
}

static float *to_floats(const double *values, int64_t count) {
  float *floats = malloc((size_t)count * sizeof *floats);
  for (int64_t i = 0; i < count; i++) floats[i] = (float)values[i];
  return floats;
}

/* Runs our kernel as the dispatcher does: beta first. */
static gp_status run_plain_f32(const gp_gemm *g, const float *a, const float *b, float *c) {
  gp_gemm nothing = *g;
  nothing.alpha = 0;
  GP_TRY(gp_gemm_f32(&nothing, a, b, c));
  if (g->k > 0) gp_gemm_plain_f32(g, a, b, c);
  return GP_OK;
}

/* Multiplies, and returns the product as doubles. */
static double *multiply(const matrices *m, kernel which) {
  double *out = malloc((size_t)m->c_count * sizeof *out + 1);
  if (which == KERNEL_F64) {
    memcpy(out, m->c, (size_t)m->c_count * sizeof *out);
    CHECK_STATUS(gp_gemm_f64(&m->g, m->a, m->b, out), GP_OK);
    return out;
  }
  float *a = to_floats(m->a, m->a_count), *b = to_floats(m->b, m->b_count);
  float *c = to_floats(m->c, m->c_count);
  gp_status status =
      which == KERNEL_F32 ? gp_gemm_f32(&m->g, a, b, c) : run_plain_f32(&m->g, a, b, c);
  CHECK_STATUS(status, GP_OK);
  for (int64_t i = 0; i < m->c_count; i++) out[i] = c[i];
  free(a);
  free(b);
  free(c);
  return out;
}

static void check_product(gp_gemm g, int64_t gap, kernel which) {
  matrices m = make(g, gap);
  double *out = multiply(&m, which);
  int wrong = 0;
  for (int64_t i = 0; i < g.m; i++)
    for (int64_t j = 0; j < m.g.ldc; j++) {
      int64_t at = i * m.g.ldc + j;
      double size = 0, wanted = j < g.n ? naive(&m, i, j, &size) : m.c[at]; /* the gap stays */
      wrong += !(fabs(out[at] - wanted) <= error_bound(&g, which, size));
    }
  if (wrong)
    printf("kernel %d: %lldx%lldx%lld, transposed %d %d, gap %lld: %d elements\n", (int)which,
           (long long)g.m, (long long)g.n, (long long)g.k, g.transpose_a, g.transpose_b,
           (long long)gap, wrong);
  CHECK(wrong == 0);
  free(out);
  drop(&m);
}

TEST(products_of_any_size_are_right) {
  static const int64_t sizes[][3] = {{1, 1, 1},    {1, 40, 7},   {7, 1, 300},  {8, 32, 256},
                                     {9, 33, 257}, {13, 5, 64},  {97, 31, 19}, {100, 70, 513},
                                     {3, 200, 2},  {64, 64, 64}, {193, 17, 5}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int transposed = 0; transposed < 4; transposed++)
      for (int which = 0; which < KERNEL_COUNT; which++) {
        gp_gemm g = {.transpose_a = transposed & 1,
                     .transpose_b = transposed & 2,
                     .m = sizes[s][0],
                     .n = sizes[s][1],
                     .k = sizes[s][2],
                     .alpha = 1};
        check_product(g, 0, (kernel)which);
        g.alpha = -0.75, g.beta = 0.5;
        check_product(g, 3, (kernel)which);
        g.alpha = g.beta = 1;
        check_product(g, 1, (kernel)which);
      }
}

TEST(empty_products_apply_beta) {
  static const int64_t sizes[][3] = {{0, 5, 5}, {5, 0, 5}, {5, 5, 0}, {0, 0, 0}, {1, 3, 0}};
  static const double betas[] = {0, 1, 0.5};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int b = 0; b < 3; b++)
      for (int which = 0; which < KERNEL_COUNT; which++)
        for (int transposed = 0; transposed < 4; transposed++)
          check_product((gp_gemm){.transpose_a = transposed & 1,
                                  .transpose_b = transposed & 2,
                                  .m = sizes[s][0],
                                  .n = sizes[s][1],
                                  .k = sizes[s][2],
                                  .alpha = 1,
                                  .beta = betas[b]},
                        1, (kernel)which);
}

TEST(a_beta_of_zero_forgets_what_was_there) {
  for (int which = 0; which < KERNEL_COUNT; which++)
    for (int64_t k = 0; k <= 20; k += 20) {
      gp_gemm g = {.m = 9, .n = 35, .k = k, .alpha = 1};
      matrices m = make(g, 0);
      for (int64_t i = 0; i < m.c_count; i++) m.c[i] = i % 2 ? NAN : INFINITY;
      double *out = multiply(&m, (kernel)which);
      int wrong = 0;
      for (int64_t i = 0; i < m.c_count; i++) wrong += !isfinite(out[i]);
      CHECK(wrong == 0);
      free(out);
      drop(&m);
    }
}

TEST(values_that_are_not_finite_go_through) {
  float a[4] = {1, INFINITY, 1, 2}, b[2] = {1, 0}, c[2] = {0, 0};
  gp_gemm g = {.m = 2, .n = 1, .k = 2, .lda = 2, .ldb = 1, .ldc = 1, .alpha = 1};
  CHECK_STATUS(gp_gemm_f32(&g, a, b, c), GP_OK);
  CHECK(isnan(c[0]) && c[1] == 1);
  c[0] = 0;
  gp_gemm_plain_f32(&g, a, b, c);
  CHECK(isnan(c[0]));
}

TEST(bad_arguments_are_errors) {
  float x[4] = {0};
  gp_gemm good = {.m = 2, .n = 2, .k = 2, .lda = 2, .ldb = 2, .ldc = 2, .alpha = 1}, g = good;
  CHECK_STATUS(gp_gemm_f32(&g, x, x, x), GP_OK);
  g.m = -1;
  CHECK_STATUS(gp_gemm_f32(&g, x, x, x), GP_EINVAL);
  g = good, g.lda = 1;
  CHECK_STATUS(gp_gemm_f32(&g, x, x, x), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "lda is 1, expected at least 2");
  g = good, g.ldb = 1;
  CHECK_STATUS(gp_gemm_f32(&g, x, x, x), GP_EINVAL);
  g = good, g.ldc = 0;
  CHECK_STATUS(gp_gemm_f64(&g, (double[4]){0}, (double[4]){0}, (double[4]){0}), GP_EINVAL);
}

/* ---- bits ---- */

/* Our kernel promises more than the library: C may be cut anywhere without changing a bit. */
TEST(cutting_our_product_changes_no_bit) {
  gp_gemm g = {.m = 101, .n = 77, .k = 600, .alpha = 0.3, .beta = 1};
  matrices m = make(g, 0);
  float *a = to_floats(m.a, m.a_count), *b = to_floats(m.b, m.b_count);
  float *whole = to_floats(m.c, m.c_count), *cut = to_floats(m.c, m.c_count);
  gp_gemm_plain_f32(&m.g, a, b, whole);
  for (int64_t i = 0; i < g.m; i += 19)
    for (int64_t j = 0; j < g.n; j += 10) {
      gp_gemm part = m.g;
      part.m = i + 19 < g.m ? 19 : g.m - i;
      part.n = j + 10 < g.n ? 10 : g.n - j;
      gp_gemm_plain_f32(&part, a + i * m.g.lda, b + j, cut + i * m.g.ldc + j);
    }
  CHECK(memcmp(whole, cut, (size_t)m.c_count * sizeof *whole) == 0);
  float *all[] = {a, b, whole, cut};
  for (int i = 0; i < 4; i++) free(all[i]);
  drop(&m);
}

typedef struct slices {
  const gp_gemm *g;
  const float *a, *b;
  float *c;
} slices;

static gp_status multiply_slice(void *context, int64_t index, int member) {
  const slices *s = context;
  gp_gemm part = *s->g;
  (void)member;
  part.m = 16;
  return gp_gemm_f32(&part, s->a + index * 16 * part.lda, s->b, s->c + index * 16 * part.ldc);
}

/* Slices have a fixed size, so the bits are the same on any number of threads. */
TEST(threads_change_no_bit) {
  gp_gemm g = {.m = 128, .n = 96, .k = 300, .alpha = 1};
  matrices m = make(g, 0);
  float *a = to_floats(m.a, m.a_count), *b = to_floats(m.b, m.b_count);
  float *first = to_floats(m.c, m.c_count), *other = to_floats(m.c, m.c_count);
  for (int threads = 1; threads <= 4; threads++) {
    gp_team *team = NULL;
    CHECK_STATUS(gp_team_new(threads, NULL, 0, false, &team), GP_OK);
    float *c = threads == 1 ? first : other;
    for (int round = 0; round < 5; round++) {
      CHECK_STATUS(gp_team_run(team, 8, multiply_slice, &(slices){&m.g, a, b, c}), GP_OK);
      CHECK(memcmp(first, c, (size_t)m.c_count * sizeof *c) == 0);
    }
    gp_team_free(team);
  }
  float *all[] = {a, b, first, other};
  for (int i = 0; i < 4; i++) free(all[i]);
  drop(&m);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

/* The handler uses some stack, at whatever address the stack pointer holds. */
static void use_stack(int number) {
  volatile char room[16384];
  (void)number;
  for (size_t i = 0; i < sizeof room; i++) room[i] = 85;
  handled++;
}

/* Ctrl-C and timers arrive on the script's own thread, where the library's kernels use the stack
 * pointer as a plain register. */
TEST(a_signal_during_a_product_writes_into_no_memory_of_it) {
  gp_gemm g = {.m = 384, .n = 384, .k = 384, .alpha = 1};
  matrices m = make(g, 0);
  float *a = to_floats(m.a, m.a_count), *b = to_floats(m.b, m.b_count);
  float *alone = to_floats(m.c, m.c_count), *signalled = to_floats(m.c, m.c_count);
  struct sigaction action = {.sa_handler = use_stack, .sa_flags = SA_RESTART}, before;
  struct itimerval often = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}};
  CHECK_STATUS(gp_gemm_f32(&m.g, a, b, alone), GP_OK);
  sigaction(SIGALRM, &action, &before);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int round = 0; round < 10000 && handled < 200; round++) {
    CHECK_STATUS(gp_gemm_f32(&m.g, a, b, signalled), GP_OK);
    if (memcmp(alone, signalled, (size_t)m.c_count * sizeof *alone) != 0) break;
  }
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  sigaction(SIGALRM, &before, NULL);
  CHECK(handled >= 200); /* they are held back, not lost */
  CHECK(memcmp(alone, signalled, (size_t)m.c_count * sizeof *alone) == 0);
  float *all[] = {a, b, alone, signalled};
  for (int i = 0; i < 4; i++) free(all[i]);
  drop(&m);
}

TEST(the_library_is_named_or_its_absence_explained) {
  const char *why = NULL;
  const char *name = gp_gemm_library(&why);
  CHECK(gp_gemm_library(NULL) == name);
  CHECK(why && (strlen(name) > 0) != (strlen(why) > 0));
  CHECK(strlen(name) == 0 || strncmp(name, "oneDNN ", 7) == 0);
  const char *wish = getenv("GPIPE_GEMM");
  if (wish && strcmp(wish, "plain") == 0) CHECK(strlen(name) == 0);
  CHECK(getenv("OMP_WAIT_POLICY") == NULL || strcmp(getenv("OMP_WAIT_POLICY"), "passive") != 0);
}

static bool gets(int number) {
  sigset_t held;
  pthread_sigmask(SIG_SETMASK, NULL, &held);
  return !sigismember(&held, number);
}

TEST(signals_wait_from_the_first_hold_to_the_last_release) {
  const float a[4] = {1, 2, 3, 4};
  float c[4];
  gp_gemm g = {.m = 2, .n = 2, .k = 2, .lda = 2, .ldb = 2, .ldc = 2, .alpha = 1};
  gp_gemm_hold();
  gp_gemm_hold();
  CHECK_STATUS(gp_gemm_f32(&g, a, a, c), GP_OK);
  CHECK(!gets(SIGINT) && gets(SIGSEGV)); /* a fault of the product itself must not wait */
  gp_gemm_release();
  CHECK(!gets(SIGINT));
  gp_gemm_release();
  CHECK(gets(SIGINT));
}

TEST_MAIN(products_of_any_size_are_right, empty_products_apply_beta,
          a_beta_of_zero_forgets_what_was_there, values_that_are_not_finite_go_through,
          bad_arguments_are_errors, cutting_our_product_changes_no_bit, threads_change_no_bit,
          a_signal_during_a_product_writes_into_no_memory_of_it,
          signals_wait_from_the_first_hold_to_the_last_release,
          the_library_is_named_or_its_absence_explained)
