/* tests/c/ops/dense_test.c - matmul, linear and embedding against loops written out. */
#include "kernel.h"

/* Computes c [m, n] (+)= a [m, k] b [k, n]; strides choose transposes. */
typedef struct naive {
  int64_t m, n, k, ai, ak, bk, bj;
} naive;

static void naive_product(const naive *p, const gp_tensor *a, const gp_tensor *b, gp_tensor *c) {
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      double sum = get(c, i * p->n + j);
      for (int64_t l = 0; l < p->k; l++)
        sum += get(a, i * p->ai + l * p->ak) * get(b, l * p->bk + j * p->bj);
      gp_tensor_set_double(c, i * p->n + j, sum);
    }
}

/* ---- linear -------------------------------------------------------------------------------- */

TEST(linear_is_x_wt_plus_b) {
  gp_tensor *x = noise(GP_F64, SHAPE(3, 50, 7), 1), *w = noise(GP_F64, SHAPE(5, 7), 2);
  gp_tensor *b = noise(GP_F64, SHAPE(5), 3), *want = zeros(GP_F64, SHAPE(150, 5));
  for (int64_t i = 0; i < 150 * 5; i++) gp_tensor_set_double(want, i, get(b, i % 5));
  naive_product(&(naive){150, 5, 7, 7, 1, 1, 7}, x, w, want);
  application a = same_in_pieces(APPLY(linear, NO_ATTRS, x, w, b));
  CHECK(gp_shape_equal(&gp_tensor_meta(a.out[0])->shape, &SHAPE(3, 50, 5)));
  CHECK_NEAR(difference(a.out[0], want), 0, 1e-14);
  near_in_f32(APPLY(linear, NO_ATTRS, x, w, b), 1e-6);
  near_in_f32(APPLY(linear, NO_ATTRS, x, w), 1e-6);
  finish();
}

TEST(linear_takes_one_row_and_no_row) {
  gp_tensor *w = noise(GP_F32, SHAPE(5, 7), 2), *b = noise(GP_F32, SHAPE(5), 3);
  application one = same_in_pieces(APPLY(linear, NO_ATTRS, noise(GP_F32, SHAPE(7), 1), w, b));
  CHECK(gp_shape_equal(&gp_tensor_meta(one.out[0])->shape, &SHAPE(5)));
  application none = same_in_pieces(APPLY(linear, NO_ATTRS, zeros(GP_F32, SHAPE(0, 7)), w, b));
  CHECK(gp_tensor_numel(none.out[0]) == 0);
  application empty = same_in_pieces(
      APPLY(linear, NO_ATTRS, zeros(GP_F32, SHAPE(2, 0)), zeros(GP_F32, SHAPE(5, 0)), b));
  for (int64_t i = 0; i < 10; i++) CHECK(get(empty.out[0], i) == get(b, i % 5));
  finish();
}

TEST(linear_gradients_are_those_of_the_function) {
  gp_tensor *x = noise(GP_F64, SHAPE(2, 35, 3), 1), *w = noise(GP_F64, SHAPE(4, 3), 2);
  gp_tensor *dy = noise(GP_F64, SHAPE(2, 35, 4), 4);
  application forward = APPLY(linear, NO_ATTRS, x, w, noise(GP_F64, SHAPE(4), 3));
  application dx = same_in_pieces(APPLY(linear_dx, NO_ATTRS, dy, w));
  application dw = same_in_pieces(APPLY(linear_dw, NO_ATTRS, dy, x));
  check_gradient(forward, 0, dy, dx.out[0]);
  check_gradient(forward, 1, dy, dw.out[0]);
  near_in_f32(APPLY(linear_dx, NO_ATTRS, dy, w), 1e-5);
  near_in_f32(APPLY(linear_dw, NO_ATTRS, dy, x), 1e-5);
  finish();
}

