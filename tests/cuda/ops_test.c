/* tests/cuda/ops_test.c - every op of ops.def on a GPU, backward ones too, against the CPU's f64.
 *
 * The kernels are called as the engine calls them: memory is aligned or begins at any element, dims
 * of inputs lie in another order, outputs overwrite inputs, sums are added to. A result that is
 * rounded once must have the bits of the CPU; so must everything that is drawn. */
#include "gpu_memory.h"
#include "ops/op_samples.h"

/* ---- more samples: sizes at which kernels go other ways -------------------------------------- */

#define P3(a, b, c) V('p', 3, a, b, c)

#define UNARY(op)                                                                                  \
  {GP_OP_##op, NONE, {P2(3, 0)}}, {GP_OP_##op, NONE, {P2(1, 1)}}, {                                \
    GP_OP_##op, NONE, { P2(33, 1031) }                                                             \
  }
#define ROWS(op)                                                                                   \
  {GP_OP_##op, NONE, {F2(3, 1)}}, {GP_OP_##op, NONE, {F2(0, 5)}}, {GP_OP_##op, NONE, {F2(5, 33)}}, \
      {GP_OP_##op, NONE, {F2(3, 1027)}}, {GP_OP_##op, NONE, {F2(2, 5003)}}, {                      \
    GP_OP_##op, NONE, { F2(2, 40001) }                                                             \
  }
#define ROWS_DX(op)                                                                                \
  {GP_OP_##op, NONE, {F2(3, 1), F2(3, 1)}}, {GP_OP_##op, NONE, {F2(0, 5), F2(0, 5)}},              \
      {GP_OP_##op, NONE, {F2(3, 1027), F2(3, 1027)}}, {                                            \
    GP_OP_##op, NONE, { F2(2, 40001), F2(2, 40001) }                                               \
  }

static const sample edges[] = {
    UNARY(exp),
    UNARY(gelu),
    UNARY(relu),
    UNARY(copy),
    ROWS(softmax),
    ROWS(log_softmax),
    ROWS_DX(softmax_dx),
    ROWS_DX(log_softmax_dx),
    {GP_OP_add, NONE, {F0, F0}},
    {GP_OP_add, NONE, {F1(1), F1(5)}},
    {GP_OP_add, NONE, {F2(0, 3), F1(3)}},
    {GP_OP_mul, NONE, {V('f', 8, 2, 3, 1, 2, 1, 3, 2, 2), V('f', 8, 1, 3, 2, 2, 3, 1, 2, 1)}},
    {GP_OP_dropout, {.random = 3, .dropout = {0.4}}, {F2(7, 33)}},
    {GP_OP_dropout, {.random = 4, .dropout = {0.5}}, {F1(65)}},
    {GP_OP_dropout, {.random = 4, .dropout = {1}}, {F1(65)}},
    {GP_OP_dropout, {.random = 4, .dropout = {0}}, {F1(65)}},
    {GP_OP_cast, {.cast = {GP_F16}}, {F1(4099)}},
    {GP_OP_cast, {.cast = {GP_I64}}, {F2(0, 3)}},
    {GP_OP_concat, {.concat = {1}}, {F3(5, 3, 7), F3(5, 0, 7), F3(5, 66, 7)}},
    {GP_OP_pad, {.pad = {0, 3, 9}}, {F2(4, 37)}},
    {GP_OP_pad, {.pad = {0, 2, 4}}, {F1(0)}},
    {GP_OP_sum, {.random = 0}, {F1(100003)}},
    {GP_OP_sum, {.random = 0}, {F2(0, 4)}},
    {GP_OP_sum, {.sum = {2}}, {F2(3, 20011)}},
    {GP_OP_sum, {.sum = {1}}, {F2(20011, 3)}},
    {GP_OP_sum, {.sum = {2}}, {F3(6, 70, 33)}},
    {GP_OP_sum, {.sum = {1}}, {F2(0, 3)}},
    {GP_OP_max, {.max = {0}}, {F2(1031, 3)}},
    {GP_OP_max, {.max = {1}}, {F2(3, 20011)}},
    {GP_OP_argmax, {.argmax = {1}}, {F3(3, 40, 33)}},
    {GP_OP_argmax, {.argmax = {1}}, {F2(2, 20011)}},
    {GP_OP_max_dx, {.max_dx = {1, false, 70}}, {F2(5, 33), I2(5, 33)}},
    {GP_OP_sum_rows_dw, NONE, {F2(5003, 3)}},
    {GP_OP_sum_rows_dw, NONE, {F2(7, 1027)}},
    {GP_OP_sum_rows_dw, NONE, {F2(0, 5)}},
    {GP_OP_matmul, {.random = 0}, {F2(3, 0), F2(0, 5)}},
    {GP_OP_linear, NONE, {F2(3, 0), F2(5, 0), F1(5)}},
    {GP_OP_linear, NONE, {F2(0, 4), F2(5, 4), F1(5)}},
    {GP_OP_linear_dw, NONE, {F2(0, 4), F2(0, 3)}},
    {GP_OP_linear_gelu, NONE, {F2(3, 0), F2(8, 0), F1(8)}},
    {GP_OP_linear_gelu, NONE, {F2(0, 4), F2(8, 4)}},
    {GP_OP_linear_gelu_dx, NONE, {F2(3, 0), F2(0, 8), F2(3, 8)}},
    {GP_OP_linear_add, NONE, {F2(3, 0), F2(5, 0), F2(3, 5), F1(5)}},
    {GP_OP_linear_add, NONE, {F2(0, 4), F2(5, 4), F2(0, 5)}},
    {GP_OP_linear_bias_dw, NONE, {F2(0, 4), F2(0, 3)}},
    {GP_OP_linear_bias_dw, NONE, {F2(2049, 24), F2(2049, 8)}},
    {GP_OP_embedding, NONE, {I1(0), F2(5, 7)}},
    {GP_OP_embedding, NONE, {I1(9), F2(5, 1024)}},
    {GP_OP_embedding_dw, {.embedding_dw = {5}}, {F2(0, 8), I1(0)}},
    {GP_OP_embedding_dw, {.embedding_dw = {70}}, {F2(33, 8), I1(33)}},
    {GP_OP_embedding_dw, {.embedding_dw = {5}}, {F2(3000, 8), I1(3000)}},
    {GP_OP_embedding_dw, {.embedding_dw = {40000}}, {F3(5, 7, 33), I2(5, 7)}},
    {GP_OP_layer_norm, {.layer_norm = {1e-5}}, {F2(0, 7), F1(7), F1(7)}},
    {GP_OP_layer_norm, {.layer_norm = {1e-5}}, {F2(5, 33), F1(33), F1(33)}},
    {GP_OP_layer_norm, {.layer_norm = {1e-5}}, {F2(3, 1027), F1(1027), F1(1027)}},
    {GP_OP_layer_norm, {.layer_norm = {1e-5}}, {F2(2, 20011), F1(20011), F1(20011)}},
    {GP_OP_rms_norm, {.rms_norm = {1e-6}}, {F2(3, 1027), F1(1027)}},
    {GP_OP_rms_norm, {.rms_norm = {1e-6}}, {F2(2, 20011), F1(20011)}},
    {GP_OP_rms_norm_dx, NONE, {F2(3, 1027), F2(3, 1027), F1(1027), V('p', 1, 3)}},
    {GP_OP_rms_norm_dx, NONE, {F2(2, 20011), F2(2, 20011), F1(20011), V('p', 1, 2)}},
    {GP_OP_layer_norm_dx, NONE, {F2(3, 1027), F2(3, 1027), F1(1027), F1(3), V('p', 1, 3)}},
    {GP_OP_layer_norm_dx, NONE, {F2(2, 20011), F2(2, 20011), F1(20011), F1(2), V('p', 1, 2)}},
    {GP_OP_layer_norm_dx,
     NONE,
     {F2(3, 1027), F2(3, 1027), F1(1027), F1(3), V('p', 1, 3), F2(3, 1027)}},
    {GP_OP_layer_norm_dx,
     NONE,
     {F2(2, 20011), F2(2, 20011), F1(20011), F1(2), V('p', 1, 2), F2(2, 20011)}},
    {GP_OP_layer_norm_parts_dx, NONE, {F2(2113, 8), F2(2113, 8), F1(8), F1(2113), V('p', 1, 2113)}},
    {GP_OP_layer_norm_parts_dx,
     NONE,
     {F2(7, 33), F2(7, 33), F1(33), F1(7), V('p', 1, 7), F2(7, 33)}},
    {GP_OP_layer_norm_parts_dx,
     NONE,
     {F2(7, 768), F2(7, 768), F1(768), F1(7), V('p', 1, 7), F2(7, 768)}},
    {GP_OP_layer_norm_parts_dx,
     NONE,
     {F2(6, 2052), F2(6, 2052), F1(2052), F1(6), V('p', 1, 6), F2(6, 2052)}},
    {GP_OP_layer_norm_parts_dx, NONE, {F2(0, 5), F2(0, 5), F1(5), F1(0), V('p', 1, 0)}},
    {GP_OP_layer_norm_parts_dw, NONE, {F3(2, 528, 33)}},
    {GP_OP_layer_norm_parts_dw, NONE, {F3(2, 0, 33)}},
    {GP_OP_layer_norm_bias_dw, NONE, {F2(5003, 5), F2(5003, 5), F1(5003), V('p', 1, 5003)}},
    {GP_OP_layer_norm_bias_dw, NONE, {F2(0, 5), F2(0, 5), F1(0), V('p', 1, 0)}},
    {GP_OP_layer_norm_dw, NONE, {F2(5003, 5), F2(5003, 5), F1(5003), V('p', 1, 5003)}},
    {GP_OP_layer_norm_dw, NONE, {F2(0, 5), F2(0, 5), F1(0), V('p', 1, 0)}},
    {GP_OP_attention,
     {.random = 2, .attention = {.causal = false}},
     {F4(1, 2, 5, 64), F4(1, 2, 130, 64), F4(1, 2, 130, 64)}},
    {GP_OP_attention,
     {.random = 2, .attention = {.causal = true}},
     {F4(1, 1, 65, 128), F4(1, 1, 65, 128), F4(1, 1, 65, 128)}},
    {GP_OP_attention,
     {.random = 2, .attention = {.causal = true}},
     {F4(1, 1, 20, 33), F4(1, 1, 10, 33), F4(1, 1, 10, 33)}},
    {GP_OP_attention_dx,
     {.random = 2, .attention_dx = {.causal = true}},
     {F4(1, 2, 70, 64), F4(1, 2, 70, 64), F4(1, 2, 70, 64), F4(1, 2, 70, 64), F4(1, 2, 70, 64),
      F3(1, 2, 70)}},
    {GP_OP_attention,
     NONE,
     {F4(1, 4, 5, 64), F4(1, 1, 130, 64), F4(1, 1, 130, 64), F4(1, 4, 1, 130)}},
    {GP_OP_attention_dx,
     NONE,
     {F4(1, 6, 70, 66), F4(1, 6, 70, 66), F4(1, 2, 65, 66), F4(1, 2, 65, 66), F4(1, 6, 70, 66),
      F3(1, 6, 70), B4(1, 1, 70, 65)}},
    {GP_OP_attention_qkv,
     {.random = 2, .attention_qkv = {.causal = true, .heads = 2}},
     {F3(1, 130, 384)}},
    {GP_OP_cross_entropy, NONE, {F2(3, 20011), I1(3)}},
    {GP_OP_cross_entropy, NONE, {F2(0, 7), I1(0)}},
    {GP_OP_cross_entropy_dx, NONE, {F2(3, 20011), I1(3), P2(3, 2), F1(3)}},
    {GP_OP_cross_entropy_both, NONE, {F2(3, 20011), I1(3), F1(3)}},
    {GP_OP_cross_entropy_both,
     {.cross_entropy_both = {.smoothing = 0.1}},
     {F2(3, 1028), I1(3), F1(3)}},
    {GP_OP_cross_entropy_both,
     {.cross_entropy_both = {.smoothing = 0.1}},
     {F2(9, 770), I1(9), F1(9)}},
    {GP_OP_cross_entropy_both, NONE, {F2(0, 7), I1(0), F1(0)}},
    {GP_OP_cross_entropy_count, {.cross_entropy_count = {.ignore = {true, 2}}}, {I1(100003)}},
    {GP_OP_cross_entropy_count, {.cross_entropy_count = {.ignore = {true, 2}}}, {I1(0)}},
    /* lines that are sorted by radix, or cut into tiles */
    {GP_OP_sort, {.sort = {0}}, {F1(9001)}},
    {GP_OP_sort, {.sort = {1, true}}, {F2(3, 5001)}},
    {GP_OP_sort, {.sort = {1}}, {F3(2, 4100, 3)}},
    {GP_OP_scatter_sum, {.scatter_sum = {0, 5}}, {F1(9001), V('n', 1, 9001)}},
    {GP_OP_scatter_sum, {.scatter_sum = {1, 7}}, {F3(2, 4100, 3), N3(2, 4100, 3)}},
    {GP_OP_cumsum, {.cumsum = {0}}, {V('s', 1, 9001)}},
    {GP_OP_cumsum, {.cumsum = {1, true}}, {V('s', 3, 2, 4100, 3)}},
    /* parts of images that warps take: every depth, tiles, parts that end early */
    {GP_OP_channel_stats, NONE, {F4(2, 24, 9, 13)}},
    {GP_OP_channel_stats, NONE, {F4(2, 64, 9, 13)}},
    {GP_OP_channel_stats, {.channel_stats = {true}}, {F4(2, 128, 7, 11)}},
    {GP_OP_channel_stats, NONE, {F4(1, 520, 5, 29)}},
    {GP_OP_channel_norm_sums,
     {.channel_norm_sums = {1e-5}},
     {F4(2, 64, 9, 13), F4(2, 64, 9, 13), F2(1, 64), P2(1, 64)}},
    {GP_OP_channel_norm_sums,
     {.channel_norm_sums = {1e-5}},
     {F4(2, 40, 9, 13), F4(2, 40, 9, 13), F2(2, 10), P2(2, 10)}},
    {GP_OP_channel_norm_sums,
     {.channel_norm_sums = {1e-5}},
     {F4(1, 520, 5, 13), F4(1, 520, 5, 13), F2(1, 520), P2(1, 520)}},
    {GP_OP_channel_norm,
     {.channel_norm = {.eps = 1e-5}},
     {F4(3, 64, 19, 17), F2(1, 64), P2(1, 64), F1(64), F1(64)}},
    {GP_OP_channel_norm_dx,
     {.channel_norm_dx = {.eps = 1e-5}},
     {F4(3, 64, 19, 17), F4(3, 64, 19, 17), F2(1, 64), P2(1, 64), F3(2, 1, 64), F1(64)}},
    {GP_OP_channel_norm_relu,
     {.channel_norm_relu = {.eps = 1e-5}},
     {F4(3, 64, 19, 17), F2(1, 64), P2(1, 64), F1(64), F1(64)}},
    {GP_OP_channel_norm_add_relu,
     {.channel_norm_add_relu = {.eps = 1e-5}},
     {F4(3, 64, 19, 17), F2(1, 64), P2(1, 64), F4(3, 64, 19, 17), F1(64), F1(64)}},
    {GP_OP_channel_norm_relu_sums,
     {.channel_norm_relu_sums = {1e-5}},
     {F4(2, 64, 9, 13), F4(2, 64, 9, 13), F2(1, 64), P2(1, 64), F1(64), F1(64)}},
    {GP_OP_channel_norm_relu_sums,
     {.channel_norm_relu_sums = {1e-5}},
     {F4(2, 40, 9, 13), F4(2, 40, 9, 13), F2(2, 10), P2(2, 10)}},
    {GP_OP_channel_norm_relu_dx,
     {.channel_norm_relu_dx = {.eps = 1e-5}},
     {F4(3, 64, 19, 17), F4(3, 64, 19, 17), F2(1, 64), P2(1, 64), F3(2, 1, 64), F1(64), F1(64)}},
    {GP_OP_channel_norm_gate_sums,
     {.channel_norm_gate_sums = {1e-5}},
     {F4(2, 64, 9, 13), F4(2, 64, 9, 13), F4(2, 64, 9, 13), F2(1, 64), P2(1, 64)}},
    {GP_OP_channel_norm_gate_sums,
     {.channel_norm_gate_sums = {1e-5}},
     {F4(1, 520, 5, 13), F4(1, 520, 5, 13), F4(1, 520, 5, 13), F2(1, 520), P2(1, 520),
      F4(1, 520, 5, 13)}},
    {GP_OP_channel_stats_join,
     {.channel_stats_join = {.sets = 1, .rows = 70001}},
     {P3(3, 1094, 5)}},
    {GP_OP_channel_stats_join,
     {.channel_stats_join = {.sets = 2, .rows = 33001, .groups = 2}},
     {P3(3, 1032, 4)}},
    /* images whose channels are moved by packs */
    {GP_OP_resample2d,
     {.resample2d = {.kernel = {2, {3, 3}}, .stride = {2, {1, 2}}, .padding = {4, {1, 1, 1, 0}}}},
     {F4(2, 16, 9, 7)}},
    {GP_OP_resample2d_dx,
     {.resample2d_dx = {.kernel = {2, {3, 3}},
                        .stride = {2, {1, 2}},
                        .padding = {4, {1, 1, 1, 0}},
                        .inside = true,
                        .image = {2, {9, 8}}}},
     {F4(2, 16, 9, 4)}},
    {GP_OP_max_pool2d,
     {.max_pool2d = {.kernel = {2, {3, 3}},
                     .stride = {2, {2, 2}},
                     .padding = {4, {1, 1, 1, 1}},
                     .dilation = {2, {1, 2}}}},
     {F4(2, 16, 9, 11)}},
    {GP_OP_max_pool2d, {.max_pool2d = {.kernel = {2, {17, 16}}}}, {F4(1, 8, 18, 17)}},
    {GP_OP_mse, NONE, {F1(100003), F1(100003)}},
    {GP_OP_mse, NONE, {F1(0), F1(0)}},
    {GP_OP_accumulate, NONE, {F1(5003), F1(5003)}},
};

/* ---- how close ------------------------------------------------------------------------------- */

/* Is every element of the op's result rounded once, or not at all? */
static bool is_exact(gp_op op) {
  static const gp_op exact[] = {
      GP_OP_add,       GP_OP_sub,        GP_OP_mul,         GP_OP_div,
      GP_OP_neg,       GP_OP_sqrt,       GP_OP_relu,        GP_OP_relu_dx,
      GP_OP_eq,        GP_OP_ne,         GP_OP_lt,          GP_OP_le,
      GP_OP_gt,        GP_OP_ge,         GP_OP_where,       GP_OP_dropout,
      GP_OP_copy,      GP_OP_cast,       GP_OP_concat,      GP_OP_pad,
      GP_OP_max,       GP_OP_max_dx,     GP_OP_argmax,      GP_OP_embedding,
      GP_OP_loss_seed, GP_OP_accumulate, GP_OP_assign,      GP_OP_cross_entropy_count,
      GP_OP_rand,      GP_OP_randn,      GP_OP_pack_linear, GP_OP_pack_conv2d};
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
    if (exact[i] == op) return true;
  }
  return false;
}

/* Bounds are relative plus absolute, for sums of up to 100,000 terms of size 4 in some order, inner
 * products and exponentials. When 2,000 products sum to 1 by way of 100, f32 keeps no more
 * digits. */
static double bound_of(gp_dtype dtype) { return dtype == GP_F64 ? 1e-11 : 1e-4; }

/* ---- one application ------------------------------------------------------------------------- */

/* A way in which a kernel is called. */
typedef struct manner {
  const char *name;
  int shift; /* elements by which values miss an aligned address */
  bool turned, accumulate;
  int over; /* the input whose memory out[0] takes; -1: none */
} manner;

typedef struct application {
  const sample *sample;
  const gp_op_def *def;
  gp_dtype dtype;
  int n_in;
  gp_tensor *in[GP_MAX_INPUTS], *wide[GP_MAX_INPUTS]; /* as given to the GPU, and in f64 */
  gp_sig sig;
  gp_tensor *want[GP_MAX_OUTPUTS]; /* the CPU's results: in the dtype where exact, else in f64 */
} application;

static const gp_step_block step = {
    .seed = 5, .step = 3, .rows = 150, .first_row = 8, .inverse_count = 0.125, .scale = 2};

static gp_tensor *converted(gp_tensor *from, gp_dtype dtype) {
  gp_tensor *to = new_tensor(dtype, gp_tensor_meta(from)->shape);
  CHECK_STATUS(gp_tensor_copy(to, from), GP_OK);
  return to;
}

static gp_tensor *draw(const input *in, gp_dtype dtype) {
  if (in->kind == 'f') return uniform(dtype, in->shape, -2, 2);
  if (in->kind == 'p') return uniform(dtype, in->shape, 0.25, 2);
  if (in->kind == 'l') return uniform(dtype, in->shape, 1.25, 4);
  if (in->kind == 's') return uniform(dtype, in->shape, 0.0625, 0.9375);
  if (in->kind == 'n') return uniform(GP_I64, in->shape, 1, 6);
  gp_tensor *ids = uniform(GP_I64, in->shape, 0, in->kind == 'b' ? 2 : 5);
  if (in->kind == 'i') return ids;
  gp_tensor *flags = converted(ids, GP_BOOL);
  gp_tensor_free(ids);
  return flags;
}

static bool is_slot(const application *a, int output) {
  return output < gp_op_slots(a->sample->op);
}

/* Computes the op on the CPU; slots are copies of the GPU's. */
static void compute_want(application *a) {
  gp_tensor **in = is_exact(a->sample->op) ? a->in : a->wide;
  gp_sig sig = {.attr = &a->sample->attrs, .n_in = a->n_in};
  gp_call call = {.attr = &a->sample->attrs, .step = &step, .n_in = a->n_in};
  for (int i = 0; i < a->n_in; i++) sig.in[i] = gp_tensor_meta(in[i]);
  CHECK_STATUS(gp_op_infer(a->sample->op, &sig), GP_OK);
  call.n_out = sig.n_out;
  for (int k = 0; k < sig.n_out; k++) {
    a->want[k] = is_slot(a, k) ? converted(in[k], sig.out[k].dtype)
                               : new_tensor(sig.out[k].dtype, sig.out[k].shape);
  }
  bind_call(&call, in, a->want);
  for (int k = 0; is_slot(a, k); k++) call.in[k] = call.out[k];
  CHECK_STATUS(run_pieces(&call, &a->def->cpu, 0), GP_OK);
}

/* Replaces drawn inputs: the gradients of attention need the output and the lse that belong to
 * their other inputs. The CPU computes the lse once more. */
static void attend_first(application *a) {
  const bool packed = a->sample->op == GP_OP_attention_qkv_dx;
  if (!packed && a->sample->op != GP_OP_attention_dx) return;
  const gp_op op = packed ? GP_OP_attention_qkv : GP_OP_attention;
  const int out = packed ? 2 : 4;
  gp_tensor *in[GP_MAX_INPUTS], *made[2];
  int n = 0;
  for (int i = 1; i < a->n_in; i++)
    if (i != out && i != out + 1) in[n++] = a->wide[i];
  gp_sig sig = {.attr = &a->sample->attrs, .n_in = n};
  gp_call call = {.attr = &a->sample->attrs, .step = &step, .n_in = n, .n_out = 2};
  for (int i = 0; i < n; i++) sig.in[i] = gp_tensor_meta(in[i]);
  CHECK_STATUS(gp_op_infer(op, &sig), GP_OK);
  for (int k = 0; k < 2; k++) made[k] = new_tensor(GP_F64, sig.out[k].shape);
  bind_call(&call, in, made);
  CHECK_STATUS(run_pieces(&call, &gp_op_get(op)->cpu, 0), GP_OK);
  for (int k = 0; k < 2; k++) {
    gp_tensor_free(a->in[out + k]), gp_tensor_free(a->wide[out + k]);
    a->in[out + k] = converted(made[k], a->dtype);
    a->wide[out + k] = converted(a->in[out + k], GP_F64);
    gp_tensor_free(made[k]);
  }
}

static application open_application(const sample *s, gp_dtype dtype) {
  application a = {.sample = s, .def = gp_op_get(s->op), .dtype = dtype};
  while (a.n_in < GP_MAX_INPUTS && s->in[a.n_in].kind) {
    gp_tensor *in = draw(&s->in[a.n_in], dtype);
    bool number = gp_dtype_is_float(gp_tensor_meta(in)->dtype);
    a.in[a.n_in] = in;
    a.wide[a.n_in++] = number ? converted(in, GP_F64) : gp_tensor_retain(in);
  }
  attend_first(&a);
  a.sig = (gp_sig){.attr = &s->attrs, .n_in = a.n_in};
  for (int i = 0; i < a.n_in; i++) a.sig.in[i] = gp_tensor_meta(a.in[i]);
  CHECK_STATUS(gp_op_infer(s->op, &a.sig), GP_OK);
  if (!(a.def->flags & GP_OP_VIEW)) compute_want(&a);
  return a;
}

static void close_application(application *a) {
  for (int i = 0; i < a->n_in; i++) gp_tensor_free(a->in[i]), gp_tensor_free(a->wide[i]);
  for (int k = 0; k < GP_MAX_OUTPUTS; k++) gp_tensor_free(a->want[k]);
}

/* ---- running --------------------------------------------------------------------------------- */

/* What a kernel needs in addition to its operands. */
typedef struct bench {
  gp_step_block step;
  gp_gpu_fault fault;
} bench;

static const double START = 1.5; /* sums are added to this value */

static gpu_value make_output(const application *a, const manner *m, gpu_value *in, int k) {
  const gp_meta *meta = &a->sig.out[k];
  if (is_slot(a, k)) return in[k];
  if (k == 0 && m->over >= 0) return in[m->over];
  /* The plan aligns an opaque value; its elements are bytes. */
  if (!m->accumulate) return gpu_room(meta, gp_op_packs(a->sample->op) ? 0 : m->shift);
  gp_tensor *start = uniform(meta->dtype, meta->shape, START, START);
  gpu_value value = gpu_value_of(start, m->shift, false);
  gp_tensor_free(start);
  return value;
}

static void run_kernel(const application *a, gp_call *op) {
  size_t bytes = 0;
  bench here = {step, {.key = GP_GPU_NO_FAULT}};
  bench *there = gpu_alloc(sizeof here);
  gpu_copy(there, &here, sizeof here);
  op->step = &there->step;
  CHECK_STATUS(api->prepare(gpu, a->sample->op, op, &bytes), GP_OK);
  gp_gpu_call call = {.op = *op, .scratch = gpu_alloc(bytes), .fault = &there->fault, .tag = 7};
  CHECK_STATUS(api->run(gpu, a->sample->op, &call), GP_OK);
  CHECK_STATUS(api->sync(gpu, GP_STREAM_COMPUTE), GP_OK);
  gpu_copy(&here, there, sizeof here);
  CHECK(here.fault.key == GP_GPU_NO_FAULT);
  api->free(gpu, call.scratch);
  api->free(gpu, there);
}

/* Runs the op on the GPU; out[] receives the outputs on the host. */
static void run_on_gpu(const application *a, const manner *m, gp_tensor **out) {
  gpu_value in[GP_MAX_INPUTS], made[GP_MAX_OUTPUTS];
  gp_call call = {.attr = &a->sample->attrs, .n_in = a->n_in, .n_out = a->sig.n_out};
  call.accumulate = m->accumulate;
  for (int i = 0; i < a->n_in; i++) {
    bool turned = m->turned && !is_slot(a, i);
    in[i] = gpu_value_of(a->in[i], m->shift, turned);
    call.in[i] = (gp_arg){in[i].data, &in[i].meta};
  }
  for (int k = 0; k < a->sig.n_out; k++) {
    made[k] = make_output(a, m, in, k);
    call.out[k] = (gp_arg){made[k].data, &made[k].meta};
  }
  run_kernel(a, &call);
  for (int k = 0; k < a->sig.n_out; k++) out[k] = gpu_fetch(&made[k]);
  for (int i = 0; i < a->n_in; i++) gpu_drop(&in[i]);
  for (int k = 0; k < a->sig.n_out; k++) {
    if (!is_slot(a, k) && (k > 0 || m->over < 0)) gpu_drop(&made[k]);
  }
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void complain(const application *a, const manner *m, int k, const char *what) {
  char shape[64];
  printf("%s (%s, first input %s), %s, output %d: %s\n", a->def->name, gp_dtype_name(a->dtype),
         a->n_in ? gp_shape_print(&a->sig.in[0]->shape, shape, sizeof shape) : "none", m->name, k,
         what);
  CHECK(!"the outputs agree");
}

static void compare(const application *a, const manner *m, int k, gp_tensor *got) {
  const bool added = m->accumulate;
  char text[160];
  if (is_exact(a->sample->op) && !added) {
    if (!same_bits(got, a->want[k])) complain(a, m, k, "its bits are not the CPU's");
    return;
  }
  for (int64_t i = 0; i < gp_tensor_numel(got); i++) {
    double want = gp_tensor_get_double(a->want[k], i) + (added ? START : 0);
    double have = gp_tensor_get_double(got, i);
    if (have == want || fabs(have - want) <= bound_of(a->dtype) * (1 + fabs(want))) continue;
    snprintf(text, sizeof text, "element %lld is %.9g, expected %.9g", (long long)i, have, want);
    complain(a, m, k, text);
    return;
  }
}

static void check_manner(const application *a, const manner *m) {
  gp_tensor *out[GP_MAX_OUTPUTS], *again[GP_MAX_OUTPUTS];
  run_on_gpu(a, m, out);
  run_on_gpu(a, m, again);
  for (int k = 0; k < a->sig.n_out; k++) {
    compare(a, m, k, out[k]);
    if (!same_bits(out[k], again[k])) complain(a, m, k, "two runs differ");
    gp_tensor_free(out[k]), gp_tensor_free(again[k]);
  }
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Calls check(application) for all samples whose ops have the flags, in every float dtype that they
 * take. */
static void for_each(unsigned flags, void (*check)(const application *)) {
  if (!open_gpu()) return;
  const int own = sample_count(), count = own + (int)(sizeof edges / sizeof *edges);
  for (int i = 0; i < count; i++) {
    for (gp_dtype dtype = GP_F32; dtype <= GP_F64; dtype++) {
      application a = open_application(i < own ? sample_at(i) : &edges[i - own], dtype);
      bool view = a.def->flags & GP_OP_VIEW;
      if (!view && (a.def->flags & flags) == flags) check(&a);
      close_application(&a);
    }
  }
}

static void check_plain(const application *a) {
  check_manner(a, &(manner){.name = "aligned", .over = -1});
}

/* Libraries choose products by alignment. */
static bool is_product(gp_op op) {
  static const gp_op products[] = {
      GP_OP_matmul,    GP_OP_linear,         GP_OP_linear_gelu,     GP_OP_linear_add,
      GP_OP_linear_dx, GP_OP_linear_gelu_dx, GP_OP_linear_dw,       GP_OP_linear_bias_dw,
      GP_OP_attention, GP_OP_attention_dx,   GP_OP_attention_qkv,   GP_OP_attention_qkv_dx,
      GP_OP_conv2d,    GP_OP_conv2d_dw,      GP_OP_conv_transpose2d};
  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    if (products[i] == op) return true;
  return false;
}

/* Aligned memory is read in packs, other memory element by element: the bits must be the same. */
static void check_shifted(const application *a) {
  const manner aligned = {.name = "aligned", .over = -1};
  const manner shifted = {.name = "at any element", .shift = 1, .over = -1};
  gp_tensor *packs[GP_MAX_OUTPUTS], *elements[GP_MAX_OUTPUTS];
  check_manner(a, &shifted);
  run_on_gpu(a, &aligned, packs);
  run_on_gpu(a, &shifted, elements);
  for (int k = 0; k < a->sig.n_out; k++) {
    if (!is_product(a->sample->op) && !same_bits(packs[k], elements[k]))
      complain(a, &shifted, k, "its bits are not those of aligned memory");
    gp_tensor_free(packs[k]), gp_tensor_free(elements[k]);
  }
}

static void check_turned(const application *a) {
  check_manner(a, &(manner){.name = "strided", .turned = true, .over = -1});
}

static void check_added(const application *a) {
  check_manner(a, &(manner){.name = "added to", .accumulate = true, .over = -1});
  check_manner(
      a, &(manner){.name = "added to, at any element", .shift = 1, .accumulate = true, .over = -1});
}

static void check_over(const application *a) {
  for (int i = 0; i < a->n_in; i++) {
    if (!gp_meta_equal(a->sig.in[i], &a->sig.out[0])) continue;
    check_manner(a, &(manner){.name = "over an input", .over = i});
  }
}

TEST(every_op_computes_what_the_cpu_does) { for_each(0, check_plain); }
TEST(memory_may_begin_at_any_element) { for_each(0, check_shifted); }
TEST(strided_inputs_are_read_as_they_lie) { for_each(GP_OP_STRIDED, check_turned); }
TEST(accumulating_ops_add_to_what_is_there) { for_each(GP_OP_ACCUMULATES, check_added); }
TEST(in_place_ops_may_write_over_an_input) { for_each(GP_OP_INPLACE, check_over); }

TEST_MAIN(every_op_computes_what_the_cpu_does, memory_may_begin_at_any_element,
          strided_inputs_are_read_as_they_lie, accumulating_ops_add_to_what_is_there,
          in_place_ops_may_write_over_an_input)
