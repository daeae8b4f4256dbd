/* scripts/bench/plan.c - how long planning takes: `bench_plan ORDER STAGES MICROS DEVICE
 * LAYERS_A_STAGE OPS`.
 *
 * Plans a tower of linear and tanh for devices that are not there; DEVICE -1 plans for all of them.
 * The first layer has OPS more ops. ORDER is 1f1b, or an asynchronous schedule, pipedream or 2bw:
 * then the stream is as long as a pipeline plans it for steps of MICROS. `lower` is gpipe without a
 * barrier, of which only the lowering is timed. Prints the processor's seconds for the schedule and
 * for the plan, and the peak memory in MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/tensor.h"
#include "gpipe.h"

enum { WIDTH = 4 };

/* Processor time: this program has one thread, and on a shared machine wall time varies. */
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

typedef struct order {
  gp_rows *rows;
  int stages, micros; /* micros: per step */
  int batch;          /* micro-batches per update; 0: synchronous */
  int stored;         /* micro-batches that the lists show */
  bool fill_first;    /* all forward passes first */
} order;

static order order_of(const char *name, int stages, int micros) {
  order o = {.stages = stages, .micros = micros, .stored = micros};
  if (!strcmp(name, "pipedream")) o.batch = 1;
  if (!strcmp(name, "2bw")) o.batch = micros;
  if (o.batch) o.stored = micros * (4 + (2 * stages + micros - 1) / micros);
  o.fill_first = !strcmp(name, "lower");
  return o;
}

static int version_of(const order *o, int device, int micro) {
  if (!o->batch) return -1;
  int version = o->batch > 1 ? micro / o->batch - 1 : micro - (o->stages - 1 - device);
  return version < 0 ? 0 : version;
}

static void add(const order *o, int device, gp_act op, int micro) {
  gp_action action = {.op = (uint8_t)op, .stage = device, .micro = micro, .version = -1};
  if (op != GP_ACT_U) action.version = version_of(o, device, micro);
  must(gp_rows_add(o->rows, device, &action));
}

static void add_row(const order *o, int d) {
  int ahead = o->fill_first ? o->micros : o->stages - 1 - d;
  if (o->batch > 1 && ahead > o->batch) ahead = o->batch;
  if (ahead > o->stored) ahead = o->stored;
  for (int i = 0; i < ahead; i++) add(o, d, GP_ACT_F, i);
  for (int i = 0; i < o->stored; i++) {
    if (ahead + i < o->stored) add(o, d, GP_ACT_F, ahead + i);
    add(o, d, GP_ACT_B, i);
    if (o->batch && i % o->batch == o->batch - 1) add(o, d, GP_ACT_U, i / o->batch);
  }
}

static gp_schedule *make_schedule(order *o, int32_t *placement) {
  gp_schedule *schedule;
  must(gp_rows_new(o->stages, &o->rows));
  for (int d = 0; d < o->stages; d++) {
    placement[d] = d;
    add_row(o, d);
  }
  gp_schedule_spec spec = {.rows = o->rows,
                           .stage_count = o->stages,
                           .placement = placement,
                           .copy_count = 1,
                           .batch = o->batch};
  must(gp_schedule_new(&spec, &schedule, NULL));
  gp_rows_free(o->rows);
  return schedule;
}

/* Times lowering alone, with each update right behind the last gradient of its stage. */
static int lower_only(const gp_schedule *schedule, double begin, double made) {
  gp_lower_options options = {.remat = GP_REMAT_NEVER, .update = GP_UPDATE_FREE};
  gp_schedule *lowered;
  must(gp_schedule_lowered(schedule, &options, &lowered));
  printf("%.4f %.4f 0\n", made - begin, now() - made);
  gp_schedule_free(lowered);
  return 0;
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

/* Traces `layers` layers, and puts their weights into params. */
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
  if (argc != 7) return fprintf(stderr, "bench_plan: an order and five numbers expected\n"), 2;
  int stages = atoi(argv[2]), micros = atoi(argv[3]), each = atoi(argv[5]), layers = stages * each;
  order o = order_of(argv[1], stages, micros);
  size_t room = (size_t)layers + 1;
  int32_t *placement = calloc(room, sizeof *placement), *stage_of = calloc(room, sizeof *stage_of),
          *layer_of = calloc(room, sizeof *layer_of);
  gp_param **params = calloc(room, sizeof *params);
  for (int l = 0; l < layers; l++) layer_of[l] = l, stage_of[l] = l / each;
  stage_of[layers] = stages - 1;
  double begin = now();
  gp_schedule *schedule = make_schedule(&o, placement);
  double planned = now();
  if (!strcmp(argv[1], "lower")) return lower_only(schedule, begin, planned);
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
  *shape =
      (gp_traced_shape){.rows = 1, .micros = micros, .loss_count = GP_NONE, .constant_count = 1};
  shape->trace = trace_of(layers, atoi(argv[6]), params, &shape->loss_sum);
  gp_plan *plan;
  must(gp_plan_new(&pipeline, NULL, atoi(argv[4]), &spec, &plan));
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
