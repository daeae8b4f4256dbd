/* tests/c/plan/toy.h - small traced models for the tests of graph/ and plan/.
 *
 * A toy is a trace that grows at its end: each call applies an op to the value of the last one. The
 * caller numbers the layers, as the pipeline does; the loss belongs to the layer after the last
 * one. */
#ifndef GP_TESTS_TOY_H
#define GP_TESTS_TOY_H

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"
#include "plan/make.h"
#include "schedule/schedule_rows.h"
#include "test.h"

#define SHAPE(...)                                                                                 \
  ((gp_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})

enum { TOY_PARAMS = 32, TOY_LAYERS = 16, TOY_WIDTH = 4 };

static const gp_attrs toy_plain; /* no attributes */

typedef struct toy {
  gp_trace *trace;
  gp_param *params[TOY_PARAMS];
  int32_t layers[TOY_PARAMS]; /* the layer in which each parameter was made */
  int param_count, layer;
  int64_t rows;
  gp_ref x, target, value;
} toy;

/* ---- tracing ------------------------------------------------------------------------------- */

static inline gp_ref toy_input(toy *t, gp_input_kind kind) {
  gp_meta meta;
  gp_ref ref = GP_NONE;
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(t->rows, TOY_WIDTH), &meta), GP_OK);
  CHECK_STATUS(gp_trace_input(t->trace, kind, &meta, &ref), GP_OK);
  return ref;
}

static inline toy toy_new(int64_t rows) {
  toy t = {.rows = rows};
  CHECK_STATUS(gp_trace_new(true, &t.trace), GP_OK);
  t.x = t.value = toy_input(&t, GP_INPUT_BATCH);
  t.target = toy_input(&t, GP_INPUT_TARGET);
  return t;
}

static inline void toy_free(toy *t) {
  gp_trace_free(t->trace);
  for (int i = 0; i < t->param_count; i++) gp_param_free(t->params[i]);
}

static inline void toy_layer(toy *t, int layer) {
  char label[32];
  t->layer = layer;
  snprintf(label, sizeof label, "layer %d", layer);
  gp_trace_set_layer(t->trace, layer);
  CHECK_STATUS(gp_trace_set_label(t->trace, label), GP_OK);
}

static inline gp_param *toy_param(toy *t, gp_shape shape, bool buffer, bool frozen) {
  gp_param_spec spec = {.dtype = GP_F32,
                        .shape = shape,
                        .init = {GP_INIT_UNIFORM, -1, 1},
                        .number = (uint64_t)t->param_count,
                        .buffer = buffer,
                        .frozen = frozen};
  t->layers[t->param_count] = t->layer;
  CHECK_STATUS(gp_param_new(&spec, &t->params[t->param_count]), GP_OK);
  return t->params[t->param_count++];
}

static inline gp_ref toy_use(toy *t, gp_param *param) {
  gp_ref ref = GP_NONE;
  CHECK_STATUS(gp_trace_param(t->trace, param, &ref), GP_OK);
  return ref;
}

/* Applies an op; returns its first output. */
static inline gp_ref toy_apply(toy *t, gp_op op, const gp_attrs *attrs, int n, const gp_ref *in) {
  gp_ref out[GP_MAX_OUTPUTS] = {GP_NONE};
  int outputs;
  CHECK_STATUS(gp_trace_apply(t->trace, op, attrs, in, n, out, &outputs), GP_OK);
  return out[0];
}

static inline gp_ref toy_op1(toy *t, gp_op op, gp_ref a) {
  return toy_apply(t, op, &toy_plain, 1, &a);
}

static inline gp_ref toy_op2(toy *t, gp_op op, gp_ref a, gp_ref b) {
  return toy_apply(t, op, &toy_plain, 2, (gp_ref[]){a, b});
}

/* Sets value = value w^T + b with these parameters (b may be NULL). */
static inline void toy_linear_of(toy *t, gp_param *w, gp_param *b) {
  gp_ref in[3] = {t->value, toy_use(t, w), b ? toy_use(t, b) : GP_NONE};
  t->value = toy_apply(t, GP_OP_linear, &toy_plain, b ? 3 : 2, in);
}

static inline void toy_linear(toy *t) {
  gp_param *w = toy_param(t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false);
  toy_linear_of(t, w, toy_param(t, SHAPE(TOY_WIDTH), false, false));
}

static inline void toy_tanh(toy *t) { t->value = toy_op1(t, GP_OP_tanh, t->value); }

/* Adds the sum of squared differences to the target, in the layer after the others. */
static inline gp_ref toy_loss(toy *t, int layers) {
  toy_layer(t, layers);
  return toy_op2(t, GP_OP_mse, t->value, t->target);
}

