/* tests/c/ops/cut_test.c - what the executor relies on when it cuts and groups ops, for every op.
 *
 * The executor runs pieces of `grain` units in any order and on any thread; it passes a block of
 * rows through a whole group of row-wise ops; it lets results take over the memory of inputs; and
 * it adds to gradients in place. The flags of each op promise which of these it supports. Here
 * every promise of ops.def is tested: an op without a sample in the table is a failure. */
#include "op_samples.h"

/* ---- one application ----------------------------------------------------------------------- */

typedef struct application {
  const sample *sample;
  const gp_op_def *def;
  int n_in;
  gp_tensor *in[GP_MAX_INPUTS];
  gp_call call; /* out[].meta points into sig */
  gp_sig sig;
  gp_cut cut;
  void *scratch;
} application;

static const gp_step_block step = {
    .seed = 5, .step = 3, .rows = 150, .first_row = 8, .inverse_count = 0.125, .scale = 2};

static gp_tensor *draw(const input *in, gp_dtype dtype) {
  if (in->kind == 'f') return uniform(dtype, in->shape, -2, 2);
  if (in->kind == 'p') return uniform(dtype, in->shape, 0.25, 2);
  if (in->kind == 'l') return uniform(dtype, in->shape, 1.25, 4);
  if (in->kind == 's') return uniform(dtype, in->shape, 0.0625, 0.9375);
  if (in->kind == 'n') return uniform(GP_I64, in->shape, 1, 6);
  gp_tensor *ids = uniform(GP_I64, in->shape, 0, in->kind == 'b' ? 2 : 5);
  if (in->kind == 'i') return ids;
  gp_tensor *flags = new_tensor(GP_BOOL, in->shape);
  CHECK_STATUS(gp_tensor_copy(flags, ids), GP_OK);
  gp_tensor_free(ids);
  return flags;
}

static gp_tensor *copy_of(const gp_tensor *from) {
  gp_tensor *to = new_tensor(gp_tensor_meta(from)->dtype, gp_tensor_meta(from)->shape);
  CHECK_STATUS(gp_tensor_copy(to, from), GP_OK);
  return to;
}

static void bind_inputs(application *a, gp_tensor *const *in) {
  for (int i = 0; i < a->n_in; i++)
    a->call.in[i] = (gp_arg){gp_tensor_data(in[i]), gp_tensor_meta(in[i])};
}

/* Draw the inputs, infer, and make scratch; views have no kernel. Call `close_application`. */
static application open_application(const sample *s, gp_dtype dtype) {
  application a = {.sample = s, .def = gp_op_get(s->op)};
  while (a.n_in < GP_MAX_INPUTS && s->in[a.n_in].kind) {
    a.in[a.n_in] = draw(&s->in[a.n_in], dtype);
    a.n_in++;
  }
  a.sig = (gp_sig){.attr = &s->attrs, .n_in = a.n_in};
  for (int i = 0; i < a.n_in; i++) a.sig.in[i] = gp_tensor_meta(a.in[i]);
  CHECK_STATUS(gp_op_infer(s->op, &a.sig), GP_OK);
  a.call = (gp_call){.attr = &s->attrs, .step = &step, .n_in = a.n_in, .n_out = a.sig.n_out};
  return a;
}

/* Allocates scratch for the inputs that are bound: strided ones may need more. */
static void make_scratch(application *a) {
  size_t bytes = a->def->cpu.scratch ? a->def->cpu.scratch(&a->call) : 0;
  free(a->scratch);
  a->scratch = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
}

/* Binds the inputs; call it when the application has its final address. */
static void prepare(application *a) {
  bind_inputs(a, a->in);
  for (int k = 0; k < a->sig.n_out; k++) a->call.out[k].meta = &a->sig.out[k];
  a->cut = a->def->cpu.cut(&a->call);
  make_scratch(a);
}

static void close_application(application *a) {
  for (int i = 0; i < a->n_in; i++) gp_tensor_free(a->in[i]);
  free(a->scratch);
}

enum { SENTINEL = 0x5a };

/* Makes output memory: filled with the sentinel, or with the slot's contents for ops that write
 * their input and for sums that are added to. */
