/* tests/c/ops/attention_test.c - attention against its definition, in every layout it may meet. */
#include "base/random/philox.h"
#include "kernel.h"

enum { SEED = 77, STEP = 5, OP = 9, FIRST_ROW = 3 };

typedef struct problem {
  int64_t b, h, tq, tk, d;
  bool causal;
  double dropout, scale;
} problem;

static gp_attrs attrs_of(const problem *p) {
  return (gp_attrs){
      .random = OP,
      .attention_qkv = {
          .causal = p->causal, .dropout = p->dropout, .scale = p->scale, .heads = p->h}};
}

/* Makes the first dimension the rows of the mini-batch. */
static application stepped(application a) {
  const int64_t rows = gp_tensor_meta(a.in[0])->shape.dim[0];
  a.step = (gp_step_block){.seed = SEED, .step = STEP, .rows = rows, .first_row = FIRST_ROW};
  return a;
}

/* ---- the definition ------------------------------------------------------------------------ */

/* The factor of probability (i, j) of head `pair`: 0 where it is dropped. */
static double kept_factor(const problem *p, int64_t pair, int64_t i, int64_t j) {
  if (p->dropout == 0) return 1;
  uint32_t word;
  int64_t row = FIRST_ROW * p->h + pair;
  uint64_t index = (uint64_t)((row * p->tq + i) * p->tk + j);
  gp_philox_words(SEED, STEP, OP, index, 1, &word);
  return (double)word >= floor(p->dropout * 4294967296.0) ? 1 / (1 - p->dropout) : 0;
}

/* Computes row i of head `pair`: its outputs and the log of its sum. */
static double naive_row(const problem *p, gp_tensor *const qkv[3], int64_t pair, int64_t i,
                        double *o) {
  double scale = p->scale != 0 ? p->scale : 1 / sqrt((double)p->d), sum = 0;
  int64_t keys = p->causal && i + 1 < p->tk ? i + 1 : p->tk;
  for (int64_t c = 0; c < p->d; c++) o[c] = 0;
  for (int64_t j = 0; j < keys; j++) {
    double s = 0;
    for (int64_t c = 0; c < p->d; c++)
      s += get(qkv[0], (pair * p->tq + i) * p->d + c) * get(qkv[1], (pair * p->tk + j) * p->d + c);
    double e = exp(s * scale), factor = kept_factor(p, pair, i, j);
    sum += e;
    for (int64_t c = 0; c < p->d; c++)
      o[c] += factor * e * get(qkv[2], (pair * p->tk + j) * p->d + c);
  }
  for (int64_t c = 0; c < p->d; c++) o[c] /= sum;
  return log(sum);
}

static void make(const problem *p, gp_tensor *qkv[3]) {
  qkv[0] = noise(GP_F64, SHAPE(p->b, p->h, p->tq, p->d), 1);
  qkv[1] = noise(GP_F64, SHAPE(p->b, p->h, p->tk, p->d), 2);
  qkv[2] = noise(GP_F64, SHAPE(p->b, p->h, p->tk, p->d), 3);
}

static void check_forward(const problem *p) {
  gp_tensor *qkv[3];
  double o[64], worst = 0;
  make(p, qkv);
  application a = stepped(APPLY(attention, attrs_of(p), qkv[0], qkv[1], qkv[2]));
  near_in_f32(a, 5e-6);
  a = same_in_pieces(a);
  for (int64_t r = 0; r < p->b * p->h * p->tq; r++) {
    double lse = naive_row(p, qkv, r / p->tq, r % p->tq, o);
    worst = fmax(worst, fabs(lse - get(a.out[1], r)));
    for (int64_t c = 0; c < p->d; c++)
      worst = fmax(worst, fabs(o[c] - get(a.out[0], r * p->d + c)));
  }
  CHECK_NEAR(worst, 0, 1e-13);
  finish();
}

/* The problems have masks, blocks that are not full, more keys than queries, fewer, and one of
 * each. */
static const problem problems[] = {
    {2, 3, 70, 70, 8, true, 0, 0},    {1, 2, 70, 70, 8, false, 0, 0.3},
    {1, 1, 130, 20, 4, true, 0, 0},   {2, 1, 20, 130, 4, true, 0, 0},
    {1, 2, 5, 67, 3, false, 0, 0},    {1, 1, 1, 1, 1, true, 0, 0},
    {2, 2, 67, 67, 5, true, 0.25, 0}, {1, 2, 9, 90, 5, false, 0.5, 0},
};
enum { PROBLEMS = sizeof problems / sizeof problems[0] };

