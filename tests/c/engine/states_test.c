/* tests/c/engine/states_test.c - states of CPU kernels: there is one per instruction and device,
 * made when a plan is bound, counted in its memory, and given back with it.
 *
 * The linker replaces gp_op_get by this program's (scripts/cmake/tests.cmake): tanh gets a
 * state. */
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/rig.h"

enum { STATE = 100, PADDED = 128 };

/* What tanh_state holds, the kernel reads in every run. */
typedef struct tanh_state {
  int64_t rows;
  void *taken; /* allocated in addition to the bytes of the state */
  int number;  /* index among the states that were prepared */
} tanh_state;

enum { MOST = 4 * LAYERS };

static int prepared, destroyed;
static const char *states[MOST];
static _Atomic int runs[MOST]; /* of each state */
static _Atomic int wrong, with_state, without;

static size_t state_of_tanh(const gp_call *call) {
  (void)call;
  return STATE;
}

/* The memory is zeroed, and the call has no addresses yet. */
static gp_status prepare_tanh(const gp_call *call, void *memory) {
  tanh_state *state = memory;
  CHECK(((uintptr_t)memory & 63) == 0 && state->rows == 0 && state->taken == NULL);
  CHECK(call->in[0].data == NULL && call->out[0].data == NULL);
  GP_TRY(gp_alloc(16, &state->taken));
  state->rows = call->out[0].meta->shape.dim[0];
  state->number = prepared % MOST;
  states[prepared++ % MOST] = memory;
  return GP_OK;
}

static void destroy_tanh(void *memory) {
  tanh_state *state = memory;
  gp_free(state->taken);
  destroyed++;
}

static gp_status run_tanh(const gp_call *call, gp_span span) {
  const tanh_state *state = call->state;
  if (state && state->rows != call->out[0].meta->shape.dim[0]) wrong++;
  *(state ? &with_state : &without) += 1;
  if (state) runs[state->number]++;
  gp_call plain = *call;
  plain.state = NULL;
  return gp_def_tanh.cpu.run(&plain, span);
}

const gp_op_def *__real_gp_op_get(gp_op op);
const gp_op_def *__wrap_gp_op_get(gp_op op);

const gp_op_def *__wrap_gp_op_get(gp_op op) {
  static gp_op_def def;
  if (op != GP_OP_tanh) return __real_gp_op_get(op);
  if (!def.name) {
    def = gp_def_tanh;
    def.cpu.run = run_tanh;
    def.cpu.state = state_of_tanh;
    def.cpu.prepare = prepare_tanh;
    def.cpu.destroy = destroy_tanh;
  }
  return &def;
}

