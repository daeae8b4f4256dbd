/* tests/cuda/work_test.c - what a GPU does beside ops: updates, sums of squares, checks, counts.
 *
 * Results are compared with the functions of optim/optim.h, and with formulas of one line. */
#include "gpu_memory.h"
#include "optim/hypers.h"
#include "optim/optim.h"

static const int64_t sizes[] = {0, 1, 3, 64, 1000, 100003};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Makes a line of n drawn numbers. */
static gp_tensor *line(gp_dtype dtype, int64_t n, double low, double high) {
  return uniform(dtype, (gp_shape){1, {n}}, low, high);
}

static double at(const gp_tensor *t, int64_t i) { return gp_tensor_get_double(t, i); }

/* Returns the first element that differs by more than rounding; -1: none. */
static int64_t first_difference(const gp_tensor *a, const gp_tensor *b) {
  double bound = gp_tensor_meta(a)->dtype == GP_F64 ? 1e-13 : 1e-6;
  for (int64_t i = 0; i < gp_tensor_numel(a); i++) {
    if (!(fabs(at(a, i) - at(b, i)) <= bound * (1e-3 + fabs(at(b, i))))) return i;
  }
  return -1;
}

/* ---- updates --------------------------------------------------------------------------------- */

enum { VALUE, GRAD, MOMENT1, MOMENT2, MOMENT3, ARENAS };

static gp_optim_slice there_slice(const gpu_value *there, gp_dtype dtype, int64_t n) {
  return (gp_optim_slice){
      .dtype = dtype,
      .n = n,
      .value = there[VALUE].data,
      .grad = there[GRAD].data,
      .moments = {there[MOMENT1].data, there[MOMENT2].data, there[MOMENT3].data}};
}

/* Makes three steps on the host and on the GPU, with the same gradient. */
static void check_update(const gp_optim_hyper *hyper, gp_dtype dtype, int64_t n, int shift) {
  gp_tensor *here[ARENAS];
  gpu_value there[ARENAS];
  for (int k = 0; k < ARENAS; k++) {
    here[k] = line(dtype, n, k < MOMENT1 ? -2 : 0, k < MOMENT1 ? 2 : 0);
    there[k] = gpu_value_of(here[k], shift, false);
  }
  const gp_optim_slice cpu = {.dtype = dtype,
                              .n = n,
                              .value = gp_tensor_data(here[VALUE]),
                              .grad = gp_tensor_data(here[GRAD]),
                              .moments = {gp_tensor_data(here[MOMENT1]),
                                          gp_tensor_data(here[MOMENT2]),
                                          gp_tensor_data(here[MOMENT3])}};
  const gp_optim_slice slice = there_slice(there, dtype, n);
  for (int64_t step = 1; step <= 3; step++) {
    CHECK_STATUS(gp_optim_update(hyper, step, &cpu, 0, n), GP_OK);
    CHECK_STATUS(api->update(gpu, hyper, step, &slice, 1), GP_OK);
  }
  for (int k = 0; k < ARENAS; k++) {
    gp_tensor *got = gpu_fetch(&there[k]);
    CHECK(first_difference(got, here[k]) == -1);
    gp_tensor_free(got), gp_tensor_free(here[k]), gpu_drop(&there[k]);
  }
}

TEST(updates_are_those_of_the_cpu) {
  if (!open_gpu()) return;
  for (size_t h = 0; h < HYPERS; h++) {
    for (int i = 0; i < SIZES; i++) {
      for (int shift = 0; shift < 2; shift++) {
        check_update(&hypers[h], GP_F32, sizes[i], shift);
        check_update(&hypers[h], GP_F64, sizes[i], shift);
      }
    }
  }
}

TEST(updates_refuse_halves_and_steps_before_the_first) {
  if (!open_gpu()) return;
  gp_optim_slice slice = {.dtype = GP_BF16};
  CHECK_STATUS(api->update(gpu, &hypers[0], 1, &slice, 1), GP_EDTYPE);
  slice.dtype = GP_F32;
  CHECK_STATUS(api->update(gpu, &hypers[0], 0, &slice, 1), GP_ERANGE);
}

/* ---- arenas ---------------------------------------------------------------------------------- */

