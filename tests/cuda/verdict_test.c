/* tests/cuda/verdict_test.c - decisions that a GPU makes itself (device/verdict.h), and the scales
 * and updates that follow them.
 *
 * The decision must equal that of engine/update/norm.c. A kernel that follows a decision in memory
 * must leave the same bits as one that gets it as arguments. */
#include <math.h>

#include "gpu_memory.h"
#include "optim/optim.h"

/* ---- decisions ------------------------------------------------------------------------------- */

enum { PARTS = 3, LONG = 700 }; /* LONG: more sums than a block has threads */

/* The sums of three devices, one of which has none. The norm covers every second parameter, in
 * reverse order, and one without a gradient. */
typedef struct question {
  double unscale, clip_norm;
  int strict, fault; /* fault: the device that has it; -1: none */
  double last;       /* the last sum, which is not listed */
} question;

typedef struct lists {
  gp_verdict_terms terms;
  int32_t first[PARTS + 1], listed[LONG / 2 + 1];
} lists;

static const int32_t begins[PARTS + 1] = {
    0, GP_VERDICT_HEAD + LONG / 3, 2 * GP_VERDICT_HEAD + LONG / 3, 3 * GP_VERDICT_HEAD + LONG};

static bool is_head(int32_t word) {
  for (int k = 0; k < PARTS; k++)
    if (word >= begins[k] && word < begins[k] + GP_VERDICT_HEAD) return true;
  return false;
}

static void fill_words(const question *q, double *words) {
  for (int32_t i = 0; i < begins[PARTS]; i++) words[i] = 1e-3 * (i % 17) + 1e-9 * i;
  words[begins[PARTS] - 1] = q->last;
  for (int k = 0; k < PARTS; k++) {
    gp_gpu_fault fault = {.key = k == q->fault ? 5 : GP_GPU_NO_FAULT, .value = k};
    memcpy(words + begins[k], &fault, sizeof fault);
  }
}

static void fill_lists(const question *q, lists *l) {
  *l = (lists){.terms = {q->unscale, q->clip_norm, q->strict, PARTS, 0}};
  memcpy(l->first, begins, sizeof begins);
  for (int32_t word = begins[PARTS] - 2; word >= 0 && l->terms.listed_count < LONG / 2; word -= 2)
    if (!is_head(word)) l->listed[l->terms.listed_count++] = word;
  l->listed[l->terms.listed_count++] = -1;
}

/* Decides as the host does. */
static gp_verdict decide_here(const question *q, const lists *l, const double *words) {
  double sum = 0;
  bool broken = false;
  for (int32_t i = 0; i < begins[PARTS]; i++)
    broken = broken || (!is_head(i) && !isfinite(words[i]));
  for (int32_t k = 0; k < l->terms.listed_count; k++)
    sum += l->listed[k] < 0 ? 0 : words[l->listed[k]];
  const double norm = sqrt(sum) * q->unscale;
  const bool overflow = broken && q->strict;
  const bool clips = !overflow && q->clip_norm > 0 && norm > q->clip_norm;
  return (gp_verdict){q->unscale, clips ? q->clip_norm / (norm + 1e-6) : 1,
                      !overflow && q->fault < 0};
}

TEST(a_gpu_decides_as_the_host_does) {
  if (!open_gpu()) return;
  static const question questions[] = {
      {1, 0, 1, -1, 0.5},        {1, 0.3, 1, -1, 0.5},
      {1, 1e6, 1, -1, 0.5},      {1 / 1024.0, 1e-4, 1, -1, 0.5},
      {1, 0.3, 1, -1, NAN},      {1, 0.3, 0, -1, INFINITY},
      {1, 0.3, 1, 2, 0.5},       {1, 0, 1, 0, 0.5},
      {1.0 / 3, 0.1, 0, 1, NAN},
  };
  double words[3 * GP_VERDICT_HEAD + LONG];
  lists l;
  void *there = gpu_alloc(sizeof l), *sums = gpu_alloc(sizeof words);
  gp_verdict got, *verdict = gpu_alloc(sizeof got);
  for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
    fill_words(&questions[i], words);
    fill_lists(&questions[i], &l);
    gpu_copy(there, &l, sizeof l), gpu_copy(sums, words, sizeof words);
    CHECK_STATUS(api->decide(gpu, there, sums, verdict), GP_OK);
    gpu_copy(&got, verdict, sizeof got);
    const gp_verdict want = decide_here(&questions[i], &l, words);
    CHECK(got.unscale == want.unscale && got.clip == want.clip && got.go == want.go);
  }
  api->free(gpu, there), api->free(gpu, sums), api->free(gpu, verdict);
}