TEST(linear_dw_accumulates_and_cuts_by_rows) {
  gp_tensor *x = noise(GP_F32, SHAPE(130, 9), 1), *dy = noise(GP_F32, SHAPE(130, 700), 2);
  gp_tensor *start = noise(GP_F32, SHAPE(700, 9), 3), *want = converted(GP_F64, start);
  naive_product(&(naive){700, 9, 130, 1, 700, 9, 1}, dy, x, want);
  application a = APPLY(linear_dw, NO_ATTRS, dy, x);
  a.accumulate = true;
  a.out[0] = start;
  a = same_in_pieces(a);
  CHECK_NEAR(difference(a.out[0], want), 0, 1e-5);
  gp_tensor *none =
      output(APPLY(linear_dw, NO_ATTRS, zeros(GP_F32, SHAPE(0, 4)), zeros(GP_F32, SHAPE(0, 3))));
  for (int64_t i = 0; i < 12; i++) CHECK(get(none, i) == 0);
  finish();
}

TEST(linear_names_both_shapes) {
  gp_tensor *w = zeros(GP_F32, SHAPE(10, 256));
  refuses(APPLY(linear, NO_ATTRS, zeros(GP_F32, SHAPE(32, 128)), w), GP_ESHAPE,
          "input is 32x128, expected ?x256 (weight is 10x256)");
  refuses(APPLY(linear, NO_ATTRS, zeros(GP_F32, SHAPE(4, 8, 2)), w), GP_ESHAPE,
          "input is 4x8x2, expected ?x?x256 (weight is 10x256)");
  refuses(APPLY(linear, NO_ATTRS, zeros(GP_F32, SHAPE(2, 256)), w, zeros(GP_F32, SHAPE(9))),
          GP_ESHAPE, "bias is 9, expected 10 (weight is 10x256)");
  refuses(APPLY(linear, NO_ATTRS, zeros(GP_F64, SHAPE(2, 256)), w), GP_EDTYPE,
          "weight is f32, expected f64 (input is f64)");
  refuses(APPLY(linear, NO_ATTRS, zeros(GP_I64, SHAPE(2, 256)), w), GP_EDTYPE,
          "input is i64, expected f32 or f64");
  refuses(APPLY(linear, NO_ATTRS, zeros(GP_F32, SCALAR), w), GP_ESHAPE,
          "input is scalar, expected at least 1 dimension");
  finish();
}

/* ---- fused ops ------------------------------------------------------------------------------ */

static gp_tensor *then(application a, gp_tensor **second) {
  CHECK_STATUS(apply(&a), GP_OK);
  if (second) *second = a.out[1];
  return a.out[0];
}

/* The inputs have a block and a half of rows, one dimension, or no rows. */
static const gp_shape fused_inputs[] = {{3, {2, 48, 7}}, {1, {7}}, {2, {0, 7}}};
#define BY_TANH ((gp_attrs){.gelu = {GP_GELU_TANH}})

static gp_shape widened(gp_shape shape, int64_t width) {
  shape.dim[shape.rank - 1] = width;
  return shape;
}

/* Both compute the same products of the same numbers. */
TEST(packed_weights_give_the_bits_of_plain_ones) {
  for (gp_dtype d = GP_F32; d <= GP_F64; d++) {
    gp_tensor *x = noise(d, SHAPE(2, 48, 7), 1), *w = noise(d, SHAPE(800, 7), 2);
    gp_tensor *b = noise(d, SHAPE(800), 3), *r = noise(d, SHAPE(2, 48, 800), 4);
    gp_tensor *packed = then(same_in_pieces(APPLY(pack_linear, NO_ATTRS, w)), NULL);
    gp_attrs of = {.linear = {800}};
    CHECK(gp_tensor_meta(packed)->dtype == GP_U8 && gp_tensor_bytes(packed) == gp_tensor_bytes(w));
    CHECK(gp_tensor_equal(output(APPLY(linear, NO_ATTRS, x, w, b)),
                          then(same_in_pieces(APPLY(linear, of, x, packed, b)), NULL)));
    CHECK(gp_tensor_equal(output(APPLY(linear, NO_ATTRS, x, w)),
                          then(same_in_pieces(APPLY(linear, of, x, packed)), NULL)));
    CHECK(gp_tensor_equal(output(APPLY(linear_add, NO_ATTRS, x, w, r, b)),
                          then(same_in_pieces(APPLY(linear_add, of, x, packed, r, b)), NULL)));
    CHECK(gp_tensor_equal(output(APPLY(linear_gelu, NO_ATTRS, x, w, b)),
                          then(same_in_pieces(APPLY(linear_gelu, of, x, packed, b)), NULL)));
  }
  finish();
}

