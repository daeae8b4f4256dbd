/* tests/cuda/layouts_test.c - light ops on values in every memory layout, in every dtype.
 *
 * Shapes, layouts and values are drawn. Ops that round once, or not at all, must leave the same
 * bits as the CPU, in the gaps between elements too. The CPU only stores halves, so those are
 * compared with f32 on the CPU, rounded. */
#include "base/numbers/convert.h"
#include "gpu_memory.h"

enum { MOST = 3000, ROUNDS = 12 }; /* MOST: elements of a value; ROUNDS: values of a kind */

/* ---- drawing ------------------------------------------------------------------------------- */

/* Draws 0 .. n - 1; the sequence is always the same. */
static int64_t below(int64_t n) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int64_t)((state >> 11) % (uint64_t)n);
}

/* Draws a shape of any rank, with odd and even sizes, 0 and 1, and at most MOST elements. */
static gp_shape draw_shape(void) {
  static const int64_t sizes[] = {1, 2, 3, 4, 8, 16, 33, 64, 0, 1000};
  gp_shape shape = {.rank = (int)below(GP_MAX_RANK + 1)};
  int64_t n = 1;
  for (int d = 0; d < shape.rank; d++) {
    int64_t size = sizes[below(below(8) ? 8 : 10)];
    shape.dim[d] = n * size > MOST ? 1 : size;
    n *= shape.dim[d] ? shape.dim[d] : 1;
  }
  return shape;
}

/* Draws a shape that broadcasts to this one: it has fewer dims, or some of size 1. */
static gp_shape draw_smaller(gp_shape shape) {
  int fewer = below(3) ? 0 : (int)below(shape.rank + 1);
  gp_shape smaller = {.rank = shape.rank - fewer};
  for (int d = 0; d < smaller.rank; d++) smaller.dim[d] = below(4) ? shape.dim[d + fewer] : 1;
  return smaller;
}

/* Numbers where conversions and comparisons go wrong: ties, limits of dtypes, zeros, NaN,
 * infinity. */
/* clang-format off */
static const double edges[] = {
    0, -0.0, NAN, INFINITY, -INFINITY, 1e-40, -3e38, 1e300, 65504, 65520, -65519.999999, 5e-8, 6e-5,
    1.00390625, 1.01171875, 1.0039062500001, 16777217, 127.5, 255, 256, -1, -1.5, 0.999,
    1 / 3., 1e10,
    2147483648, 4294967295, -2147483649, 1e19, -0x1p63, 0x1p63};
/* clang-format on */

static double draw_number(gp_dtype dtype) {
  if (dtype == GP_BOOL) return (double)below(2);
  if (below(3) == 0) return edges[below(sizeof edges / sizeof *edges)];
  return (double)below(1 << 20) / 65536.0 - 8;
}

/* ---- values -------------------------------------------------------------------------------- */

typedef enum way { PLAIN, SHIFTED, TURNED, SPREAD, REPEATED, WAYS } way;

/* A value with the same bytes on the host and on the GPU. */
typedef struct twin {
  gp_meta meta;
  size_t bytes;
  char *host, *device; /* the beginning of its memory on both sides */
} twin;

static char *element(const twin *t, char *memory) {
  return memory + t->meta.offset * (int64_t)gp_dtype_size(t->meta.dtype);
}

/* Sets strides and offset; returns how many elements the memory must hold. */
static int64_t lay_out(gp_meta *meta, way how) {
  int order[GP_MAX_RANK], rank = meta->shape.rank;
  int64_t step = how == SPREAD ? 1 + below(3) : 1, room = 1;
  for (int d = 0; d < rank; d++) {
    int other = how == TURNED ? (int)below(d + 1) : d;
    order[d] = order[other];
    order[other] = d;
  }
  for (int k = rank - 1; k >= 0; k--) {
    int64_t size = meta->shape.dim[order[k]];
    meta->stride[order[k]] = how == REPEATED && below(2) ? 0 : step;
    if (size > 1) room += (size - 1) * meta->stride[order[k]];
    if (meta->stride[order[k]] && size > 0) step *= size;
    if (how == SPREAD) step += 4 * below(3);
  }
  meta->offset = how == PLAIN ? 0 : how == SHIFTED ? 1 + below(15) : 16 * below(2);
  /* Half of the values leave room for a kernel that writes too much. */
  return meta->offset + room + (below(2) ? 64 : 0);
}