static void make_outputs(const application *a, gp_tensor **out) {
  for (int k = 0; k < a->sig.n_out; k++) {
    const gp_meta *meta = &a->sig.out[k];
    out[k] = new_tensor(meta->dtype, meta->shape);
    bool slot = k < gp_op_slots(a->sample->op);
    if (slot) CHECK_STATUS(gp_tensor_copy(out[k], a->in[k]), GP_OK);
    if (!slot && !a->call.accumulate) memset(gp_tensor_data(out[k]), SENTINEL, gp_meta_bytes(meta));
  }
}

static void free_all(gp_tensor **out, int n) {
  for (int k = 0; k < n; k++) gp_tensor_free(out[k]);
}

static void run_units(application *a, gp_tensor *const *out, int64_t first, int64_t last) {
  for (int k = 0; k < a->sig.n_out; k++) a->call.out[k].data = gp_tensor_data(out[k]);
  for (int k = 0; k < gp_op_slots(a->sample->op); k++) a->call.in[k].data = a->call.out[k].data;
  CHECK_STATUS(
      a->def->cpu.run(&a->call, (gp_span){.first = first, .last = last, .scratch = a->scratch}),
      GP_OK);
}

static int64_t piece_count(const application *a) {
  return (a->cut.units + a->cut.grain - 1) / a->cut.grain;
}

static void run_piece(application *a, gp_tensor *const *out, int64_t piece) {
  int64_t first = piece * a->cut.grain, last = first + a->cut.grain;
  run_units(a, out, first, last < a->cut.units ? last : a->cut.units);
}

static void check_same(const application *a, gp_tensor *const *x, gp_tensor *const *y,
                       const char *what) {
  for (int k = 0; k < a->sig.n_out; k++) {
    if (!same_bits(x[k], y[k]))
      printf("%s (sample %d), output %d: %s\n", a->def->name, (int)(a->sample - samples), k, what);
    CHECK(same_bits(x[k], y[k]));
  }
}

/* ---- cutting ------------------------------------------------------------------------------- */

/* Runs the op whole, then piece by piece in three orders: ascending, descending, every other one
 * first. */
