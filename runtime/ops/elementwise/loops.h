/* ops/elementwise/loops.h - one walk for all elementwise ops, and macros that write their loops.
 *
 * The walk (walk.c) drops dims of size 1 and merges dims that lie one behind the other in every
 * operand; what is left is a few long runs with one constant step per operand: 1 (contiguous, or a
 * row vector under every row), 0 (a scalar, or a column under every row) or a stride. So a loop
 * sees plain arrays, and only strided operands leave the vector path. An element's bits never
 * depend on the run it is in.
 *
 * In-place runs (out is an input) are why the loops carry `ivdep`: an overlap is always exact. */
#ifndef GP_OPS_ELEMENTWISE_LOOPS_H
#define GP_OPS_ELEMENTWISE_LOOPS_H

#include "base/loop.h"
#include "base/status.h" /* GP_TRY, for gradient rules */
#include "ops/cut.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/math/vmath.h"

enum { GP_MAP_INPUTS = 3 };

typedef struct gp_row_run {
  const gp_call *call;
  int64_t at, n; /* flat position in out of the first element; elements */
  void *out;
  const void *in[GP_MAP_INPUTS];
  int64_t out_step, step[GP_MAP_INPUTS]; /* elements */
} gp_row_run;

typedef void (*gp_loop)(const gp_row_run *run);

/* Call the loop for all runs of the units. */
gp_status gp_map(const gp_call *call, gp_span span, gp_loop loop);
/* Run the loop for f32 or f64, as in[n_in - 1] has it; for halves run that of f32, a
 * strip at a time. */
gp_status gp_map_float(const gp_call *call, gp_span span, gp_loop f32, gp_loop f64);

/* Run the loop for f32, f64, i64 or i32, in this order. */
gp_status gp_map_number(const gp_call *call, gp_span span, const gp_loop loops[4]);

/* The state that all of these read: the layout of broadcast and strided operands (walk.c). */
size_t gp_map_state(const gp_call *call);
gp_status gp_map_prepare(const gp_call *call, void *state);
#define GP_MAP_STATE .state = gp_map_state, .prepare = gp_map_prepare, .halves = GP_ALL_HALVES

/* Inference: inputs that broadcast; the output has the dtype of the first. */
gp_status gp_map_infer(gp_sig *sig);
/* The same for gradient ops, whose inputs have equal shapes. */
gp_status gp_map_dx_infer(gp_sig *sig);
/* One, ten and thirty operations per element. */
gp_cost gp_map_cost_light(const gp_sig *sig);
gp_cost gp_map_cost_middle(const gp_sig *sig);
gp_cost gp_map_cost_heavy(const gp_sig *sig);

/* ---- what every elementwise op defines ------------------------------------------------------ */

/* Define run_<op>: the kernel made of a loop for f32 and one for f64. */
#define GP_MAP_KERNEL(op, f32, f64)                                                                \
  static gp_status run_##op(const gp_call *call, gp_span span) {                                   \
    return gp_map_float(call, span, f32, f64);                                                     \
  }