static twin make_twin(gp_dtype dtype, gp_shape shape, way how) {
  twin t = {.meta = {.dtype = dtype, .shape = shape}};
  int64_t n = lay_out(&t.meta, how);
  t.bytes = (size_t)n * gp_dtype_size(dtype);
  t.host = malloc(t.bytes);
  t.device = gpu_alloc(t.bytes);
  for (int64_t i = 0; i < n; i++) {
    double number = draw_number(dtype);
    gp_line to = {t.host + (size_t)i * gp_dtype_size(dtype), 1, dtype};
    gp_convert(to, (gp_line){&number, 1, GP_F64}, 1);
  }
  gpu_copy(t.device, t.host, t.bytes);
  return t;
}

static void drop_twin(twin *t) {
  free(t->host);
  api->free(gpu, t->device);
}

/* ---- both sides ---------------------------------------------------------------------------- */

typedef struct trial {
  gp_op op;
  gp_attrs attrs;
  gp_step_block step;
  int n_in;
  twin in[3], out; /* out: in[0] where the op has a slot */
} trial;

static bool has_slot(gp_op op) { return gp_op_get(op)->flags & GP_OP_EFFECT; }

static void run_gpu(trial *t) {
  gp_step_block *step = gpu_alloc(sizeof *step);
  gpu_copy(step, &t->step, sizeof *step);
  gp_gpu_call call = {.op = {.attr = &t->attrs, .step = step, .n_in = t->n_in, .n_out = 1}};
  for (int i = 0; i < t->n_in; i++)
    call.op.in[i] = (gp_arg){element(&t->in[i], t->in[i].device), &t->in[i].meta};
  call.op.out[0] = (gp_arg){element(&t->out, t->out.device), &t->out.meta};
  CHECK_STATUS(api->run(gpu, t->op, &call), GP_OK);
  CHECK_STATUS(api->sync(gpu, GP_STREAM_COMPUTE), GP_OK);
  api->free(gpu, step);
}

/* Returns a contiguous copy in f32. */
static gp_tensor *widened(const twin *t) {
  gp_tensor *wide = new_tensor(GP_F32, t->meta.shape);
  gp_view_copy(gp_tensor_meta(wide), gp_tensor_data(wide), &t->meta, element(t, t->host));
  return wide;
}

static void run_cpu(trial *t) {
  const gp_op_def *def = gp_op_get(t->op);
  gp_call call = {.attr = &t->attrs, .step = &t->step, .n_in = t->n_in, .n_out = 1};
  for (int i = 0; i < t->n_in; i++)
    call.in[i] = (gp_arg){element(&t->in[i], t->in[i].host), &t->in[i].meta};
  call.out[0] = (gp_arg){element(&t->out, t->out.host), &t->out.meta};
  CHECK_STATUS(run_pieces(&call, &def->cpu, 0), GP_OK);
}

/* Runs the op in f32 on the CPU, and rounds to the dtype in which the value is stored. */
static void run_cpu_widened(trial *t) {
  gp_tensor *in[3], *out = NULL;
  gp_call call = {.attr = &t->attrs, .step = &t->step, .n_in = t->n_in, .n_out = 1};
  for (int i = 0; i < t->n_in; i++) in[i] = widened(&t->in[i]);
  out = has_slot(t->op) ? gp_tensor_retain(in[0]) : new_tensor(GP_F32, t->out.meta.shape);
  bind_call(&call, in, &out);
  CHECK_STATUS(run_pieces(&call, &gp_op_get(t->op)->cpu, 0), GP_OK);
  gp_view_copy(&t->out.meta, element(&t->out, t->out.host), gp_tensor_meta(out),
               gp_tensor_data(out));
  for (int i = 0; i < t->n_in; i++) gp_tensor_free(in[i]);
  gp_tensor_free(out);
}

