/* scripts/bench/plan.c - how long planning takes: `bench_plan STAGES MICROS DEVICE LAYERS_A_STAGE
 * OPS`.
 *
 * A tower of linear and tanh under 1F1B for devices that are not there; DEVICE -1 plans for all of
 * them. OPS more ops stand in the first layer. Prints seconds (of the processor) for the schedule
 * and for the plan, and the most memory in MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/tensor.h"
#include "gpipe.h"

enum { WIDTH = 4 };

/* Of the processor: nothing else runs here, and shared machines take turns. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(gp_status status) {
  if (!status) return;
  fprintf(stderr, "bench_plan: %s\n", gp_error_text());
  exit(1);
}

static void add(gp_rows *rows, int device, gp_act op, int micro) {
  gp_action action = {.op = (uint8_t)op, .stage = device, .micro = micro, .version = -1};
  must(gp_rows_add(rows, device, &action));
}

static gp_schedule *one_f_one_b(int stages, int micros, int32_t *placement) {
  gp_rows *rows;
  gp_schedule *schedule;
  must(gp_rows_new(stages, &rows));
  for (int d = 0; d < stages; d++) {
    int ahead = stages - 1 - d < micros ? stages - 1 - d : micros;
    placement[d] = d;
    for (int i = 0; i < ahead; i++) add(rows, d, GP_ACT_F, i);
    for (int i = 0; i < micros; i++) {
      if (ahead + i < micros) add(rows, d, GP_ACT_F, ahead + i);
      add(rows, d, GP_ACT_B, i);
    }
  }
  gp_schedule_spec spec = {
      .rows = rows, .stage_count = stages, .placement = placement, .copy_count = 1};
  must(gp_schedule_new(&spec, &schedule, NULL));
  gp_rows_free(rows);
  return schedule;
}

static gp_ref apply(gp_trace *trace, gp_op op, const gp_ref *in, int n) {
  gp_ref out[8];
  int count;
  gp_attrs none;
  memset(&none, 0, sizeof none);
  must(gp_trace_apply(trace, op, &none, in, n, out, &count));
  return out[0];
}

static gp_ref input(gp_trace *trace, gp_input_kind kind) {
  gp_meta meta;
  gp_ref ref;
  must(gp_meta_make(GP_F32, &(gp_shape){2, {1, WIDTH}}, &meta));
  must(gp_trace_input(trace, kind, &meta, &ref));
  return ref;
}

/* Of `layers` layers, their weights in params. */
static gp_trace *trace_of(int layers, int ops, gp_param **params, gp_ref *loss) {
  gp_trace *trace;
  must(gp_trace_new(true, &trace));
  gp_ref x = input(trace, GP_INPUT_BATCH), y = input(trace, GP_INPUT_TARGET), w;
  for (int l = 0; l < layers; l++) {
    gp_param_spec spec = {.dtype = GP_F32,
                          .shape = {2, {WIDTH, WIDTH}},
                          .init = {GP_INIT_UNIFORM, -1, 1},
                          .number = (uint64_t)l};
    must(gp_param_new(&spec, &params[l]));
    gp_trace_set_layer(trace, l);
    must(gp_trace_param(trace, params[l], &w));
    x = apply(trace, GP_OP_linear, (gp_ref[]){x, w}, 2);
    for (int i = 0; i < (l ? 1 : 1 + ops); i++) x = apply(trace, GP_OP_tanh, &x, 1);
  }
  gp_trace_set_layer(trace, layers);
  *loss = apply(trace, GP_OP_mse, (gp_ref[]){x, y}, 2);
  return trace;
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "bench_plan: five numbers expected\n"), 2;
  int stages = atoi(argv[1]), micros = atoi(argv[2]), each = atoi(argv[4]), layers = stages * each;
  size_t room = (size_t)layers + 1;
  int32_t *placement = calloc(room, sizeof *placement), *stage_of = calloc(room, sizeof *stage_of),
          *layer_of = calloc(room, sizeof *layer_of);
  gp_param **params = calloc(room, sizeof *params);
  for (int l = 0; l < layers; l++) layer_of[l] = l, stage_of[l] = l / each;
  stage_of[layers] = stages - 1;
  double begin = now();
  gp_schedule *schedule = one_f_one_b(stages, micros, placement);
  double planned = now();
  gp_pipeline_spec pipeline = {.stage_count = stages,
                               .layer_count = layers,
                               .device_count = stages,
                               .param_count = layers,
                               .stage_of = stage_of,
                               .params = params,
                               .param_layer = layer_of,
                               .remat = GP_REMAT_EXCEPT_LAST};
  gp_plan_spec spec = {.kind = GP_PLAN_STEP, .schedule = schedule};
  gp_traced_shape *shape = &spec.shapes[0];
  *shape = (gp_traced_shape){
      .rows = 1, .micros = micros, .output = GP_NONE, .loss_count = GP_NONE, .constant_count = 1};
  shape->trace = trace_of(layers, atoi(argv[5]), params, &shape->loss_sum);
  gp_plan *plan;
  must(gp_plan_new(&pipeline, NULL, atoi(argv[3]), &spec, &plan));
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%.4f %.4f %.1f\n", planned - begin, now() - planned, (double)usage.ru_maxrss / 1024);
  gp_plan_free(plan);
  gp_schedule_free(schedule);
  for (int l = 0; l < layers; l++) gp_param_free(params[l]);
  free(placement);
  free(stage_of);
  free(layer_of);
  free(params);
  return 0;
}