static void forget(void) {
  prepared = destroyed = wrong = with_state = without = 0;
  for (int i = 0; i < MOST; i++) runs[i] = 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Everything is recomputed, so each tanh occurs in F, in an F that keeps, and in R. */
TEST(programs_and_micro_batches_share_a_state) {
  gp_param *params[LAYERS];
  double loss, again;
  rig r;
  make_params(params);
  forget();
  open_rig(&r, params, 2);
  CHECK(prepared == LAYERS * 2); /* one per layer and size of micro-batches */
  for (int i = 0; i < 2; i++) CHECK_STATUS(step(&r, i ? &again : &loss), GP_OK);
  CHECK(prepared == LAYERS * 2 && destroyed == 0);
  CHECK(with_state > 2 * LAYERS * MICROS && without == 0 && wrong == 0); /* F and R, twice */
  CHECK(loss == again);
  close_rig(&r);
  CHECK(destroyed == prepared);
  free_params(params);
}

/* Places two stages on both devices each: the first micro-batch goes from device 0 to 1, the
 * second, which has a row less, from 1 to 0. */
static gp_schedule *schedule_of_copies(void) {
  const char *rows[] = {"0F0,1F1,1B1,0B0", "0F1,1F0,1B0,0B1"};
  const int32_t placement[] = {0, 1, 1, 0};
  gp_schedule_spec spec = {.stage_count = 2, .placement = placement, .copy_count = 2};
  gp_schedule *schedule = NULL;
  CHECK_STATUS(schedule_of_rows(&spec, rows, 2, &schedule, NULL), GP_OK);
  return schedule;
}

/* Counts the runs of states that belong to one copy of a stage and one shape. */
static int runs_of(const rig *r, int holder, int shape) {
  const gp_binding *b = gp_pipeline_binding(r->pipeline, r->plan);
  const char *first = b->states[2 * holder + shape];
  size_t bytes = r->plan->states[2 * holder + shape].bytes;
  int count = 0;
  for (int i = 0; i < prepared; i++)
    if (states[i] >= first && states[i] < first + bytes) count += runs[i];
  return count;
}

TEST(each_copy_of_a_stage_has_states_of_its_own) {
  gp_param *params[LAYERS];
  double loss, wanted;
  rig r;
  make_params(params);
  CHECK_STATUS(attempt(params, 2, 0, &wanted), GP_OK);
  forget();
  open_with(&r, params, 2, schedule_of_copies());
  CHECK(prepared == LAYERS * 2 * 2); /* one per layer, size of micro-batches and copy */
  for (int holder = 0; holder < 4; holder++)
    for (int k = 0; k < 2; k++) /* layer 0 is stage 0, the others are stage 1 */
      CHECK(r.plan->states[2 * holder + k].bytes == (holder < 2 ? 1 : 2) * (size_t)PADDED);
  CHECK_STATUS(step(&r, &loss), GP_OK);
  CHECK(wrong == 0 && without == 0 && loss == wanted);
  for (int holder = 0; holder < 4; holder++)
    for (int k = 0; k < 2; k++) /* the first copies run larger micro-batches only */
      CHECK((runs_of(&r, holder, k) > 0) == (holder % 2 == k));
  close_rig(&r);
  CHECK(destroyed == prepared);
  free_params(params);
}

TEST(the_bytes_of_states_are_part_of_the_plan) {
  gp_param *params[LAYERS];
  gp_device_stats stats;
  double loss;
  rig r;
  make_params(params);
  open_rig(&r, params, 2);
  const gp_plan_device *devices = r.plan->devices;
  size_t bytes[2] = {0};
  for (int h = 0; h < r.plan->stage_count; h++)
    for (int k = 0; k < 2; k++) {
      const gp_area *area = &r.plan->states[2 * h + k];
      bytes[r.plan->placement[h]] += area->bytes;
      CHECK(area->offset + area->bytes <= devices[r.plan->placement[h]].bytes);
    }
  CHECK(bytes[0] == 2 * PADDED && bytes[1] == 4 * PADDED);
  for (int d = 0; d < 2; d++) {
    const gp_worker *w = &r.pipeline->workers[d];
    size_t held = gp_plan_total(r.plan, d) + w->scratch_bytes * (size_t)w->threads +
                  r.pipeline->arenas[d].packed_bytes + r.pipeline->arenas[d].extra_bytes;
    CHECK_STATUS(step(&r, &loss), GP_OK);
    gp_pipeline_stats(r.pipeline, d, &stats);
    CHECK(stats.peak_bytes == held);
  }
  close_rig(&r);
  free_params(params);
}

TEST(no_failed_allocation_leaves_a_state_behind) {
  gp_param *params[LAYERS];
  double wanted, loss;
  make_params(params);
  CHECK_STATUS(attempt(params, 2, 0, &wanted), GP_OK);
  size_t live = gp_memory().live;
  int partly = 0;
  for (uint64_t n = 1;; n++) {
    forget();
    gp_status status = attempt(params, 2, n, &loss);
    CHECK(prepared == destroyed);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
    partly += prepared > 0 && prepared < LAYERS * 2;
    CHECK_STATUS(attempt(params, 2, 0, &loss), GP_OK);
    CHECK(loss == wanted && gp_memory().live == live);
  }
  CHECK(partly == LAYERS * 2 - 1); /* every prepare but the first failed once after others */
  free_params(params);
}

/* Elementwise ops have a state of their own where an operand is broadcast or strided. */
TEST(a_walk_over_strided_operands_is_worked_out_once) {
  gp_meta whole, turned, row;
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(4, 6), &whole), GP_OK);
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(6), &row), GP_OK);
  turned = (gp_meta){GP_F32, SHAPE(4, 6), {1, 4}, 0};
  const gp_cpu_kernel *add = &__real_gp_op_get(GP_OP_add)->cpu;
  const gp_meta *others[] = {&whole, &turned, &row};
  for (int i = 0; i < 3; i++) {
    float a[24], b[24], y[24], wanted[24];
    for (int k = 0; k < 24; k++) a[k] = (float)k, b[k] = (float)(k * k), y[k] = -1;
    gp_call call = {.attr = &toy_plain,
                    .n_in = 2,
                    .n_out = 1,
                    .in = {{.meta = &whole}, {.meta = others[i]}},
                    .out = {{.meta = &whole}}};
    size_t bytes = add->state(&call);
    CHECK((bytes > 0) == (i > 0));
    void *state = calloc(1, bytes + 1);
    if (bytes) CHECK_STATUS(add->prepare(&call, state), GP_OK);
    call.in[0].data = a, call.in[1].data = b, call.out[0].data = wanted;
    CHECK_STATUS(add->run(&call, (gp_span){.last = 4}), GP_OK);
    call.out[0].data = y, call.state = bytes ? state : NULL;
    CHECK_STATUS(add->run(&call, (gp_span){.last = 4}), GP_OK);
    CHECK(!memcmp(y, wanted, sizeof y));
    free(state);
  }
}

TEST_MAIN(programs_and_micro_batches_share_a_state, each_copy_of_a_stage_has_states_of_its_own,
          the_bytes_of_states_are_part_of_the_plan, no_failed_allocation_leaves_a_state_behind,
          a_walk_over_strided_operands_is_worked_out_once)