/* Are the bits equal, or are both NaN? */
static bool agrees(gp_dtype dtype, const char *a, const char *b) {
  double x = 0, y = 0;
  if (memcmp(a, b, gp_dtype_size(dtype)) == 0) return true;
  gp_convert((gp_line){&x, 1, GP_F64}, (gp_line){(void *)a, 1, dtype}, 1);
  gp_convert((gp_line){&y, 1, GP_F64}, (gp_line){(void *)b, 1, dtype}, 1);
  return x != x && y != y;
}

static void compare(const trial *t) {
  const gp_dtype dtype = t->out.meta.dtype;
  const size_t size = gp_dtype_size(dtype);
  char *got = malloc(t->out.bytes), shape[64];
  gpu_copy(got, t->out.device, t->out.bytes);
  for (size_t i = 0; i < t->out.bytes; i += size) {
    if (agrees(dtype, got + i, t->out.host + i)) continue;
    printf("%s of %s: element %zu of %s %s\n", gp_op_name(t->op),
           gp_dtype_name(t->in[t->n_in - 1].meta.dtype), i / size, gp_dtype_name(dtype),
           gp_shape_print(&t->out.meta.shape, shape, sizeof shape));
    CHECK(!"both sides agree");
    break;
  }
  free(got);
}

static bool is_half(gp_dtype dtype) { return dtype == GP_BF16 || dtype == GP_F16; }

/* False for ops that move or compare elements, which the CPU does for halves too. */
static bool computes(gp_op op) { return !(gp_op_get(op)->flags & GP_OP_HALVES); }

/* Runs a trial whose inputs and slot are made; a new output lies plainly or shifted. */
static void check_trial(trial *t, gp_dtype out, gp_shape shape) {
  t->out = has_slot(t->op) ? t->in[0] : make_twin(out, shape, below(2) ? PLAIN : SHIFTED);
  run_gpu(t);
  if (computes(t->op) && is_half(t->in[t->n_in - 1].meta.dtype))
    run_cpu_widened(t);
  else
    run_cpu(t);
  compare(t);
  for (int i = 0; i < t->n_in; i++) drop_twin(&t->in[i]);
  if (!has_slot(t->op)) drop_twin(&t->out);
}

/* ---- tests --------------------------------------------------------------------------------- */

static way any_way(void) { return (way)below(WAYS); }

/* Checks n inputs of one dtype that broadcast together; one of them has the whole shape. */
static void check_op(gp_op op, int n, gp_dtype dtype, gp_dtype out) {
  for (int round = 0; round < ROUNDS; round++) {
    trial t = {.op = op, .n_in = n};
    gp_shape shape = draw_shape();
    int64_t whole = below(n);
    for (int i = 0; i < n; i++)
      t.in[i] = make_twin(dtype, i == whole ? shape : draw_smaller(shape), any_way());
    check_trial(&t, out, shape);
  }
}

TEST(arithmetic) {
  static const gp_op two[] = {GP_OP_add, GP_OP_sub, GP_OP_mul};
  static const gp_dtype dtypes[] = {GP_F32, GP_F64, GP_BF16, GP_F16, GP_I64, GP_I32};
  if (!open_gpu()) return;
  for (int k = 0; k < 6; k++) {
    for (int i = 0; i < 3; i++) check_op(two[i], 2, dtypes[k], dtypes[k]);
    check_op(GP_OP_neg, 1, dtypes[k], dtypes[k]);
  }
  for (gp_dtype dtype = GP_F32; dtype <= GP_F16; dtype++) {
    check_op(GP_OP_div, 2, dtype, dtype);
    check_op(GP_OP_sqrt, 1, dtype, dtype);
    check_op(GP_OP_relu, 1, dtype, dtype);
  }
}