/* The same if integers compute too: loops <op>_f32, _f64, _i64 and _i32. */
#define GP_MAP_NUMBER_KERNEL(op)                                                                   \
  static gp_status run_##op(const gp_call *call, gp_span span) {                                   \
    return gp_map_number(call, span, (const gp_loop[]){op##_f32, op##_f64, op##_i64, op##_i32});   \
  }

/* Define an op that reads its n inputs element by element and has the kernel run_<op>; the rest
 * (infer, vjp, cost) is given as designated initialisers. */
#define GP_MAP_OP(op, n, ...)                                                                      \
  const gp_op_def gp_def_##op = {GP_OP_ROW(op), .row_inputs = (1u << n) - 1,                       \
                                 .cpu = {.cut = gp_cut_rows, .run = run_##op, GP_MAP_STATE},       \
                                 __VA_ARGS__};

/* ---- loops ---------------------------------------------------------------------------------- */

#define GP_MAP_LOOP GP_INDEPENDENT for (int64_t i = 0; i < run->n; i++)

/* y[i] = expr of a = x[i]. A product goes in parentheses: clang-format sees a pointer in `a *
 * b`. */
#define GP_MAP1(name, T, TO, expr) GP_MAP1_WITH(name, T, TO, (void)0, expr)

/* The same if expr reads names that `set`, one declaration, makes of run->call->attr
 * before the loop. */
#define GP_MAP1_WITH(name, T, TO, set, expr)                                                       \
  static void name(const gp_row_run *run) {                                                        \
    set;                                                                                           \
    const T *x = run->in[0];                                                                       \
    TO *y = run->out;                                                                              \
    const int64_t sx = run->step[0], sy = run->out_step;                                           \
    if (sy == 1 && sx == 1) {                                                                      \
      GP_MAP_LOOP {                                                                                \
        const T a = x[i];                                                                          \
        y[i] = (TO)(expr);                                                                         \
      }                                                                                            \
    } else {                                                                                       \
      GP_MAP_LOOP {                                                                                \
        const T a = x[i * sx];                                                                     \
        y[i * sy] = (TO)(expr);                                                                    \
      }                                                                                            \
    }                                                                                              \
  }

/* One loop of GP_MAP2 with the given index of each operand. */
#define GP_MAP2_LOOP(T, TO, ix, iw, iy, expr)                                                      \
  GP_MAP_LOOP {                                                                                    \
    const T a = x[ix], b = w[iw];                                                                  \
    y[iy] = (TO)(expr);                                                                            \
  }

/* y[i] = expr of a = x[i] and b = w[i]. */
#define GP_MAP2(name, T, TO, expr) GP_MAP2_WITH(name, T, TO, (void)0, expr)

/* The same with `set` as above. */
#define GP_MAP2_WITH(name, T, TO, set, expr)                                                       \
  static void name(const gp_row_run *run) {                                                        \
    set;                                                                                           \
    const T *x = run->in[0], *w = run->in[1];                                                      \
    TO *y = run->out;                                                                              \
    const int64_t sx = run->step[0], sw = run->step[1], sy = run->out_step;                        \
    if (sy == 1 && sx == 1 && sw == 1) {                                                           \
      GP_MAP2_LOOP(T, TO, i, i, i, expr)                                                           \
    } else if (sy == 1 && sx == 1 && sw == 0) {                                                    \
      GP_MAP2_LOOP(T, TO, i, 0, i, expr)                                                           \
    } else if (sy == 1 && sx == 0 && sw == 1) {                                                    \
      GP_MAP2_LOOP(T, TO, 0, i, i, expr)                                                           \
    } else {                                                                                       \
      GP_MAP2_LOOP(T, TO, i *sx, i *sw, i *sy, expr)                                               \
    }                                                                                              \
  }

/* y[i] = expr of a = x[i], b = w[i] and c = v[i]; x, a gradient, may be one number. */
#define GP_MAP3(name, T, TO, expr)                                                                 \
  static void name(const gp_row_run *run) {                                                        \
    const T *x = run->in[0], *w = run->in[1], *v = run->in[2];                                     \
    TO *y = run->out;                                                                              \
    const int64_t sx = run->step[0], sw = run->step[1], sv = run->step[2], sy = run->out_step;     \
    if (sy == 1 && sx == 1 && sw == 1 && sv == 1) {                                                \
      GP_MAP3_LOOP(T, TO, i, i, i, i, expr)                                                        \
    } else if (sy == 1 && sx == 0 && sw == 1 && sv == 1) {                                         \
      GP_MAP3_LOOP(T, TO, 0, i, i, i, expr)                                                        \
    } else {                                                                                       \
      GP_MAP3_LOOP(T, TO, i *sx, i *sw, i *sv, i *sy, expr)                                        \
    }                                                                                              \
  }
#define GP_MAP3_LOOP(T, TO, ix, iw, iv, iy, expr)                                                  \
  GP_MAP_LOOP {                                                                                    \
    const T a = x[ix], b = w[iw], c = v[iv];                                                       \
    y[iy] = (TO)(expr);                                                                            \
  }

#endif
