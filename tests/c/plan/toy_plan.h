/* tests/c/plan/toy_plan.h - plans of toy towers under the usual schedules, for the tests of
 * plan/. */
#ifndef GP_TESTS_TOY_PLAN_H
#define GP_TESTS_TOY_PLAN_H

#include "toy.h"

/* Published orders, and three that a user might write: backward passes last first, all Ws at the
 * end last first, each W after its I. FORWARD has no backward passes. BOTH_WAYS is Chimera's, with
 * two copies of each stage. */
typedef enum toy_order {
  NAIVE,
  GPIPE,
  ONE_F_ONE_B,
  LIFO,
  WEIGHTS_LAST,
  NAIVE_APART,
  TOY_ORDERS,
  FORWARD,
  BOTH_WAYS
} toy_order;

typedef struct toy_text {
  char text[8192];
  size_t used;
} toy_text;

static inline void toy_write(toy_text *t, char op, int stage, int micro) {
  bool first = t->used == 0 || t->text[t->used - 1] == ' ';
  t->used += (size_t)snprintf(t->text + t->used, sizeof t->text - t->used, "%s%d%c%d",
                              first ? "" : ",", stage, op, micro);
}

static inline void toy_row(toy_text *t, toy_order order, int stages, int r, int m) {
  int ahead = order == NAIVE || order == NAIVE_APART ? 0
              : order == ONE_F_ONE_B                 ? stages - 1 - r
                                                     : m;
  for (int i = 0; i < ahead && i < m; i++) toy_write(t, 'F', r, i);
  for (int i = 0; order != FORWARD && i < m; i++) {
    if (ahead + i < m) toy_write(t, 'F', r, ahead + i);
    toy_write(t, order == WEIGHTS_LAST || order == NAIVE_APART ? 'I' : 'B', r,
              order == LIFO ? m - 1 - i : i);
    if (order == NAIVE_APART) toy_write(t, 'W', r, i);
  }
  for (int i = m - 1; order == WEIGHTS_LAST && i >= 0; i--) toy_write(t, 'W', r, i);
}

/* Writes what a device that is `at` devices from where the micro-batches of one direction begin
 * runs of them at a time; lua/gpipe/schedule/published/chimera.lua has the formula. */
static inline void toy_write_at(toy_text *t, int time, int at, int p, const int range[2]) {
  for (int q = 0; q < range[1] - range[0]; q++) {
    const int k = q % (p / 2) + p * (q / (p / 2));
    if (time == 2 * k + at) toy_write(t, 'F', at, range[0] + q);
    if (time == 2 * k + 2 * p - 1 - at) toy_write(t, 'B', at, range[0] + q);
  }
}

static inline void toy_both_row(toy_text *t, int stages, int r, int m) {
  const int down[] = {0, (m + 1) / 2}, up[] = {(m + 1) / 2, m};
  for (int time = 0; time < 4 * (m + stages); time++) {
    toy_write_at(t, time, r, stages, down);
    toy_write_at(t, time, stages - 1 - r, stages, up);
  }
}

static inline gp_schedule *toy_order_of(toy_order order, int stages, int micros) {
  toy_text t = {.used = 0};
  for (int r = 0; r < stages; r++) {
    if (order == BOTH_WAYS)
      toy_both_row(&t, stages, r, micros);
    else
      toy_row(&t, order, stages, r, micros);
    t.used += (size_t)snprintf(t.text + t.used, sizeof t.text - t.used, " ");
  }
  return toy_schedule_of(t.text, stages, order == BOTH_WAYS ? 2 : 1);
}

/* What to plan: a tower of one layer a stage; `skips` adds the first layer's value to every later
 * one. */
typedef struct toy_spec {
  gp_plan_kind kind;
  toy_order order;
  gp_remat remat;
  int stages, micros, smaller; /* smaller: how many of the micro-batches have a row less */
  bool skips, frozen;          /* frozen: the first layer is not trained */
  int share;                   /* 0: plans all devices; d + 1: plans device d */
  int sum_group;               /* micro-batches in a leaf of the tree of sums; 0: no tree */
  bool apart;                  /* each device is one of a rank of its own */
} toy_spec;

static inline toy toy_model(const toy_spec *spec, int64_t rows, gp_ref *loss) {
  toy t = toy_new(rows);
  gp_ref first = GP_NONE;
  for (int l = 0; l < spec->stages; l++) {
    toy_layer(&t, l);
    gp_param *w = toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, spec->frozen && l == 0);
    toy_linear_of(&t, w, NULL);
    toy_tanh(&t);
    if (spec->skips && l > 0) t.value = toy_op2(&t, GP_OP_add, t.value, first);
    if (l == 0) first = t.value;
  }
  *loss = toy_loss(&t, spec->stages);
  return t;
}

typedef struct toy_planned {
  toy_space space;
  toy models[2]; /* the plan owns their traces */
  gp_plan *plan;
  gp_status status;
} toy_planned;

static inline void toy_plan(const toy_spec *spec, toy_planned *made) {
  int layers[TOY_LAYERS];
  int large = spec->micros - spec->smaller;
  for (int s = 0; s < spec->stages; s++) layers[s] = 1;
  gp_plan_device_spec devices[TOY_LAYERS];
  for (int s = 0; s < spec->stages; s++) devices[s] = (gp_plan_device_spec){.rank = s};
  *made = (toy_planned){0};
  toy_space_set(&made->space, layers, spec->stages);
  if (spec->apart) made->space.env.devices = devices;
  made->space.env.remat = spec->remat;
  made->space.env.share = spec->share;
  made->space.env.sum_group = spec->sum_group;
  gp_schedule *schedule = toy_order_of(spec->order, spec->stages, spec->micros);
  gp_plan_spec plan = {.kind = spec->kind, .schedule = schedule};
  for (int k = 0; k < 2; k++) {
    gp_traced_shape *shape = &plan.shapes[k];
    *shape = (gp_traced_shape){.rows = 3 - k,
                               .micros = k ? spec->smaller : large,
                               .loss_count = GP_NONE,
                               .constant_count = 3 - k};
    if (!shape->micros) continue;
    made->models[k] = toy_model(spec, shape->rows, &shape->loss_sum);
    shape->trace = made->models[k].trace;
    toy_space_add(&made->space, &made->models[k]);
  }
  made->status = toy_space_plan(&made->space, &plan, &made->plan);
  made->space.env.devices = NULL;
  gp_schedule_free(schedule);
}

static inline void toy_plan_free(toy_planned *made) {
  gp_plan_free(made->plan);
  gp_layout_free(&made->space.layout);
  for (int k = 0; k < 2; k++) {
    made->models[k].trace = NULL;
    toy_free(&made->models[k]);
  }
}

static inline int32_t toy_tasks(const gp_plan *plan) { return plan->first[plan->device_count]; }

static inline int32_t toy_device(const gp_plan *plan, int32_t task) {
  int32_t d = 0;
  while (plan->first[d + 1] <= task) d++;
  return d;
}

#endif