TEST(attention_is_its_definition) {
  for (int i = 0; i < PROBLEMS; i++) check_forward(&problems[i]);
}

/* ---- gradients ----------------------------------------------------------------------------- */

static application gradient_of(application f, gp_tensor *dout) {
  CHECK_STATUS(apply(&f), GP_OK);
  return stepped(APPLY(attention_dx, f.attr, dout, f.in[0], f.in[1], f.in[2], f.out[0], f.out[1]));
}

TEST(attention_dx_is_the_gradient) {
  static const problem small[] = {
      {2, 1, 6, 6, 3, true, 0, 0}, {1, 2, 5, 9, 2, false, 0, 0.4}, {1, 1, 9, 4, 2, true, 0, 0},
      {1, 1, 4, 9, 2, true, 0, 0}, {1, 2, 7, 7, 2, true, 0.3, 0},  {1, 1, 66, 3, 1, false, 0, 0},
  };
  for (int i = 0; i < 6; i++) {
    const problem *p = &small[i];
    gp_tensor *qkv[3], *dout = noise(GP_F64, SHAPE(p->b, p->h, p->tq, p->d), 4);
    make(p, qkv);
    application f = stepped(APPLY(attention, attrs_of(p), qkv[0], qkv[1], qkv[2]));
    application dx = same_in_pieces(gradient_of(f, dout));
    for (int k = 0; k < 3; k++) check_gradient(f, k, dout, dx.out[k]);
    finish();
  }
}

TEST(attention_dx_agrees_in_f32_over_several_blocks) {
  for (int i = 0; i < PROBLEMS; i++) {
    const problem *p = &problems[i];
    gp_tensor *qkv[3], *dout = noise(GP_F64, SHAPE(p->b, p->h, p->tq, p->d), 4);
    make(p, qkv);
    application dx =
        gradient_of(stepped(APPLY(attention, attrs_of(p), qkv[0], qkv[1], qkv[2])), dout);
    near_in_f32(dx, 2e-5);
    same_in_pieces(dx);
    finish();
  }
}

TEST(attention_that_drops_everything_gives_zeros) {
  problem p = {1, 1, 3, 3, 2, true, 1, 0};
  gp_tensor *qkv[3], *dout = noise(GP_F64, SHAPE(1, 1, 3, 2), 4);
  make(&p, qkv);
  application f = stepped(APPLY(attention, attrs_of(&p), qkv[0], qkv[1], qkv[2]));
  application dx = gradient_of(f, dout);
  CHECK_STATUS(apply(&dx), GP_OK);
  for (int64_t i = 0; i < 6; i++) {
    CHECK(get(output(f), i) == 0);
    for (int k = 0; k < 3; k++) CHECK(get(dx.out[k], i) == 0);
  }
  finish();
}

/* ---- layouts ------------------------------------------------------------------------------- */

/* Returns a view of [B, T, H, D] memory, or of [B, H, D, T] memory, that shows the values of x. */
static gp_tensor *restrided(gp_tensor *x, bool transposed) {
  const gp_shape s = gp_tensor_meta(x)->shape;
  int64_t h = s.dim[1], t = s.dim[2], d = s.dim[3];
  gp_tensor *memory = zeros(gp_tensor_meta(x)->dtype, s), *view = NULL;
  gp_meta meta = *gp_tensor_meta(x);
  meta.stride[1] = transposed ? d * t : d;
  meta.stride[2] = transposed ? 1 : h * d;
  meta.stride[3] = transposed ? t : 1;
  CHECK_STATUS(gp_tensor_view(memory, &meta, &view), GP_OK);
  CHECK_STATUS(gp_tensor_copy(keep(view), x), GP_OK);
  return view;
}

