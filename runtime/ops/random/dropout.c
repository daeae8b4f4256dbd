/* ops/random/dropout.c - set elements to 0 with probability p and scale the others by 1/(1 - p).
 *
 * Whether an element is kept is a function of (seed, step, number of the op, global element
 * index), so recomputation, any cut and any micro-batch size give the same mask, and the
 * gradient applies the same op to dy: no mask is saved. The test is on integers, word >= p 2^32:
 * exact on every device. */
#include "base/prefetch.h"
#include "base/random/philox.h"
#include "base/tensor.h"
#include "ops/constants.h"
#include "ops/elements.h"
#include "ops/elementwise/loops.h"

enum { WORDS = 1024 }; /* random words at a time: 4 KiB of stack */

typedef struct rule {
  uint32_t threshold;
  double scale;
} rule;

/* p = 0 keeps everything: threshold 0. p = 1 has no rule. */
static rule make_rule(double p) {
  return (rule){.threshold = (uint32_t)(p * GP_WORD_RANGE), .scale = 1.0 / (1.0 - p)};
}

/* Draw the words of n <= WORDS elements from position i of the run on. */
static void draw(const gp_row_run *run, int64_t i, int64_t n, uint32_t *words) {
  const gp_step_block *step = run->call->step;
  const gp_meta *meta = run->call->out[0].meta;
  const int64_t leading = meta->shape.rank > 0 ? meta->shape.dim[0] : 1;
  uint64_t element = gp_first_element(step, leading, gp_meta_numel(meta));
  element += (uint64_t)(run->at + i);
  gp_philox_words(step->seed, step->step, run->call->attr->random, element, n, words);
}

/* y = word >= threshold ? x * scale : 0. */
#define DROP(name, T)                                                                              \
  static void name(const gp_row_run *run) {                                                        \
    const rule r = make_rule(run->call->attr->dropout.p);                                          \
    const T scale = (T)r.scale;                                                                    \
    const int64_t sx = run->step[0];                                                               \
    uint32_t words[WORDS];                                                                         \
    for (int64_t at = 0; at < run->n; at += WORDS) {                                               \
      const int64_t n = run->n - at < WORDS ? run->n - at : WORDS;                                 \
      const T *x = (const T *)run->in[0] + at * sx;                                                \
      T *y = (T *)run->out + at;                                                                   \
      gp_prefetch_read(x, (size_t)(n * sx) * sizeof *x); /* while words are drawn */               \
      gp_prefetch_write(y, (size_t)n * sizeof *y);                                                 \
      draw(run, at, n, words);                                                                     \
      if (sx == 1) {                                                                               \
        GP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] =                                      \
            words[i] >= r.threshold ? x[i] * scale : (T)0;                                         \
      } else {                                                                                     \
        for (int64_t i = 0; i < n; i++) y[i] = words[i] >= r.threshold ? x[i * sx] * scale : (T)0; \
      }                                                                                            \
    }                                                                                              \
  }

DROP(drop_f32, float)
DROP(drop_f64, double)
GP_MAP1(keep_f32, float, float, a)
GP_MAP1(keep_f64, double, double, a)
GP_MAP1(zero_f32, float, float, ((void)a, 0.0f))
GP_MAP1(zero_f64, double, double, ((void)a, 0.0))

static gp_status run(const gp_call *call, gp_span span) {
  double p = call->attr->dropout.p;
  if (p == 0) return gp_map_float(call, span, keep_f32, keep_f64);
  if (p == 1) return gp_map_float(call, span, zero_f32, zero_f64);
  return gp_map_float(call, span, drop_f32, drop_f64);
}

static gp_status vjp(gp_vjp *v) {
  return gp_build(v->builder, GP_OP_dropout, v->attr, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_dropout = {
    GP_OP_ROW(dropout),         .row_inputs = 1,
    .infer = gp_map_infer,      .vjp = vjp,
    .cost = gp_map_cost_middle, .cpu = {.cut = gp_cut_rows, .run = run, GP_MAP_STATE},
};