static void check_orders(application *a) {
  gp_tensor *whole[GP_MAX_OUTPUTS], *cut[GP_MAX_OUTPUTS];
  int64_t n = piece_count(a);
  make_outputs(a, whole);
  run_units(a, whole, 0, a->cut.units);
  for (int order = 0; order < 3; order++) {
    make_outputs(a, cut);
    for (int64_t p = 0; p < n; p++) {
      int64_t half = (n + 1) / 2, mixed = p < half ? 2 * p : 2 * (p - half) + 1;
      run_piece(a, cut, order == 0 ? p : order == 1 ? n - 1 - p : mixed);
    }
    check_same(a, whole, cut, "pieces differ from the whole");
    free_all(cut, a->sig.n_out);
  }
  free_all(whole, a->sig.n_out);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Sets the range of elements, of a value of n, that belong to a piece: see GP_OP_ROWS. */
static void rows_of(const application *a, int64_t piece, int64_t n, int64_t range[2]) {
  int64_t first = piece * a->cut.grain, last = first + a->cut.grain;
  if (last > a->cut.units) last = a->cut.units;
  range[0] = first * n / a->cut.units;
  range[1] = last * n / a->cut.units;
}

/* The executor reads an input of a group row by row under this condition. */
static bool reads_rows(const application *a, int i) {
  int64_t n = gp_meta_numel(a->sig.in[i]);
  bool same = n >= a->cut.units && n % a->cut.units == 0;
  if (a->def->flags & GP_OP_STRIDED) same = same && n == gp_meta_numel(&a->sig.out[0]);
  return (a->def->row_inputs >> i & 1) && same;
}

/* Overwrites what the piece must not read: with NaN, ids that are refused, bytes that are no
 * booleans. */
static void poison(gp_tensor *t, const int64_t range[2]) {
  size_t item = gp_dtype_size(gp_tensor_meta(t)->dtype);
  char *data = gp_tensor_data(t);
  size_t first = (size_t)range[0] * item, last = (size_t)range[1] * item;
  memset(data, 0xff, first);
  memset(data + last, 0xff, gp_meta_bytes(gp_tensor_meta(t)) - last);
}

/* Do elements [first, last) equal those of the whole, and all others those from before? */
static bool only_rows(const gp_tensor *part, const gp_tensor *whole, const gp_tensor *before,
                      const int64_t range[2]) {
  size_t item = gp_dtype_size(gp_tensor_meta(part)->dtype);
  size_t first = (size_t)range[0] * item, last = (size_t)range[1] * item;
  const char *p = gp_tensor_data(part), *w = gp_tensor_data(whole), *b = gp_tensor_data(before);
  return memcmp(p, b, first) == 0 && memcmp(p + first, w + first, last - first) == 0 &&
         memcmp(p + last, b + last, gp_meta_bytes(gp_tensor_meta(part)) - last) == 0;
}

/* Runs one piece alone, on inputs whose other rows are poisoned: it must write its rows and no
 * others. */
static void check_piece(application *a, gp_tensor *const *whole, int64_t piece) {
  gp_tensor *in[GP_MAX_INPUTS], *out[GP_MAX_OUTPUTS], *before[GP_MAX_OUTPUTS];
  int64_t range[2];
  make_outputs(a, out);
  make_outputs(a, before);
  for (int i = 0; i < a->n_in; i++) {
    in[i] = copy_of(a->in[i]);
    rows_of(a, piece, gp_tensor_numel(in[i]), range);
    if (reads_rows(a, i)) poison(in[i], range);
  }
  bind_inputs(a, in);
  run_piece(a, out, piece);
  for (int k = 0; k < a->sig.n_out; k++) {
    rows_of(a, piece, gp_tensor_numel(out[k]), range);
    bool good = only_rows(out[k], whole[k], before[k], range);
    if (!good) printf("%s (sample %d), ", a->def->name, (int)(a->sample - samples));
    if (!good) printf("output %d, piece %d: not its rows alone\n", k, (int)piece);
    CHECK(good);
  }
  bind_inputs(a, a->in);
  free_all(in, a->n_in), free_all(out, a->sig.n_out), free_all(before, a->sig.n_out);
}

static void check_rows(application *a) {
  gp_tensor *whole[GP_MAX_OUTPUTS];
  CHECK(a->cut.grain == GP_ROW_BLOCK);
  CHECK(a->cut.units > 2 * GP_ROW_BLOCK); /* otherwise the sample tests nothing */
  make_outputs(a, whole);
  run_units(a, whole, 0, a->cut.units);
  for (int64_t p = 0; p < piece_count(a); p++) check_piece(a, whole, p);
  free_all(whole, a->sig.n_out);
}

/* ---- shared memory -------------------------------------------------------------------------- */

/* Writes out[0] into the memory of input i, piece by piece. */
static void check_in_place(application *a, int i) {
  gp_tensor *fresh[GP_MAX_OUTPUTS], *taken[GP_MAX_OUTPUTS], *in[GP_MAX_INPUTS];
  if (!gp_meta_equal(a->sig.in[i], &a->sig.out[0])) return;
  make_outputs(a, fresh);
  make_outputs(a, taken);
  run_units(a, fresh, 0, a->cut.units);
  for (int k = 0; k < a->n_in; k++) in[k] = gp_tensor_retain(a->in[k]);
  gp_tensor_free(in[i]), gp_tensor_free(taken[0]);
  in[i] = copy_of(a->in[i]);
  taken[0] = gp_tensor_retain(in[i]);
  bind_inputs(a, in);
  for (int64_t p = piece_count(a) - 1; p >= 0; p--) run_piece(a, taken, p);
  check_same(a, fresh, taken, "differs in the memory of an input");
  bind_inputs(a, a->in);
  free_all(in, a->n_in), free_all(fresh, a->sig.n_out), free_all(taken, a->sig.n_out);
}

/* The op must add to what is there, up to rounding, with the same bits in pieces. */
static void check_accumulated(application *a) {
  gp_tensor *once[GP_MAX_OUTPUTS], *sum[GP_MAX_OUTPUTS];
  make_outputs(a, once);
  run_units(a, once, 0, a->cut.units);
  a->call.accumulate = true;
  check_orders(a);
  make_outputs(a, sum); /* zeros */
  for (int pass = 1; pass <= 2; pass++) {
    for (int64_t p = 0; p < piece_count(a); p++) run_piece(a, sum, p);
    for (int64_t e = 0; e < gp_tensor_numel(sum[0]); e++)
      CHECK_NEAR(gp_tensor_get_double(sum[0], e), pass * gp_tensor_get_double(once[0], e), 2e-3);
  }
  a->call.accumulate = false;
  free_all(once, a->sig.n_out), free_all(sum, a->sig.n_out);
}

/* An input that lies column by column gives the same bits as one that lies row by row. */
static void check_strided(application *a, int i) {
  gp_tensor *plain[GP_MAX_OUTPUTS], *strided[GP_MAX_OUTPUTS], *in[GP_MAX_INPUTS];
  make_outputs(a, plain);
  make_outputs(a, strided);
  run_units(a, plain, 0, a->cut.units);
  for (int k = 0; k < a->n_in; k++) in[k] = gp_tensor_retain(a->in[k]);
  gp_tensor *turned = reversed(in[i]), *columns = copy_of(turned);
  gp_tensor_free(in[i]);
  in[i] = reversed(columns);
  bind_inputs(a, in);
  make_scratch(a);
  for (int64_t p = 0; p < piece_count(a); p++) run_piece(a, strided, p);
  check_same(a, plain, strided, "differs for a strided input");
  bind_inputs(a, a->in);
  gp_tensor_free(turned), gp_tensor_free(columns);
  free_all(in, a->n_in), free_all(plain, a->sig.n_out), free_all(strided, a->sig.n_out);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Calls check(application) for every sample whose op has all of the flags, in f32 and f64. */
static void for_each(unsigned flags, void (*check)(application *)) {
  for (int s = 0; s < sample_count(); s++)
    for (gp_dtype dtype = GP_F32; dtype <= GP_F64; dtype++) {
      application a = open_application(sample_at(s), dtype);
      if (!(a.def->flags & GP_OP_VIEW) && (a.def->flags & flags) == flags) {
        prepare(&a);
        check(&a);
      }
      close_application(&a);
    }
}

static void check_in_place_of_each(application *a) {
  for (int i = 0; i < a->n_in; i++) check_in_place(a, i);
}

/* Slots are always contiguous. */
static void check_strided_of_each(application *a) {
  for (int i = gp_op_slots(a->sample->op); i < a->n_in; i++) check_strided(a, i);
}

TEST(every_op_has_a_sample) {
  for (int op = 0; op < GP_OP_COUNT; op++) {
    bool found = false;
    for (int s = 0; s < sample_count(); s++) found |= sample_at(s)->op == (gp_op)op;
    if (!found) printf("%s has no sample\n", gp_op_name((gp_op)op));
    CHECK(found);
  }
}

TEST(pieces_in_any_order_give_the_bits_of_the_whole) { for_each(0, check_orders); }

TEST(row_wise_ops_read_and_write_their_rows_alone) { for_each(GP_OP_ROWS, check_rows); }

TEST(in_place_ops_may_write_over_any_input_like_the_output) {
  for_each(GP_OP_INPLACE, check_in_place_of_each);
}

TEST(accumulating_ops_add_to_what_is_there) { for_each(GP_OP_ACCUMULATES, check_accumulated); }

TEST(strided_inputs_give_the_same_bits) { for_each(GP_OP_STRIDED, check_strided_of_each); }

/* Views cost nothing; every other op moves bytes. */
TEST(costs_are_numbers) {
  for (int s = 0; s < sample_count(); s++) {
    application a = open_application(sample_at(s), GP_F32);
    gp_cost cost = a.def->cost(&a.sig);
    bool view = a.def->flags & GP_OP_VIEW;
    CHECK(isfinite(cost.flop) && cost.flop >= 0 && isfinite(cost.bytes));
    CHECK(view ? cost.flop == 0 && cost.bytes == 0 : cost.bytes > 0);
    close_application(&a);
  }
}

TEST_MAIN(every_op_has_a_sample, pieces_in_any_order_give_the_bits_of_the_whole,
          row_wise_ops_read_and_write_their_rows_alone,
          in_place_ops_may_write_over_any_input_like_the_output,
          accumulating_ops_add_to_what_is_there, strided_inputs_give_the_same_bits,
          costs_are_numbers)