TEST(attention_takes_any_strides) {
  problem p = {2, 3, 70, 66, 8, true, 0, 0};
  gp_tensor *qkv[3];
  make(&p, qkv);
  gp_tensor *dout = noise(GP_F32, SHAPE(2, 3, 70, 8), 4);
  for (int k = 0; k < 3; k++) qkv[k] = converted(GP_F32, qkv[k]);
  application f = stepped(APPLY(attention, attrs_of(&p), qkv[0], qkv[1], qkv[2]));
  CHECK_STATUS(apply(&f), GP_OK);
  application dx = gradient_of(f, dout);
  CHECK_STATUS(apply(&dx), GP_OK);
  for (int t = 0; t < 2; t++) {
    application g = stepped(APPLY(attention, attrs_of(&p), restrided(qkv[0], t),
                                  restrided(qkv[1], t), restrided(qkv[2], t)));
    CHECK_STATUS(apply(&g), GP_OK);
    CHECK(gp_tensor_equal(g.out[0], f.out[0]) && gp_tensor_equal(g.out[1], f.out[1]));
    application dg = gradient_of(g, restrided(dout, t));
    CHECK_STATUS(apply(&dg), GP_OK);
    for (int k = 0; k < 3; k++) CHECK(gp_tensor_equal(dg.out[k], dx.out[k]));
  }
  finish();
}

/* Keys and values are the same for all heads and, with stride 0, for all positions. */
TEST(attention_takes_repeated_operands) {
  problem p = {2, 2, 9, 7, 4, false, 0, 0};
  gp_tensor *qkv[3], *view = NULL, *row = noise(GP_F64, SHAPE(4), 8);
  make(&p, qkv);
  gp_meta meta = *gp_tensor_meta(qkv[1]);
  meta.stride[0] = meta.stride[1] = meta.stride[2] = 0;
  CHECK_STATUS(gp_tensor_view(row, &meta, &view), GP_OK);
  gp_tensor *plain = converted(GP_F64, keep(view));
  gp_tensor *a = output(APPLY(attention, attrs_of(&p), qkv[0], view, view));
  CHECK(gp_tensor_equal(a, output(APPLY(attention, attrs_of(&p), qkv[0], plain, plain))));
  finish();
}

/* Views part `part` of packed [B, T, 3C] (or, with parts 1, of [B, T, C]) as [B, H, T, D]. */
static gp_tensor *part_of(gp_tensor *packed, int64_t heads, int part, int parts) {
  const gp_meta *m = gp_tensor_meta(packed);
  int64_t t = m->shape.dim[1], c = m->shape.dim[2] / parts, d = c / heads;
  gp_meta meta = {.dtype = m->dtype,
                  .shape = SHAPE(m->shape.dim[0], heads, t, d),
                  .stride = {t * c * parts, d, c * parts, 1},
                  .offset = part * c};
  gp_tensor *view = NULL;
  CHECK_STATUS(gp_tensor_view(packed, &meta, &view), GP_OK);
  return converted(m->dtype, keep(view));
}

TEST(attention_qkv_is_attention_on_the_parts) {
  static const problem packed[] = {{2, 3, 70, 70, 8, true, 0, 0}, {2, 2, 66, 66, 4, false, 0.2, 0}};
  for (int i = 0; i < 4; i++) {
    const problem *p = &packed[i / 2];
    gp_dtype dtype = i % 2 ? GP_F32 : GP_F64;
    gp_tensor *qkv = noise(dtype, SHAPE(p->b, p->tq, 3 * p->h * p->d), 1);
    gp_tensor *dout = noise(dtype, SHAPE(p->b, p->tq, p->h * p->d), 2);
    application one = same_in_pieces(stepped(APPLY(attention_qkv, attrs_of(p), qkv)));
    application dx = same_in_pieces(
        stepped(APPLY(attention_qkv_dx, attrs_of(p), dout, qkv, one.out[0], one.out[1])));
    application f = stepped(APPLY(attention, attrs_of(p), part_of(qkv, p->h, 0, 3),
                                  part_of(qkv, p->h, 1, 3), part_of(qkv, p->h, 2, 3)));
    CHECK_STATUS(apply(&f), GP_OK);
    application df = gradient_of(f, part_of(dout, p->h, 0, 1));
    CHECK_STATUS(apply(&df), GP_OK);
    double tolerance = dtype == GP_F32 ? 1e-6 : 1e-15;
    CHECK_NEAR(difference(part_of(one.out[0], p->h, 0, 1), f.out[0]), 0, tolerance);
    CHECK_NEAR(difference(one.out[1], f.out[1]), 0, tolerance);
    for (int k = 0; k < 3; k++)
      CHECK_NEAR(difference(part_of(dx.out[0], p->h, k, 3), df.out[k]), 0, tolerance);
    finish();
  }
}

/* ---- dropout, errors ----------------------------------------------------------------------- */