/* Traces `layers` layers of linear and tanh, then the loss. */
static inline toy toy_tower(int64_t rows, int layers, gp_ref *loss) {
  toy t = toy_new(rows);
  for (int l = 0; l < layers; l++) {
    toy_layer(&t, l);
    toy_linear(&t);
    toy_tanh(&t);
  }
  *loss = toy_loss(&t, layers);
  return t;
}

/* ---- looking at a graph -------------------------------------------------------------------- */

static inline const gp_graph *toy_graph(const toy *t) { return &t->trace->graph; }

static inline const gp_node *toy_node(const toy *t, int32_t n) { return &t->trace->graph.nodes[n]; }

static inline int32_t toy_maker(const toy *t, gp_ref ref) { return toy_graph(t)->values[ref].node; }

/* Writes the names of the ops of a node list, separated by blanks. */
static inline const char *toy_ops(const toy *t, const gp_node_list *list, char text[512]) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t i = 0; i < list->count && used < 480; i++)
    used += (size_t)snprintf(text + used, 512 - used, i ? " %s" : "%s",
                             gp_op_name(toy_node(t, list->nodes[i])->op));
  return text;
}

#define CHECK_OPS(t, list, wanted)                                                                 \
  do {                                                                                             \
    char made[512];                                                                                \
    if (strcmp(toy_ops(t, list, made), wanted)) printf("ops: '%s', not '%s'\n", made, wanted);     \
    CHECK(!strcmp(made, wanted));                                                                  \
  } while (0)

/* ---- planning ------------------------------------------------------------------------------ */

/* The devices that toys are planned for: one stage each, all in the host's memory. */
typedef struct toy_space {
  gp_plan_env env;
  gp_layout layout;
  int32_t stage_of[TOY_LAYERS + 1], placement[TOY_LAYERS];
  gp_param *params[2 * TOY_PARAMS];
  int32_t layers[2 * TOY_PARAMS];
  int param_count;
  int replicas; /* of a stream, with a copy of each stage; 0: one, with what `placement` says */
} toy_space;

/* layers[s]: how many layers stage s has; stages devices. */
static inline void toy_space_set(toy_space *space, const int *layers, int stages) {
  int32_t layer = 0;
  *space = (toy_space){0};
  for (int s = 0; s < stages; s++) {
    for (int k = 0; k < layers[s]; k++) space->stage_of[layer++] = s;
    space->placement[s] = s;
  }
  space->stage_of[layer] = stages - 1;
  space->env = (gp_plan_env){.layout = &space->layout,
                             .stage_of = space->stage_of,
                             .layer_count = layer,
                             .stage_count = stages,
                             .device_count = stages};
}

/* Adds the parameters of a toy to the model's. */
static inline void toy_space_add(toy_space *space, const toy *t) {
  for (int i = 0; i < t->param_count; i++) {
    space->params[space->param_count] = t->params[i];
    space->layers[space->param_count++] = t->layers[i];
  }
}

static inline gp_status toy_space_plan(toy_space *space, const gp_plan_spec *spec, gp_plan **plan) {
  gp_pipeline_spec model = {.stage_count = space->env.stage_count,
                            .param_count = space->param_count,
                            .copy_count = space->replicas,
                            .replicas = space->replicas,
                            .streams = space->replicas > 1,
                            .stage_of = space->stage_of,
                            .params = space->params,
                            .param_layer = space->layers};
  gp_status status = gp_layout_new(&model, space->placement, &space->layout);
  if (!status) return gp_plan_make(&space->env, spec, plan);
  for (int k = 0; k < 2; k++) gp_trace_free(spec->shapes[k].trace);
  return status;
}

/* Parses rows that are given as one text, devices separated by blanks; stage s is on device s. */
/* With two copies stage s is on device s, and again on device stages - 1 - s. */
static inline gp_schedule *toy_schedule_of(const char *text, int stages, int copies) {
  char copy[8192], *rows[16], *save = NULL;
  int32_t placement[2 * 16];
  gp_schedule *schedule = NULL;
  snprintf(copy, sizeof copy, "%s", text);
  for (int s = 0; s < stages; s++) {
    rows[s] = strtok_r(s ? NULL : copy, " ", &save);
    placement[s * copies] = s;
    if (copies > 1) placement[s * copies + 1] = stages - 1 - s;
  }
  gp_schedule_spec spec = {.stage_count = stages, .placement = placement, .copy_count = copies};
  CHECK_STATUS(schedule_of_rows(&spec, (const char *const *)rows, stages, &schedule, NULL), GP_OK);
  return schedule;
}

static inline gp_schedule *toy_schedule(const char *text, int stages) {
  return toy_schedule_of(text, stages, 1);
}

#endif