TEST(comparisons) {
  if (!open_gpu()) return;
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++)
    for (int op = 0; op < GP_OP_COUNT; op++)
      if (gp_op_get((gp_op)op)->flags == GP_OP_COMPARES)
        check_op((gp_op)op, 2, (gp_dtype)dtype, GP_BOOL);
}

TEST(copies) {
  if (!open_gpu()) return;
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++)
    for (int times = 0; times < 4; times++)
      check_op(GP_OP_copy, 1, (gp_dtype)dtype, (gp_dtype)dtype);
}

TEST(casts) {
  if (!open_gpu()) return;
  for (int from = 0; from < GP_DTYPE_COUNT; from++) {
    for (int to = 0; to < GP_DTYPE_COUNT; to++) {
      for (int round = 0; round < ROUNDS; round++) {
        trial t = {.op = GP_OP_cast, .attrs = {.cast = {to}}, .n_in = 1};
        gp_shape shape = draw_shape();
        t.in[0] = make_twin((gp_dtype)from, shape, any_way());
        check_trial(&t, (gp_dtype)to, shape);
      }
    }
  }
}

TEST(choices) {
  if (!open_gpu()) return;
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++) {
    for (int round = 0; round < ROUNDS; round++) {
      trial t = {.op = GP_OP_where, .n_in = 3};
      gp_shape shape = draw_shape();
      t.in[0] = make_twin(GP_BOOL, below(2) ? shape : draw_smaller(shape), any_way());
      t.in[1] = make_twin((gp_dtype)dtype, shape, any_way());
      t.in[2] = make_twin((gp_dtype)dtype, draw_smaller(shape), any_way());
      check_trial(&t, (gp_dtype)dtype, shape);
    }
  }
}

/* A slot may have any layout in which no element occurs twice. */
static void check_slot(gp_op op, gp_dtype slot, gp_dtype value) {
  for (int round = 0; round < ROUNDS; round++) {
    trial t = {.op = op, .n_in = 2};
    gp_shape shape = draw_shape();
    t.in[0] = make_twin(slot, shape, (way)below(REPEATED));
    t.in[1] = make_twin(value, op == GP_OP_assign ? draw_smaller(shape) : shape, any_way());
    check_trial(&t, slot, shape);
  }
}

TEST(slots) {
  if (!open_gpu()) return;
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++)
    check_slot(GP_OP_assign, (gp_dtype)dtype, (gp_dtype)dtype);
  for (gp_dtype dtype = GP_F32; dtype <= GP_F16; dtype++)
    check_slot(GP_OP_accumulate, dtype, dtype);
  check_slot(GP_OP_accumulate, GP_F32, GP_BF16);
  check_slot(GP_OP_accumulate, GP_F32, GP_F16);
}

/* Micro-batches begin anywhere in the mini-batch, and in the middle of a block of random words. */
TEST(masks) {
  static const double probabilities[] = {0, 0.1, 0.5, 0.999, 1};
  if (!open_gpu()) return;
  for (gp_dtype dtype = GP_F32; dtype <= GP_F16; dtype++) {
    for (int round = 0; round < 10 * ROUNDS; round++) {
      trial t = {.op = GP_OP_dropout, .n_in = 1};
      gp_shape shape = draw_shape();
      t.attrs = (gp_attrs){.random = (uint32_t)below(100), .dropout = {probabilities[below(5)]}};
      t.step = (gp_step_block){.seed = (uint64_t)below(INT64_MAX), .step = (uint32_t)below(1000)};
      t.step.rows = below(3) && shape.rank ? shape.dim[0] : below(5);
      t.step.first_row = below(8) ? below(100) : (int64_t)1 << 40;
      t.in[0] = make_twin(dtype, shape, any_way());
      check_trial(&t, dtype, shape);
    }
  }
}

TEST_MAIN(arithmetic, comparisons, copies, casts, choices, slots, masks)