/* Rows of 256 elements and of multiples are packed a line apart (gp_packed_stride). */
TEST(packed_weights_whose_rows_would_lie_too_evenly_give_the_same_bits) {
  for (gp_dtype d = GP_F32; d <= GP_F64; d++) {
    gp_tensor *x = noise(d, SHAPE(70, 512), 1), *w = noise(d, SHAPE(256, 512), 2);
    gp_tensor *dy = noise(d, SHAPE(70, 256), 3);
    gp_tensor *packed = then(same_in_pieces(APPLY(pack_linear, NO_ATTRS, w)), NULL);
    CHECK(gp_tensor_bytes(packed) == 512 * (256 + 16) * gp_dtype_size(d));
    CHECK(gp_tensor_equal(
        output(APPLY(linear, NO_ATTRS, x, w)),
        then(same_in_pieces(APPLY(linear, ((gp_attrs){.linear = {256}}), x, packed)), NULL)));
    gp_tensor *back =
        output(APPLY(pack_linear, ((gp_attrs){.pack_linear = {.transposed = true}}), w));
    CHECK(gp_tensor_equal(
        output(APPLY(linear_dx, NO_ATTRS, dy, w)),
        then(same_in_pieces(APPLY(linear_dx, ((gp_attrs){.linear_dx = {512}}), dy, back)), NULL)));
  }
  finish();
}

/* A weight of 512 KiB and more has products of its own on some processors (ops/dense/large.h). */
TEST(large_weights_have_the_values_of_small_ones) {
  gp_tensor *x = noise(GP_F64, SHAPE(70, 512), 1), *w = noise(GP_F64, SHAPE(272, 512), 2);
  gp_tensor *dy = noise(GP_F64, SHAPE(70, 272), 3), *b = noise(GP_F64, SHAPE(272), 4);
  near_in_f32(APPLY(linear, NO_ATTRS, x, w, b), 1e-4);
  near_in_f32(APPLY(linear, NO_ATTRS, x, w), 1e-4);
  near_in_f32(APPLY(linear_dx, NO_ATTRS, dy, w), 1e-4);
  near_in_f32(APPLY(linear_dw, NO_ATTRS, dy, x), 1e-4);
  near_in_f32(APPLY(linear_bias_dw, NO_ATTRS, dy, x), 1e-4);
  finish();
}

/* Both orders of the weight, and a gradient that is added to. */
TEST(large_weights_have_the_same_bits_packed_or_not_and_in_pieces) {
  gp_tensor *x = noise(GP_F32, SHAPE(2, 70, 512), 1), *w = noise(GP_F32, SHAPE(272, 512), 2);
  gp_tensor *dy = noise(GP_F32, SHAPE(2, 70, 272), 3), *b = noise(GP_F32, SHAPE(272), 4);
  gp_tensor *packed = then(same_in_pieces(APPLY(pack_linear, NO_ATTRS, w)), NULL);
  gp_attrs back = {.pack_linear = {.transposed = true}};
  gp_tensor *packed_dx = then(same_in_pieces(APPLY(pack_linear, back, w)), NULL);
  CHECK(gp_tensor_equal(
      then(same_in_pieces(APPLY(linear, NO_ATTRS, x, w, b)), NULL),
      then(same_in_pieces(APPLY(linear, ((gp_attrs){.linear = {272}}), x, packed, b)), NULL)));
  CHECK(gp_tensor_equal(
      then(same_in_pieces(APPLY(linear_dx, NO_ATTRS, dy, w)), NULL),
      then(same_in_pieces(APPLY(linear_dx, ((gp_attrs){.linear_dx = {512}}), dy, packed_dx)),
           NULL)));
  application dw = APPLY(linear_dw, NO_ATTRS, dy, x);
  dw.accumulate = true;
  dw.out[0] = noise(GP_F32, SHAPE(272, 512), 5);
  same_in_pieces(dw);
  finish();
}