static void check_add(gp_dtype dtype, int64_t n, int shift) {
  gp_tensor *a = line(dtype, n, -2, 2), *b = line(dtype, n, -2, 2);
  gpu_value to = gpu_value_of(a, shift, false), from = gpu_value_of(b, 0, false);
  CHECK_STATUS(api->add(gpu, dtype, n, to.data, from.data), GP_OK);
  gp_tensor *got = gpu_fetch(&to), *want = new_tensor(dtype, gp_tensor_meta(a)->shape);
  for (int64_t i = 0; i < n; i++) gp_tensor_set_double(want, i, at(a, i) + at(b, i));
  CHECK(same_bits(got, want)); /* a sum in f64, rounded once, is the sum in each narrower type */
  gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(got), gp_tensor_free(want);
  gpu_drop(&to), gpu_drop(&from);
}

static void check_scale(gp_dtype dtype, int64_t n, int shift) {
  gp_tensor *a = line(dtype, n, -2, 2);
  gpu_value value = gpu_value_of(a, shift, false);
  CHECK_STATUS(api->scale(gpu, &(gp_gpu_run){dtype, n, value.data}, 1, 0.3), GP_OK);
  gp_optim_scale(dtype, n, gp_tensor_data(a), 0.3);
  gp_tensor *got = gpu_fetch(&value);
  CHECK(same_bits(got, a));
  gp_tensor_free(a), gp_tensor_free(got), gpu_drop(&value);
}

TEST(arenas_are_added_and_scaled_as_on_the_cpu) {
  if (!open_gpu()) return;
  for (int i = 0; i < SIZES; i++) {
    for (int shift = 0; shift < 2; shift++) {
      for (gp_dtype dtype = GP_F32; dtype <= GP_F16; dtype++) check_add(dtype, sizes[i], shift);
      check_scale(GP_F32, sizes[i], shift);
      check_scale(GP_F64, sizes[i], shift);
    }
  }
}

static double sum_on_gpu(gp_tensor *from, int shift) {
  gpu_value value = gpu_value_of(from, shift, false);
  double *sum = gpu_alloc(sizeof *sum), got;
  void *scratch = gpu_alloc(GP_GPU_SUM_SCRATCH);
  const gp_gpu_run run = {value.meta.dtype, gp_tensor_numel(from), value.data};
  CHECK_STATUS(api->sum_squares(gpu, &run, 1, sum, scratch), GP_OK);
  gpu_copy(&got, sum, sizeof got);
  api->free(gpu, sum), api->free(gpu, scratch), gpu_drop(&value);
  return got;
}

/* Aligned memory is read in packs, memory one element further one by one: the bits must be the
 * same. */
static void check_paths(gp_dtype dtype, int64_t n) {
  gp_tensor *a = line(dtype, n, -2, 2), *b = line(dtype, n, -2, 2), *got[2];
  for (int shift = 0; shift < 2; shift++) {
    gpu_value to = gpu_value_of(a, shift, false), from = gpu_value_of(b, shift, false);
    CHECK_STATUS(api->add(gpu, dtype, n, to.data, from.data), GP_OK);
    CHECK_STATUS(api->scale(gpu, &(gp_gpu_run){dtype, n, to.data}, 1, 0.3), GP_OK);
    got[shift] = gpu_fetch(&to);
    gpu_drop(&to), gpu_drop(&from);
  }
  CHECK(same_bits(got[0], got[1]));
  CHECK(sum_on_gpu(a, 0) == sum_on_gpu(a, 1));
  gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(got[0]), gp_tensor_free(got[1]);
}

TEST(packs_and_single_elements_leave_the_same_bits) {
  if (!open_gpu()) return;
  for (int i = 0; i < SIZES; i++)
    for (gp_dtype dtype = GP_F32; dtype <= GP_F16; dtype++) check_paths(dtype, sizes[i]);
}

TEST(squares_are_summed_in_one_order) {
  if (!open_gpu()) return;
  for (int i = 0; i < SIZES; i++) {
    for (gp_dtype dtype = GP_F32; dtype <= GP_F64; dtype++) {
      gp_tensor *from = line(dtype, sizes[i], -2, 2);
      double want = gp_optim_sum_squares(dtype, sizes[i], gp_tensor_data(from));
      double got = sum_on_gpu(from, 0);
      CHECK_NEAR(got, want, 1e-12 * want);
      CHECK(sum_on_gpu(from, 0) == got && sum_on_gpu(from, 1) == got);
      gp_tensor_free(from);
    }
  }
}

/* ---- many tensors at once -------------------------------------------------------------------- */

enum { MANY = 101 }; /* more than one launch takes; the dtype changes every seven */

static gp_dtype dtype_of(int i) { return i / 7 % 2 ? GP_F64 : GP_F32; }
static int64_t length_of(int i) { return i % 9 == 4 ? 0 : 1 + 977 * i % 5003; }