/* ---- scales and updates that follow ---------------------------------------------------------- */

enum { VALUE, GRAD, MOMENT1, MOMENT2, MOMENT3, HALF, ARENAS };

static const int64_t sizes[] = {0, 1, 7, 1000, 5003};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Makes a line of drawn numbers where `drawn`, else of zeros. */
static gpu_value line(gp_dtype dtype, int64_t n, bool drawn, int shift) {
  gp_tensor *from = uniform(dtype, (gp_shape){1, {n}}, drawn ? -2 : 0, drawn ? 2 : 0);
  gpu_value value = gpu_value_of(from, shift, false);
  gp_tensor_free(from);
  return value;
}

static gpu_value copy_of(const gpu_value *value, int shift) {
  gp_tensor *here = gpu_fetch(value);
  gpu_value made = gpu_value_of(here, shift, false);
  gp_tensor_free(here);
  return made;
}

static bool are_same(const gpu_value *a, const gpu_value *b) {
  gp_tensor *x = gpu_fetch(a), *y = gpu_fetch(b);
  bool same = same_bits(x, y);
  gp_tensor_free(x), gp_tensor_free(y);
  return same;
}

static gp_verdict *verdict_there(double unscale, double clip, int go) {
  const gp_verdict verdict = {unscale, clip, go};
  gp_verdict *there = gpu_alloc(sizeof verdict);
  gpu_copy(there, &verdict, sizeof verdict);
  return there;
}

/* The last size takes more than one turn of the blocks that read a verdict, on the host; on a GPU
 * with its many blocks that would take far more elements. */
TEST(gradients_are_scaled_by_a_verdict_as_by_its_factors) {
  if (!open_gpu()) return;
  static const double factors[][2] = {{1, 1}, {0.3, 1}, {1, 0.7}, {1.0 / 3, 0.7}};
  static const int64_t lengths[] = {1, 1003, 1 << 19};
  for (int i = 0; i < 3 * 4 * 2 * 2; i++) {
    const double *by = factors[i / 3 % 4];
    const gp_dtype dtype = i / 12 % 2 ? GP_F64 : GP_F32;
    gpu_value a = line(dtype, lengths[i % 3], true, i / 24), b = copy_of(&a, 0);
    gp_verdict *verdict = verdict_there(by[0], by[1], 1);
    const gp_gpu_run first = {dtype, lengths[i % 3], a.data}, second = {dtype, first.n, b.data};
    CHECK_STATUS(api->scale_by(gpu, verdict, &first, 1), GP_OK);
    for (int k = 0; k < 2; k++) CHECK_STATUS(api->scale(gpu, &second, 1, by[k]), GP_OK);
    CHECK(are_same(&a, &b));
    gpu_drop(&a), gpu_drop(&b), api->free(gpu, verdict);
  }
}