TEST(packed_weights_are_refused_where_they_do_not_fit) {
  gp_tensor *x = zeros(GP_F32, SHAPE(4, 3)), *w = zeros(GP_F32, SHAPE(5, 3));
  gp_tensor *packed = output(APPLY(pack_linear, NO_ATTRS, w));
  refuses(APPLY(linear, NO_ATTRS, x, packed), GP_EDTYPE, "weight is u8, expected f32");
  refuses(APPLY(linear, ((gp_attrs){.linear = {5}}), x, w), GP_ESHAPE, "weight is f32 5x3");
  refuses(APPLY(linear, ((gp_attrs){.linear = {6}}), x, packed), GP_ESHAPE, "expected 72 packed");
  refuses(APPLY(linear, ((gp_attrs){.linear = {-5}}), x, packed), GP_ERANGE, "packed is -5");
  refuses(APPLY(linear_dx, NO_ATTRS, zeros(GP_F32, SHAPE(4, 5)), packed), GP_EDTYPE,
          "weight is u8, expected f32");
  finish();
}

TEST(linear_gelu_has_the_bits_of_the_two_ops) {
  for (gp_dtype d = GP_F32; d <= GP_F64; d++)
    for (int i = 0; i < 3; i++) {
      gp_tensor *x = noise(d, fused_inputs[i], 1), *w = noise(d, SHAPE(800, 7), 2), *h;
      gp_tensor *b = noise(d, SHAPE(800), 3), *first = output(APPLY(linear, NO_ATTRS, x, w, b));
      gp_tensor *want = output(APPLY(gelu, BY_TANH, first));
      gp_tensor *got = then(same_in_pieces(APPLY(linear_gelu, NO_ATTRS, x, w, b)), &h);
      CHECK(gp_tensor_equal(got, want) && gp_tensor_equal(h, first));
    }
  finish();
}

/* A program runs it like this where no op reads h. */
TEST(linear_gelu_works_without_its_second_output) {
  gp_tensor *x = noise(GP_F32, SHAPE(70, 7), 1), *w = noise(GP_F32, SHAPE(9, 7), 2);
  gp_tensor *y = zeros(GP_F32, SHAPE(70, 9)), *want = output(APPLY(linear_gelu, NO_ATTRS, x, w));
  gp_attrs none = NO_ATTRS;
  gp_call call = {.attr = &none, .n_in = 2, .n_out = 1};
  bind_call(&call, (gp_tensor *[]){x, w}, &y);
  CHECK_STATUS(run_pieces(&call, &gp_def_linear_gelu.cpu, 64), GP_OK);
  CHECK(gp_tensor_equal(y, want));
  finish();
}

TEST(linear_gelu_dx_has_the_bits_of_the_two_ops) {
  for (gp_dtype d = GP_F32; d <= GP_F64; d++)
    for (int i = 0; i < 3; i++) {
      gp_tensor *dy = noise(d, fused_inputs[i], 1), *w = noise(d, SHAPE(7, 600), 2);
      gp_tensor *h = noise(d, widened(fused_inputs[i], 600), 3);
      gp_tensor *g = output(APPLY(linear_dx, NO_ATTRS, dy, w));
      gp_tensor *want = output(APPLY(gelu_dx, BY_TANH, g, h));
      gp_tensor *got = then(same_in_pieces(APPLY(linear_gelu_dx, NO_ATTRS, dy, w, h)), NULL);
      CHECK(gp_tensor_equal(got, want));
    }
  finish();
}

TEST(linear_add_has_the_bits_of_the_two_ops) {
  for (gp_dtype d = GP_F32; d <= GP_F64; d++)
    for (int i = 0; i < 3; i++) {
      gp_tensor *x = noise(d, fused_inputs[i], 1), *w = noise(d, SHAPE(600, 7), 2);
      gp_tensor *b = noise(d, SHAPE(600), 3), *r = noise(d, widened(fused_inputs[i], 600), 4);
      gp_tensor *want = output(APPLY(add, NO_ATTRS, r, output(APPLY(linear, NO_ATTRS, x, w, b))));
      CHECK(gp_tensor_equal(then(same_in_pieces(APPLY(linear_add, NO_ATTRS, x, w, r, b)), NULL),
                            want));
      want = output(APPLY(add, NO_ATTRS, r, output(APPLY(linear, NO_ATTRS, x, w))));
      CHECK(
          gp_tensor_equal(then(same_in_pieces(APPLY(linear_add, NO_ATTRS, x, w, r)), NULL), want));
    }
  finish();
}