TEST(many_tensors_are_worked_on_as_one_by_one) {
  if (!open_gpu()) return;
  gp_tensor *here[MANY];
  gpu_value there[MANY];
  gp_gpu_run runs[MANY];
  double *sums = gpu_alloc(MANY * sizeof *sums), got[MANY];
  void *scratch = gpu_alloc(GP_GPU_SUM_SCRATCH);
  for (int i = 0; i < MANY; i++) {
    here[i] = line(dtype_of(i), length_of(i), -2, 2);
    there[i] = gpu_value_of(here[i], i % 2, false);
    runs[i] = (gp_gpu_run){dtype_of(i), length_of(i), there[i].data};
  }
  CHECK_STATUS(api->sum_squares(gpu, runs, MANY, sums, scratch), GP_OK);
  CHECK_STATUS(api->scale(gpu, runs, MANY, 0.3), GP_OK);
  gpu_copy(got, sums, sizeof got);
  for (int i = 0; i < MANY; i++) {
    CHECK(got[i] == sum_on_gpu(here[i], 0));
    gp_optim_scale(dtype_of(i), length_of(i), gp_tensor_data(here[i]), 0.3);
    gp_tensor *scaled = gpu_fetch(&there[i]);
    CHECK(same_bits(scaled, here[i]));
    gp_tensor_free(scaled), gp_tensor_free(here[i]), gpu_drop(&there[i]);
  }
  api->free(gpu, sums), api->free(gpu, scratch);
}

TEST(many_updates_are_those_of_the_cpu) {
  if (!open_gpu()) return;
  gp_tensor *here[MANY][ARENAS];
  gpu_value there[MANY][ARENAS];
  gp_optim_slice slices[MANY];
  for (int i = 0; i < MANY; i++) {
    for (int k = 0; k < ARENAS; k++) {
      here[i][k] = line(dtype_of(i), length_of(i), k < MOMENT1 ? -2 : 0, k < MOMENT1 ? 2 : 0);
      there[i][k] = gpu_value_of(here[i][k], (i + k) % 2, false);
    }
    slices[i] = there_slice(there[i], dtype_of(i), length_of(i));
  }
  CHECK_STATUS(api->update(gpu, &hypers[ADAMW], 1, slices, MANY), GP_OK);
  for (int i = 0; i < MANY; i++) {
    gp_optim_slice cpu = slices[i];
    cpu.value = gp_tensor_data(here[i][VALUE]), cpu.grad = gp_tensor_data(here[i][GRAD]);
    for (int k = 0; k < GP_OPTIM_MOMENTS; k++)
      cpu.moments[k] = gp_tensor_data(here[i][MOMENT1 + k]);
    CHECK_STATUS(gp_optim_update(&hypers[ADAMW], 1, &cpu, 0, cpu.n), GP_OK);
    for (int k = 0; k < ARENAS; k++) {
      gp_tensor *got = gpu_fetch(&there[i][k]);
      CHECK(first_difference(got, here[i][k]) == -1);
      gp_tensor_free(got), gp_tensor_free(here[i][k]), gpu_drop(&there[i][k]);
    }
  }
}

/* Values lie aligned and not, in launches with and without halves of both kinds. */
TEST(halves_are_the_new_values_rounded) {
  if (!open_gpu()) return;
  gpu_value there[MANY][ARENAS], halves[MANY];
  gp_optim_slice slices[MANY];
  for (int i = 0; i < MANY; i++) {
    for (int k = 0; k < ARENAS; k++) {
      gp_tensor *from = line(GP_F32, length_of(i), k < MOMENT1 ? -2 : 0, k < MOMENT1 ? 2 : 0);
      there[i][k] = gpu_value_of(from, i % 2, false);
      gp_tensor_free(from);
    }
    slices[i] = there_slice(there[i], GP_F32, length_of(i));
    slices[i].half_dtype = i / 5 % 2 ? GP_BF16 : GP_F16;
    gp_tensor *room = line(slices[i].half_dtype, length_of(i), 0, 0);
    halves[i] = gpu_value_of(room, i / 3 % 2, false);
    if (i / 4 % 3) slices[i].half = halves[i].data;
    gp_tensor_free(room);
  }
  CHECK_STATUS(api->update(gpu, &hypers[ADAMW], 1, slices, MANY), GP_OK);
  for (int i = 0; i < MANY; i++) {
    gp_tensor *values = gpu_fetch(&there[i][VALUE]), *got = gpu_fetch(&halves[i]);
    gp_tensor *want = line(slices[i].half_dtype, length_of(i), 0, 0);
    if (slices[i].half) CHECK_STATUS(gp_tensor_copy(want, values), GP_OK);
    CHECK(same_bits(got, want));
    gp_tensor_free(values), gp_tensor_free(got), gp_tensor_free(want), gpu_drop(&halves[i]);
    for (int k = 0; k < ARENAS; k++) gpu_drop(&there[i][k]);
  }
}