static const gp_optim_hyper hypers[] = {
    {.kind = GP_OPTIM_SGD, .lr = 0.1, .weight_decay = 0.01},
    {.kind = GP_OPTIM_SGD, .lr = 0.1, .momentum = 0.9, .nesterov = true},
    {GP_OPTIM_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1},
    {GP_OPTIM_ADAMW, .lr = 0.01, .beta1 = 0.4, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1},
    {GP_OPTIM_RMSPROP, .lr = 0.01, .beta1 = 0.4, .beta2 = 0.4, .eps = 0.1, .centered = true},
    {GP_OPTIM_ADAGRAD, .lr = 0.1, .lr_decay = 0.1, .eps = 1e-10},
    {GP_OPTIM_LION, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1},
    {.kind = GP_OPTIM_ADAMAX, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8},
    {.kind = GP_OPTIM_ADADELTA, .lr = 0.5, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-3},
    {.kind = GP_OPTIM_NADAM,
     .lr = 0.01,
     .beta1 = 0.9,
     .beta2 = 0.99,
     .eps = 1e-8,
     .momentum_decay = 0.004,
     .weight_decay = 0.1},
    {.kind = GP_OPTIM_NADAM,
     .lr = 0.01,
     .beta1 = 0.4,
     .beta2 = 0.99,
     .eps = 1e-8,
     .weight_decay = 0.1,
     .decoupled = true},
    {.kind = GP_OPTIM_ADAMW,
     .lr = 0.01,
     .beta1 = 0.9,
     .beta2 = 0.5,
     .eps = 1e-8,
     .weight_decay = 0.1,
     .amsgrad = true},
    {.kind = GP_OPTIM_RADAM,
     .lr = 0.01,
     .beta1 = 0.9,
     .beta2 = 0.8,
     .eps = 1e-8,
     .weight_decay = 0.1},
    {.kind = GP_OPTIM_RADAM,
     .lr = 0.01,
     .beta1 = 0.4,
     .beta2 = 0.99,
     .eps = 1e-8,
     .weight_decay = 0.1,
     .decoupled = true},
    {.kind = GP_OPTIM_RPROP, .lr = 0.01, .shrink = 0.5, .grow = 1.2, .least = 1e-6, .most = 50},
    {.kind = GP_OPTIM_SGD, .lr = 0.1, .momentum = 0.9, .dampening = 0.3},
};

static gp_optim_slice slice_of(const gpu_value *there, gp_dtype dtype, gp_dtype half, int64_t n) {
  return (gp_optim_slice){dtype,
                          n,
                          there[VALUE].data,
                          there[GRAD].data,
                          {there[MOMENT1].data, there[MOMENT2].data, there[MOMENT3].data},
                          dtype == GP_F32 ? there[HALF].data : NULL,
                          half};
}

static void check_same(const gpu_value *a, const gpu_value *b) {
  for (int k = 0; k < ARENAS; k++) CHECK(are_same(&a[k], &b[k]));
}

/* Updates a by factors in memory, element by element, and b by arguments, in packs. The rate
 * changes; the third step is skipped. */
static void check_update(gp_optim_hyper hyper, gp_dtype dtype, gp_dtype half, int64_t n) {
  gpu_value a[ARENAS], b[ARENAS];
  for (int k = 0; k < ARENAS; k++) {
    a[k] = line(k == HALF ? half : dtype, n, k < MOMENT1, 1);
    b[k] = copy_of(&a[k], 0);
  }
  const gp_optim_slice one = slice_of(a, dtype, half, n), two = slice_of(b, dtype, half, n);
  char here[GP_GPU_FACTORS] = {0};
  void *factors = gpu_alloc(sizeof here);
  for (int64_t step = 1; step <= 4; step++) {
    gp_verdict *verdict = verdict_there(0.5, 0.5, step != 3);
    hyper.lr *= 0.7;
    CHECK_STATUS(api->write_factors(&hyper, step, here), GP_OK);
    gpu_copy(factors, here, sizeof here);
    CHECK_STATUS(api->update_by(gpu, &(gp_steer){verdict, factors}, &hyper, &one, 1), GP_OK);
    if (step != 3) CHECK_STATUS(api->update(gpu, &hyper, step, &two, 1), GP_OK);
    check_same(a, b);
    api->free(gpu, verdict);
  }
  api->free(gpu, factors);
  for (int k = 0; k < ARENAS; k++) gpu_drop(&a[k]), gpu_drop(&b[k]);
}

TEST(updates_by_memory_are_those_by_arguments) {
  if (!open_gpu()) return;
  for (size_t h = 0; h < sizeof hypers / sizeof *hypers; h++) {
    for (int i = 0; i < SIZES; i++) {
      check_update(hypers[h], GP_F32, GP_BF16, sizes[i]);
      check_update(hypers[h], GP_F32, GP_F16, sizes[i]);
      check_update(hypers[h], GP_F64, GP_F16, sizes[i]);
    }
  }
}

TEST(factors_are_of_steps_from_the_first_on) {
  if (!open_gpu()) return;
  char here[GP_GPU_FACTORS];
  CHECK_STATUS(api->write_factors(&hypers[0], 0, here), GP_ERANGE);
}

TEST_MAIN(a_gpu_decides_as_the_host_does, gradients_are_scaled_by_a_verdict_as_by_its_factors,
          updates_by_memory_are_those_by_arguments, factors_are_of_steps_from_the_first_on)