TEST(linear_bias_dw_has_the_bits_of_the_two_ops) {
  gp_tensor *x = noise(GP_F32, SHAPE(2, 65, 9), 1), *dy = noise(GP_F32, SHAPE(2, 65, 700), 2);
  gp_tensor *start = noise(GP_F32, SHAPE(700, 9), 3), *bias = noise(GP_F32, SHAPE(700), 4);
  application a = APPLY(linear_bias_dw, NO_ATTRS, dy, x), dw = APPLY(linear_dw, NO_ATTRS, dy, x);
  application db = APPLY(sum_rows_dw, NO_ATTRS, dy);
  a.accumulate = dw.accumulate = db.accumulate = true;
  a.out[0] = converted(GP_F32, start), a.out[1] = converted(GP_F32, bias);
  dw.out[0] = start, db.out[0] = bias;
  a.pieces = true;
  CHECK_STATUS(apply(&a), GP_OK);
  CHECK_STATUS(apply(&dw), GP_OK);
  CHECK_STATUS(apply(&db), GP_OK);
  CHECK(gp_tensor_equal(a.out[0], dw.out[0]) && gp_tensor_equal(a.out[1], db.out[0]));
  finish();
}

TEST(fused_ops_name_what_does_not_fit) {
  gp_tensor *x = zeros(GP_F32, SHAPE(4, 3)), *w = zeros(GP_F32, SHAPE(5, 3));
  refuses(APPLY(linear_add, NO_ATTRS, x, w, zeros(GP_F32, SHAPE(4, 1))), GP_ESHAPE,
          "addend is 4x1, expected 4x5 (input is 4x3)");
  refuses(APPLY(linear_add, NO_ATTRS, x, w, zeros(GP_F64, SHAPE(4, 5))), GP_EDTYPE,
          "addend is f64, expected f32 (input is f32)");
  refuses(
      APPLY(linear_gelu_dx, NO_ATTRS, zeros(GP_F32, SHAPE(4, 5)), w, zeros(GP_F32, SHAPE(4, 5))),
      GP_ESHAPE, "value before GELU is 4x5, expected 4x3 (gradient is 4x5)");
  refuses(APPLY(linear_bias_dw, NO_ATTRS, zeros(GP_F32, SHAPE(2, 5)), x), GP_ESHAPE,
          "input is 4x3, expected 2x? (gradient is 2x5)");
  finish();
}

/* ---- matmul -------------------------------------------------------------------------------- */

static gp_attrs transposes(bool a, bool b) { return (gp_attrs){.matmul = {a, b}}; }

TEST(matmul_handles_all_transposes) {
  for (int t = 0; t < 4; t++) {
    bool ta = t & 1, tb = t & 2;
    gp_tensor *a = noise(GP_F64, ta ? SHAPE(2, 6, 70) : SHAPE(2, 70, 6), 1);
    gp_tensor *b = noise(GP_F64, tb ? SHAPE(2, 3, 6) : SHAPE(2, 6, 3), 2);
    application m = same_in_pieces(APPLY(matmul, transposes(ta, tb), a, b));
    near_in_f32(APPLY(matmul, transposes(ta, tb), a, b), 1e-6);
    naive p = {70, 3, 6, ta ? 1 : 6, ta ? 70 : 1, tb ? 1 : 3, tb ? 6 : 1};
    for (int s = 0; s < 2; s++) {
      gp_tensor *want = zeros(GP_F64, SHAPE(70, 3)), *as = zeros(GP_F64, SHAPE(420));
      gp_tensor *bs = zeros(GP_F64, SHAPE(18)), *got = zeros(GP_F64, SHAPE(70, 3));
      for (int64_t i = 0; i < 420; i++) gp_tensor_set_double(as, i, get(a, s * 420 + i));
      for (int64_t i = 0; i < 18; i++) gp_tensor_set_double(bs, i, get(b, s * 18 + i));
      for (int64_t i = 0; i < 210; i++) gp_tensor_set_double(got, i, get(m.out[0], s * 210 + i));
      naive_product(&p, as, bs, want);
      CHECK_NEAR(difference(got, want), 0, 1e-14);
    }
  }
  finish();
}