/* Rows 2.. of a mini-batch draw alone what they draw within the whole of it. */
TEST(attention_dropout_does_not_depend_on_the_micro_batch) {
  gp_attrs attr = {.random = OP, .attention_qkv = {.causal = true, .dropout = 0.4, .heads = 2}};
  gp_tensor *whole = noise(GP_F32, SHAPE(3, 33, 24), 1), *part = zeros(GP_F32, SHAPE(1, 33, 24));
  for (int64_t i = 0; i < 33 * 24; i++) gp_tensor_set_double(part, i, get(whole, 2 * 33 * 24 + i));
  application a = stepped(APPLY(attention_qkv, attr, whole));
  application b = stepped(APPLY(attention_qkv, attr, part));
  b.step.first_row += 2;
  CHECK_STATUS(apply(&a), GP_OK);
  CHECK_STATUS(apply(&b), GP_OK);
  for (int64_t i = 0; i < 33 * 8; i++) CHECK(get(b.out[0], i) == get(a.out[0], 2 * 33 * 8 + i));
  finish();
}

/* Returns as bits what is dropped of one head: scores are equal, and the values are the
 * identity. */
static uint64_t dropped(application a, int64_t pair) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < 64; i++) bits |= (uint64_t)(get(a.out[0], 64 * pair + i) == 0) << i;
  return bits;
}

/* A first dimension of 4 or 3 holds two rows of the mini-batch: it is a multiple of them, or
 * not. */
TEST(attention_dropout_differs_between_micro_batches_whatever_the_first_dimension_is) {
  gp_attrs attr = {.random = OP, .attention_qkv = {.dropout = 0.5}};
  for (int64_t b = 3; b <= 4; b++) {
    gp_tensor *q = zeros(GP_F32, SHAPE(b, 2, 8, 8)), *v = zeros(GP_F32, SHAPE(b, 2, 8, 8));
    for (int64_t i = 0; i < 2 * b * 8; i++) gp_tensor_set_double(v, 8 * i + i % 8, 1);
    uint64_t seen[24];
    for (int64_t micro = 0, n = 0; micro < 3; micro++) {
      application a = stepped(APPLY(attention, attr, q, q, v));
      a.step.rows = 2, a.step.first_row = 2 * micro;
      CHECK_STATUS(apply(&a), GP_OK);
      for (int64_t pair = 0; pair < 2 * b; pair++, n++) {
        seen[n] = dropped(a, pair);
        for (int64_t other = 0; other < n; other++) CHECK(seen[n] != seen[other]);
      }
    }
    finish();
  }
}

TEST(attention_names_both_shapes) {
  gp_tensor *q = zeros(GP_F32, SHAPE(2, 3, 8, 4)), *k = zeros(GP_F32, SHAPE(2, 3, 9, 5));
  refuses(APPLY(attention, NO_ATTRS, q, k, k), GP_ESHAPE,
          "key is 2x3x9x5, expected 2x?x?x4 (query is 2x3x8x4)");
  refuses(APPLY(attention, NO_ATTRS, zeros(GP_F32, SHAPE(8, 4)), k, k), GP_ESHAPE,
          "query is 8x4, expected ?x?x?x?");
  gp_tensor *none = zeros(GP_F32, SHAPE(2, 3, 0, 4));
  refuses(APPLY(attention, NO_ATTRS, q, none, none), GP_ESHAPE,
          "key is 2x3x0x4, expected at least one key");
  refuses(APPLY(attention, ((gp_attrs){.attention = {.dropout = -0.5}}), q, q, q), GP_ERANGE,
          "dropout is -0.5, expected 0 to 1");
  refuses(APPLY(attention_qkv, ((gp_attrs){.attention_qkv = {.causal = true, .heads = 7}}),
                zeros(GP_F32, SHAPE(2, 8, 96))),
          GP_ESHAPE, "qkv is 2x8x96, expected a last dimension that 3 x 7 heads divide");
  refuses(APPLY(attention_qkv, NO_ATTRS, zeros(GP_F32, SHAPE(2, 8, 96))), GP_EINVAL,
          "heads is 0, expected 1 or more");
  finish();
}

TEST_MAIN(attention_is_its_definition, attention_dx_is_the_gradient,
          attention_dx_agrees_in_f32_over_several_blocks,
          attention_that_drops_everything_gives_zeros, attention_takes_any_strides,
          attention_takes_repeated_operands, attention_qkv_is_attention_on_the_parts,
          attention_dropout_does_not_depend_on_the_micro_batch,
          attention_dropout_differs_between_micro_batches_whatever_the_first_dimension_is,
          attention_names_both_shapes)