/* ---- counts ---------------------------------------------------------------------------------- */

TEST(counts_of_a_mini_batch_are_settled_on_the_gpu) {
  if (!open_gpu()) return;
  static const int64_t counts[][3] = {{3, 4, 1}, {0, 0, 0}, {0, 5, 0}};
  for (size_t row = 0; row < 3; row++) {
    gp_step_block blocks[3] = {
        {.seed = 7, .step = 2, .rows = 9}, {.first_row = 9}, {.inverse_count = 5}};
    void *there = gpu_alloc(sizeof blocks), *list = gpu_alloc(sizeof counts[row]);
    gpu_copy(there, blocks, sizeof blocks);
    gpu_copy(list, counts[row], sizeof counts[row]);
    CHECK_STATUS(api->settle(gpu, list, there, 3), GP_OK);
    gpu_copy(blocks, there, sizeof blocks);
    const int64_t sum = counts[row][0] + counts[row][1] + counts[row][2];
    for (int i = 0; i < 3; i++) CHECK(blocks[i].inverse_count == (sum ? 1.0 / (double)sum : 0));
    CHECK(blocks[0].seed == 7 && blocks[0].step == 2 && blocks[0].rows == 9 &&
          blocks[1].first_row == 9);
    api->free(gpu, there), api->free(gpu, list);
  }
}

/* ---- values that are not finite -------------------------------------------------------------- */

/* Returns the key that a check leaves. broken[]: positions, ended by -1. */
static uint64_t key_of(gp_dtype dtype, int64_t n, const int64_t *broken, double with, int shift,
                       bool turned) {
  gp_tensor *from = uniform(dtype, (gp_shape){2, {n, 3}}, -2, 2);
  for (; *broken >= 0; broken++) gp_tensor_set_double(from, *broken, with);
  gpu_value value = gpu_value_of(from, shift, turned);
  gp_gpu_fault fault = {.key = GP_GPU_NO_FAULT}, *there = gpu_alloc(sizeof fault);
  gp_arg arg = {value.data, &value.meta};
  gpu_copy(there, &fault, sizeof fault);
  CHECK_STATUS(api->check_finite(gpu, &arg, there, 5), GP_OK);
  gpu_copy(&fault, there, sizeof fault);
  api->free(gpu, there), gpu_drop(&value), gp_tensor_free(from);
  return fault.key;
}

TEST(the_first_value_that_is_not_finite_is_found) {
  if (!open_gpu()) return;
  for (gp_dtype dtype = GP_F32; dtype <= GP_F16; dtype++) {
    for (int how = 0; how < 4; how++) {
      const int shift = how & 1, turned = how >> 1;
      CHECK(key_of(dtype, 1000, (int64_t[]){-1}, 0, shift, turned) == GP_GPU_NO_FAULT);
      CHECK(key_of(dtype, 1000, (int64_t[]){2999, -1}, NAN, shift, turned) ==
            ((uint64_t)5 << 32 | 2999));
      CHECK(key_of(dtype, 1000, (int64_t[]){2001, 17, 18, -1}, INFINITY, shift, turned) ==
            ((uint64_t)5 << 32 | 17));
      CHECK(key_of(dtype, 1, (int64_t[]){0, -1}, -INFINITY, shift, turned) == (uint64_t)5 << 32);
    }
  }
  CHECK(key_of(GP_I64, 10, (int64_t[]){3, -1}, -1, 0, false) == GP_GPU_NO_FAULT);
}

TEST_MAIN(updates_are_those_of_the_cpu, updates_refuse_halves_and_steps_before_the_first,
          arenas_are_added_and_scaled_as_on_the_cpu, packs_and_single_elements_leave_the_same_bits,
          squares_are_summed_in_one_order, many_tensors_are_worked_on_as_one_by_one,
          many_updates_are_those_of_the_cpu, halves_are_the_new_values_rounded,
          counts_of_a_mini_batch_are_settled_on_the_gpu,
          the_first_value_that_is_not_finite_is_found)