/* out[b0, b1] = a[b0, 0] b[b1]: both operands repeat their leading dimensions. */
TEST(matmul_broadcasts_leading_dimensions) {
  gp_tensor *a = noise(GP_F64, SHAPE(2, 1, 3, 4), 1), *b = noise(GP_F64, SHAPE(5, 4, 2), 2);
  application m = same_in_pieces(APPLY(matmul, NO_ATTRS, a, b));
  CHECK(gp_shape_equal(&gp_tensor_meta(m.out[0])->shape, &SHAPE(2, 5, 3, 2)));
  double worst = 0;
  for (int64_t e = 0; e < 60; e++) {
    int64_t j = e % 2, i = e / 2 % 3, s = e / 6 % 5, r = e / 30;
    double sum = 0;
    for (int64_t l = 0; l < 4; l++) sum += get(a, r * 12 + i * 4 + l) * get(b, s * 8 + l * 2 + j);
    worst = fmax(worst, fabs(sum - get(m.out[0], e)));
  }
  CHECK_NEAR(worst, 0, 1e-14);
  finish();
}

TEST(matmul_folds_the_stack_over_one_matrix) {
  for (int tb = 0; tb < 2; tb++) {
    gp_tensor *a = noise(GP_F64, SHAPE(3, 30, 4), 1);
    gp_tensor *b = noise(GP_F64, tb ? SHAPE(1, 5, 4) : SHAPE(1, 4, 5), 2);
    gp_tensor *want = zeros(GP_F64, SHAPE(3, 30, 5));
    naive_product(&(naive){90, 5, 4, 4, 1, tb ? 1 : 5, tb ? 4 : 1}, a, b, want);
    application m = same_in_pieces(APPLY(matmul, transposes(false, tb), a, b));
    CHECK_NEAR(difference(m.out[0], want), 0, 1e-14);
  }
  finish();
}

TEST(matmul_names_both_shapes) {
  gp_tensor *a = zeros(GP_F32, SHAPE(2, 3));
  refuses(APPLY(matmul, NO_ATTRS, a, zeros(GP_F32, SHAPE(4, 5))), GP_ESHAPE,
          "right operand is 4x5, expected 3x? (left operand is 2x3)");
  refuses(APPLY(matmul, transposes(true, true), a, zeros(GP_F32, SHAPE(5, 4))), GP_ESHAPE,
          "right operand is 5x4, expected ?x2 (left operand is 2x3)");
  refuses(APPLY(matmul, NO_ATTRS, zeros(GP_F32, SHAPE(2, 3, 4)), zeros(GP_F32, SHAPE(3, 4, 5))),
          GP_ESHAPE, "right operand is 3x4x5, left operand is 2x3x4: their leading dimensions");
  refuses(APPLY(matmul, NO_ATTRS, a, zeros(GP_F32, SHAPE(3))), GP_ESHAPE,
          "right operand is 3, expected at least 2 dimensions");
  finish();
}

/* ---- embedding ----------------------------------------------------------------------------- */

TEST(embedding_takes_rows_by_id) {
  static const gp_dtype dtypes[] = {GP_I64, GP_I32, GP_U8};
  gp_tensor *w = noise(GP_F32, SHAPE(11, 6), 1);
  for (int d = 0; d < 3; d++) {
    gp_tensor *id = ids(dtypes[d], SHAPE(3, 50), 11, 2);
    application a = same_in_pieces(APPLY(embedding, NO_ATTRS, id, w));
    CHECK(gp_shape_equal(&gp_tensor_meta(a.out[0])->shape, &SHAPE(3, 50, 6)));
    for (int64_t i = 0; i < 150 * 6; i++)
      CHECK(get(a.out[0], i) == get(w, gp_tensor_get_int(id, i / 6) * 6 + i % 6));
  }
  finish();
}

TEST(embedding_dw_adds_rows_in_the_order_of_ids) {
  gp_tensor *id = ids(GP_I64, SHAPE(2, 40), 7, 2), *dy = noise(GP_F32, SHAPE(2, 40, 150), 3);
  gp_attrs attr = {.embedding_dw = {7}};
  application fresh = same_in_pieces(APPLY(embedding_dw, attr, dy, id));
  application more = APPLY(embedding_dw, attr, dy, id);
  more.accumulate = true;
  more.out[0] = noise(GP_F32, SHAPE(7, 150), 4);
  float want[2][7 * 150] = {{0}}, *start = gp_tensor_data(more.out[0]);
  memcpy(want[1], start, sizeof want[1]);
  for (int64_t t = 0; t < 80; t++)
    for (int64_t c = 0; c < 150; c++)
      for (int k = 0; k < 2; k++)
        want[k][gp_tensor_get_int(id, t) * 150 + c] += (float)get(dy, t * 150 + c);
  more = same_in_pieces(more);
  CHECK(memcmp(want[0], gp_tensor_data(fresh.out[0]), sizeof want[0]) == 0);
  CHECK(memcmp(want[1], gp_tensor_data(more.out[0]), sizeof want[1]) == 0);
  finish();
}

TEST(embedding_dw_is_the_gradient) {
  gp_tensor *id = ids(GP_I32, SHAPE(9), 4, 2), *w = noise(GP_F64, SHAPE(4, 3), 1);
  gp_tensor *dy = noise(GP_F64, SHAPE(9, 3), 3);
  gp_tensor *dw = output(APPLY(embedding_dw, ((gp_attrs){.embedding_dw = {4}}), dy, id));
  check_gradient(APPLY(embedding, NO_ATTRS, id, w), 1, dy, dw);
  finish();
}

TEST(embedding_says_which_id_is_outside_and_where) {
  gp_tensor *id = zeros(GP_I64, SHAPE(2, 20)), *w = zeros(GP_F32, SHAPE(256, 4));
  gp_tensor_set_int(id, 36, 300);
  refuses(APPLY(embedding, NO_ATTRS, id, w), GP_ERANGE,
          "id 300 at row 2, position 17 is outside 0..255 (ids count from 0)");
  application later = APPLY(embedding, NO_ATTRS, id, w);
  later.step = (gp_step_block){.rows = 2, .first_row = 6};
  gp_tensor_set_int(id, 36, -1);
  refuses(later, GP_ERANGE, "id -1 at row 8, position 17 is outside 0..255 (ids count from 0)");
  gp_tensor *flat = zeros(GP_I64, SHAPE(3));
  gp_tensor_set_int(flat, 1, 256);
  refuses(APPLY(embedding, NO_ATTRS, flat, w), GP_ERANGE,
          "id 256 at row 2 is outside 0..255 (ids count from 0)");
  refuses(APPLY(embedding_dw, ((gp_attrs){.embedding_dw = {9}}), zeros(GP_F32, SHAPE(3, 2)), flat),
          GP_ERANGE, "id 256 at row 2 is outside 0..8 (ids count from 0)");
  refuses(APPLY(embedding, NO_ATTRS, zeros(GP_F32, SHAPE(3)), w), GP_EDTYPE,
          "ids is f32, expected i64, i32 or u8");
  finish();
}

TEST_MAIN(linear_is_x_wt_plus_b, linear_takes_one_row_and_no_row,
          linear_gradients_are_those_of_the_function, linear_dw_accumulates_and_cuts_by_rows,
          linear_names_both_shapes, packed_weights_give_the_bits_of_plain_ones,
          packed_weights_whose_rows_would_lie_too_evenly_give_the_same_bits,
          large_weights_have_the_values_of_small_ones,
          large_weights_have_the_same_bits_packed_or_not_and_in_pieces,
          packed_weights_are_refused_where_they_do_not_fit, linear_gelu_has_the_bits_of_the_two_ops,
          linear_gelu_works_without_its_second_output, linear_gelu_dx_has_the_bits_of_the_two_ops,
          linear_add_has_the_bits_of_the_two_ops, linear_bias_dw_has_the_bits_of_the_two_ops,
          fused_ops_name_what_does_not_fit, matmul_handles_all_transposes,
          matmul_broadcasts_leading_dimensions, matmul_folds_the_stack_over_one_matrix,
          matmul_names_both_shapes, embedding_takes_rows_by_id,
          embedding_dw_adds_rows_in_the_order_of_ids, embedding_dw_is_the_gradient,
          embedding_says_which_id_is_outside_and_where)
