/* tests/c/ops/op_samples.h - one or more applications of every op, as data: shapes, kinds of
 * values, attributes.
 *
 * An elementwise op gets a sample from its row of ops.def, and one more for each value of a choice;
 * samples with other shapes or values stand below. Sizes are such that an op's work is cut into
 * several pieces: 150 rows are three pieces of row-wise ops, the last of them short. */
#ifndef GP_TESTS_OP_SAMPLES_H
#define GP_TESTS_OP_SAMPLES_H

#include "op_support.h"

/* f: floats of both signs, p: positive ones, s: shares of 1, l: larger than 1, i: ids 0 .. 4,
 * n: positions 1 .. 5, b: booleans. */
typedef struct input {
  char kind;
  gp_shape shape;
} input;

typedef struct sample {
  gp_op op;
  gp_attrs attrs;
  input in[GP_MAX_INPUTS];
} sample;

#define V(kind, rank, ...)                                                                         \
  {                                                                                                \
    kind, {                                                                                        \
      rank, { __VA_ARGS__ }                                                                        \
    }                                                                                              \
  }
#define F0             V('f', 0, 0)
#define F1(a)          V('f', 1, a)
#define F2(a, b)       V('f', 2, a, b)
#define F3(a, b, c)    V('f', 3, a, b, c)
#define F4(a, b, c, d) V('f', 4, a, b, c, d)
#define P1(a)          V('p', 1, a)
#define P2(a, b)       V('p', 2, a, b)
#define S2(a, b)       V('s', 2, a, b)
#define L2(a, b)       V('l', 2, a, b)
#define I1(a)          V('i', 1, a)
#define I2(a, b)       V('i', 2, a, b)
#define N2(a, b)       V('n', 2, a, b)
#define N3(a, b, c)    V('n', 3, a, b, c)
#define B2(a, b)       V('b', 2, a, b)
#define B4(a, b, c, d) V('b', 4, a, b, c, d)
#define NONE                                                                                       \
  { .random = 0 }

static const sample samples[] = {
    {GP_OP_add, NONE, {F2(150, 6), F2(150, 6)}},
    {GP_OP_add, NONE, {F3(10, 15, 6), F1(6)}},
    {GP_OP_add, NONE, {F1(50000), F1(50000)}},
    {GP_OP_sub, NONE, {F2(150, 6), F2(150, 1)}},
    {GP_OP_mul, NONE, {F2(1, 6), F2(150, 6)}},
    {GP_OP_div, NONE, {F2(150, 6), P2(150, 6)}},
    {GP_OP_bitwise_and, NONE, {N2(150, 7), N2(150, 7)}},
    {GP_OP_bitwise_or, NONE, {N2(150, 7), N2(150, 7)}},
    {GP_OP_bitwise_xor, NONE, {N2(150, 7), N2(150, 7)}},
    {GP_OP_bitwise_left_shift, NONE, {N2(150, 7), N2(150, 7)}},
    {GP_OP_bitwise_right_shift, NONE, {N2(150, 7), N2(150, 7)}},
    {GP_OP_pow, NONE, {P2(150, 6), F2(150, 6)}},
    {GP_OP_log, NONE, {P2(150, 7)}},
    {GP_OP_log1p, NONE, {P2(150, 7)}},
    {GP_OP_asin, NONE, {S2(150, 7)}},
    {GP_OP_asin_dx, NONE, {F2(150, 7), S2(150, 7)}},
    {GP_OP_acos, NONE, {S2(150, 7)}},
    {GP_OP_acos_dx, NONE, {F2(150, 7), S2(150, 7)}},
    {GP_OP_acosh, NONE, {L2(150, 7)}},
    {GP_OP_acosh_dx, NONE, {F2(150, 7), L2(150, 7)}},
    {GP_OP_atanh, NONE, {S2(150, 7)}},
    {GP_OP_atanh_dx, NONE, {F2(150, 7), S2(150, 7)}},
    {GP_OP_sqrt, NONE, {P2(150, 7)}},
    {GP_OP_rsqrt, NONE, {P2(150, 7)}},
    {GP_OP_eq, NONE, {I2(150, 7), I2(150, 7)}},
    {GP_OP_ne, NONE, {F2(150, 7), F2(150, 7)}},
    {GP_OP_lt, NONE, {F2(150, 7), F1(7)}},
    {GP_OP_le, NONE, {F2(150, 7), F0}},
    {GP_OP_gt, NONE, {B2(150, 7), B2(150, 7)}},
    {GP_OP_ge, NONE, {F2(150, 7), F2(150, 7)}},
    {GP_OP_logical_and, NONE, {I2(150, 7), I2(150, 7)}},
    {GP_OP_logical_or, NONE, {F2(150, 7), F2(150, 7)}},
    {GP_OP_logical_xor, NONE, {B2(150, 7), B2(150, 7)}},
    {GP_OP_logical_not, NONE, {I2(150, 7)}},
    {GP_OP_isnan, NONE, {F2(150, 7)}},
    {GP_OP_isinf, NONE, {F2(150, 7)}},
    {GP_OP_isfinite, NONE, {F2(150, 7)}},
    {GP_OP_where, NONE, {B2(150, 7), F2(150, 7), F2(150, 7)}},
    {GP_OP_where, NONE, {B2(150, 1), F2(150, 7), F0}},
    {GP_OP_dropout, {.random = 3, .dropout = {0.4}}, {F2(150, 40)}},
    {GP_OP_rand, {.random = 3, .rand = {GP_F32, {2, {150, 7}}}}, {V(0, 0, 0)}},
    {GP_OP_rand, {.random = 3, .rand = {GP_F64, {1, {50001}}}}, {V(0, 0, 0)}},
    {GP_OP_randn, {.random = 3, .randn = {GP_F32, {1, {50001}}}}, {V(0, 0, 0)}},
    {GP_OP_randn, {.random = 3, .randn = {GP_F64, {3, {150, 3, 5}}}}, {V(0, 0, 0)}},
    {GP_OP_reshape, {.reshape = {{2, {75, 12}}}}, {F2(150, 6)}},
    {GP_OP_permute, {.permute = {{2, {1, 0}}}}, {F2(150, 6)}},
    {GP_OP_narrow, {.narrow = {0, 3, 70}}, {F2(150, 6)}},
    {GP_OP_expand, {.expand = {{2, {150, 6}}}}, {F1(6)}},
    {GP_OP_detach, NONE, {F2(150, 6)}},
    {GP_OP_copy, NONE, {F2(150, 7)}},
    {GP_OP_copy, NONE, {F1(40000)}},
    {GP_OP_cast, {.cast = {GP_BF16}}, {F2(150, 7)}},
    {GP_OP_cast, {.cast = {GP_I32}}, {F3(10, 15, 7)}},
    {GP_OP_concat, {.concat = {1}}, {F2(150, 3), F2(150, 4), F2(150, 1)}},
    {GP_OP_concat, {.concat = {0}}, {F2(50, 3), F2(60, 3)}},
    {GP_OP_pad, {.pad = {1, 2, 9}}, {F2(150, 4)}},
    {GP_OP_sum, {.random = 0}, {F2(150, 7)}},
    {GP_OP_sum, {.sum = {1}}, {F2(30, 300)}},
    {GP_OP_sum, {.sum = {2}}, {F2(300, 30)}},
    {GP_OP_sum, {.sum = {5, true}}, {F3(30, 40, 7)}},
    {GP_OP_max, {.max = {1}}, {F2(300, 130)}},
    {GP_OP_max, {.max = {0, true}}, {F2(70, 300)}},
    {GP_OP_max_dx, {.max_dx = {1, false, 5}}, {F1(150), I1(150)}},
    {GP_OP_max_dx, {.max_dx = {0, true, 5}}, {F2(1, 150), I2(1, 150)}},
    {GP_OP_argmax, {.argmax = {1}}, {F2(300, 130)}},
    {GP_OP_gather, {.gather = {1}}, {F2(150, 5), N2(150, 9)}},
    {GP_OP_gather, {.gather = {1}}, {F3(3, 5, 70), N3(3, 9, 70)}},
    {GP_OP_scatter_sum, {.scatter_sum = {1, 5}}, {F2(150, 9), N2(150, 9)}},
    {GP_OP_scatter_sum, {.scatter_sum = {0, 5}}, {F2(9, 150), N2(9, 150)}},
    {GP_OP_sort, {.sort = {1}}, {F2(150, 300)}},
    {GP_OP_sort, {.sort = {1, true}}, {F3(3, 33, 70)}},
    {GP_OP_cumsum, {.cumsum = {1}}, {F2(150, 70)}},
    {GP_OP_cumsum, {.cumsum = {1, true}}, {F3(3, 33, 70)}},
    {GP_OP_prod, {.prod = {1}}, {P2(150, 20)}},
    {GP_OP_prod, {.prod = {1, true}}, {V('p', 3, 3, 20, 70)}},
    {GP_OP_prod_dx, {.prod_dx = {1}}, {F2(150, 1), P2(150, 20)}},
    {GP_OP_prod_dx, {.prod_dx = {1}}, {F3(3, 1, 70), V('p', 3, 3, 20, 70)}},
    {GP_OP_sum_rows_dw, NONE, {F2(150, 200)}},
    {GP_OP_matmul, {.random = 0}, {F2(150, 9), F2(9, 40)}},
    {GP_OP_matmul, {.matmul = {true, false}}, {F3(3, 90, 150), F3(3, 90, 40)}},
    {GP_OP_matmul, {.matmul = {false, true}}, {F3(3, 150, 90), F2(40, 90)}},
    {GP_OP_matmul, {.matmul = {true, true}}, {F2(90, 70), F3(4, 40, 90)}},
    {GP_OP_linear, NONE, {F2(150, 9), F2(20, 9), F1(20)}},
    {GP_OP_linear, NONE, {F3(5, 30, 9), F2(800, 9)}},
    {GP_OP_pack_linear, NONE, {F2(150, 9)}},
    {GP_OP_linear_dx, NONE, {F2(150, 20), F2(20, 9)}},
    {GP_OP_linear_dw, NONE, {F2(150, 300), F2(150, 9)}},
    {GP_OP_linear_gelu, NONE, {F2(150, 9), F2(24, 9), F1(24)}},
    {GP_OP_linear_gelu, NONE, {F3(5, 30, 9), F2(800, 9)}},
    {GP_OP_linear_gelu_dx, NONE, {F2(150, 20), F2(20, 16), F2(150, 16)}},
    {GP_OP_linear_gelu_dx, NONE, {F3(5, 30, 20), F2(20, 9), F3(5, 30, 9)}},
    {GP_OP_linear_add, NONE, {F2(150, 9), F2(20, 9), F2(150, 20)}},
    {GP_OP_linear_add, NONE, {F3(5, 30, 9), F2(800, 9), F3(5, 30, 800), F1(800)}},
    {GP_OP_linear_bias_dw, NONE, {F2(150, 300), F2(150, 9)}},
    {GP_OP_linear_bias_dw, NONE, {F3(5, 30, 24), F3(5, 30, 16)}},
    {GP_OP_embedding, NONE, {I1(150), F2(5, 7)}},
    {GP_OP_embedding, NONE, {I2(15, 10), F2(5, 7)}},
    {GP_OP_embedding_dw, {.embedding_dw = {5}}, {F2(150, 200), I1(150)}},
    {GP_OP_layer_norm, {.layer_norm = {1e-5}}, {F2(150, 70), F1(70), F1(70)}},
    {GP_OP_layer_norm_dx, NONE, {F2(150, 70), F2(150, 70), F1(70), F1(150), V('p', 1, 150)}},
    {GP_OP_layer_norm_dx,
     NONE,
     {F2(150, 70), F2(150, 70), F1(70), F1(150), V('p', 1, 150), F2(150, 70)}},
    {GP_OP_layer_norm_dw, NONE, {F2(150, 200), F2(150, 200), F1(150), V('p', 1, 150)}},
    {GP_OP_layer_norm_parts_dx, NONE, {F2(37, 200), F2(37, 200), F1(200), F1(37), V('p', 1, 37)}},
    {GP_OP_layer_norm_parts_dw, NONE, {F3(2, 70, 200)}},
    {GP_OP_layer_norm_bias_dw, NONE, {F2(150, 200), F2(150, 200), F1(150), V('p', 1, 150)}},
    {GP_OP_softmax, NONE, {F2(150, 70)}},
    {GP_OP_softmax_dx, NONE, {F2(150, 70), F2(150, 70)}},
    {GP_OP_log_softmax, NONE, {F3(5, 30, 70)}},
    {GP_OP_log_softmax_dx, NONE, {F2(150, 70), F2(150, 70)}},
    {GP_OP_attention,
     {.random = 2, .attention = {.causal = true, .dropout = 0.3}},
     {F4(2, 3, 70, 4), F4(2, 3, 80, 4), F4(2, 3, 80, 4)}},
    {GP_OP_attention_dx,
     {.random = 2, .attention_dx = {.causal = true, .dropout = 0.3}},
     {F4(2, 3, 70, 4), F4(2, 3, 70, 4), F4(2, 3, 80, 4), F4(2, 3, 80, 4), F4(2, 3, 70, 4),
      F3(2, 3, 70)}},
    {GP_OP_attention,
     {.random = 2, .attention = {.causal = true}},
     {F4(2, 4, 70, 4), F4(2, 2, 70, 4), F4(2, 2, 70, 4)}},
    {GP_OP_attention, NONE, {F4(2, 2, 5, 4), F4(2, 2, 70, 4), F4(2, 2, 70, 4), B4(2, 1, 1, 70)}},
    {GP_OP_attention,
     {.random = 2, .attention = {.causal = true, .dropout = 0.3}},
     {F4(2, 2, 70, 4), F4(2, 1, 70, 4), F4(2, 1, 70, 4), F4(1, 2, 70, 70)}},
    {GP_OP_attention_dx,
     {.random = 2, .attention_dx = {.causal = true}},
     {F4(1, 4, 70, 4), F4(1, 4, 70, 4), F4(1, 2, 70, 4), F4(1, 2, 70, 4), F4(1, 4, 70, 4),
      F3(1, 4, 70), B4(1, 4, 70, 70)}},
    {GP_OP_attention_qkv,
     {.random = 2, .attention_qkv = {.causal = true, .dropout = 0.3, .heads = 3}},
     {F3(2, 70, 36)}},
    {GP_OP_attention_qkv,
     {.random = 2, .attention_qkv = {.causal = true, .heads = 4, .groups = {true, 2}}},
     {F3(2, 70, 32)}},
    {GP_OP_attention_qkv_dx,
     {.random = 2, .attention_qkv_dx = {.causal = true, .dropout = 0.3, .heads = 3}},
     {F3(2, 70, 12), F3(2, 70, 36), F3(2, 70, 12), F3(2, 3, 70)}},
    {GP_OP_attention_qkv_dx,
     {.random = 2, .attention_qkv_dx = {.causal = true, .heads = 4, .groups = {true, 1}}},
     {F3(2, 70, 16), F3(2, 70, 24), F3(2, 70, 16), F3(2, 4, 70)}},
    {GP_OP_cross_entropy, {.cross_entropy = {.smoothing = 0.1}}, {F2(150, 5), I1(150)}},
    {GP_OP_cross_entropy, {.cross_entropy = {.ignore = {true, 2}}}, {F3(10, 15, 5), I2(10, 15)}},
    {GP_OP_cross_entropy_dx,
     {.cross_entropy_dx = {.ignore = {true, 2}}},
     {F2(150, 5), I1(150), P2(150, 2), F1(150)}},
    {GP_OP_cross_entropy_dx,
     {.cross_entropy_dx = {.smoothing = 0.1}},
     {F3(10, 15, 5), I2(10, 15), V('p', 3, 10, 15, 2), F2(10, 15)}},
    {GP_OP_cross_entropy_dx,
     {.cross_entropy_dx = {.ignore = {true, 2}, .wide = 8}},
     {F2(150, 5), I1(150), P2(150, 2), F1(150)}},
    {GP_OP_cross_entropy_both,
     {.cross_entropy_both = {.ignore = {true, 2}}},
     {F3(10, 15, 5), I2(10, 15), F2(10, 15)}},
    {GP_OP_cross_entropy_both,
     {.cross_entropy_both = {.smoothing = 0.1, .wide = 8}},
     {F2(150, 5), I1(150), F1(150)}},
    {GP_OP_cross_entropy_count, {.cross_entropy_count = {.ignore = {true, 2}}}, {I1(150)}},
    {GP_OP_nll, {.nll = {{true, 2}}}, {F3(10, 15, 5), I2(10, 15)}},
    {GP_OP_nll_dx, {.nll_dx = {{true, 2}}}, {F2(150, 5), I1(150), F1(150)}},
    {GP_OP_bce, NONE, {S2(150, 7), S2(150, 7)}},
    {GP_OP_bce_dx, NONE, {F2(150, 7), S2(150, 7), S2(150, 7)}},
    {GP_OP_mse, NONE, {F2(150, 7), F2(150, 7)}},
    {GP_OP_mse_dx, NONE, {F2(150, 7), F2(150, 7), F0}},
    {GP_OP_pack_conv2d, NONE, {F4(5, 4, 3, 3)}},
    {GP_OP_pack_conv2d, {.pack_conv2d = {true}}, {F4(5, 4, 3, 3)}},
    {GP_OP_conv2d, {.conv2d = {.groups = 1}}, {F4(2, 3, 17, 12), F4(7, 3, 3, 3), F1(7)}},
    {GP_OP_conv2d,
     {.conv2d = {.stride = {2, {2, 1}}, .padding = {4, {1, 0, 2, 1}}, .groups = 2}},
     {F4(2, 4, 19, 11), F4(6, 2, 3, 2)}},
    {GP_OP_conv2d, {.conv2d = {.groups = 1}}, {F4(3, 40, 9, 9), F4(6, 40, 1, 1)}},
    {GP_OP_conv_transpose2d,
     {.conv_transpose2d = {.size = {2, {17, 12}}, .groups = 1}},
     {F4(2, 7, 15, 10), F4(7, 3, 3, 3), F1(3)}},
    {GP_OP_conv_transpose2d,
     {.conv_transpose2d = {.size = {2, {20, 13}}, .stride = {2, {2, 2}}, .groups = 2}},
     {F4(2, 4, 9, 6), F4(4, 3, 3, 2)}},
    {GP_OP_conv2d_dw,
     {.conv2d_dw = {.kernel = {2, {3, 3}}, .padding = {4, {1, 1, 1, 1}}, .groups = 1}},
     {F4(2, 7, 12, 9), F4(2, 70, 12, 9)}},
    {GP_OP_conv2d_dw,
     {.conv2d_dw = {.kernel = {2, {1, 1}}, .groups = 2}},
     {F4(2, 6, 12, 9), F4(2, 4, 12, 9)}},
    {GP_OP_resample2d, {.resample2d = {.kernel = {2, {3, 2}}}}, {F4(3, 5, 33, 9)}},
    {GP_OP_resample2d,
     {.resample2d = {.mode = GP_RESAMPLE_BILINEAR, .size = {2, {21, 11}}}},
     {F4(3, 5, 7, 9)}},
    {GP_OP_resample2d_dx,
     {.resample2d_dx = {.kernel = {2, {3, 2}}, .image = {2, {33, 9}}}},
     {F4(3, 5, 11, 4)}},
    {GP_OP_resample2d_dx,
     {.resample2d_dx = {.mode = GP_RESAMPLE_REFLECT,
                        .padding = {4, {2, 3, 1, 0}},
                        .image = {2, {21, 9}}}},
     {F4(3, 5, 26, 10)}},
    {GP_OP_max_pool2d,
     {.max_pool2d = {.kernel = {2, {3, 2}}, .stride = {2, {2, 1}}}},
     {F4(3, 5, 33, 9)}},
    {GP_OP_max_pool2d_dx,
     {.max_pool2d_dx = {.kernel = {2, {1, 5}}, .image = {2, {1, 5}}}},
     {F4(30, 5, 1, 1), V('i', 4, 30, 5, 1, 1)}},
    {GP_OP_rms_norm, {.rms_norm = {1e-6}}, {F2(150, 7), F1(7)}},
    {GP_OP_rms_norm_dx, NONE, {F2(150, 7), F2(150, 7), F1(7), P1(150)}},
    {GP_OP_rms_norm_dw, NONE, {F2(150, 70), F2(150, 70), P1(150)}},
    {GP_OP_channel_stats, NONE, {F4(3, 70, 9, 7)}},
    {GP_OP_channel_stats, {.channel_stats = {true}}, {F4(3, 5, 9, 15)}},
    {GP_OP_channel_stats_join,
     {.channel_stats_join = {.sets = 3, .rows = 135, .groups = 10}},
     {F3(3, 9, 20)}},
    {GP_OP_channel_norm, {.channel_norm = {.eps = 1e-5}}, {F4(3, 70, 9, 7), F2(1, 70), P2(1, 70)}},
    {GP_OP_channel_norm,
     {.channel_norm = {.eps = 1e-5}},
     {F4(3, 6, 9, 15), F2(3, 2), P2(3, 2), F1(6), F1(6)}},
    {GP_OP_channel_norm_sums,
     {.channel_norm_sums = {1e-5}},
     {F4(3, 70, 9, 7), F4(3, 70, 9, 7), F2(1, 70), P2(1, 70)}},
    {GP_OP_channel_norm_dx,
     {.channel_norm_dx = {.eps = 1e-5}},
     {F4(3, 6, 9, 15), F4(3, 6, 9, 15), F2(3, 2), P2(3, 2), F3(2, 3, 6), F1(6)}},
    {GP_OP_channel_norm_relu,
     {.channel_norm_relu = {.eps = 1e-5}},
     {F4(3, 6, 9, 15), F2(3, 2), P2(3, 2), F1(6), F1(6)}},
    {GP_OP_channel_norm_add_relu,
     {.channel_norm_add_relu = {.eps = 1e-5}},
     {F4(3, 70, 9, 7), F2(1, 70), P2(1, 70), F4(3, 70, 9, 7), F1(70), F1(70)}},
    {GP_OP_channel_norm_relu_sums,
     {.channel_norm_relu_sums = {1e-5}},
     {F4(3, 70, 9, 7), F4(3, 70, 9, 7), F2(1, 70), P2(1, 70), F1(70), F1(70)}},
    {GP_OP_channel_norm_relu_dx,
     {.channel_norm_relu_dx = {.eps = 1e-5}},
     {F4(3, 6, 9, 15), F4(3, 6, 9, 15), F2(3, 2), P2(3, 2), F3(2, 3, 6), F1(6), F1(6)}},
    {GP_OP_channel_norm_gate_sums,
     {.channel_norm_gate_sums = {1e-5}},
     {F4(3, 70, 9, 7), F4(3, 70, 9, 7), F4(3, 70, 9, 7), F2(1, 70), P2(1, 70)}},
    {GP_OP_channel_norm_gate_sums,
     {.channel_norm_gate_sums = {1e-5}},
     {F4(3, 6, 9, 15), F4(3, 6, 9, 15), F4(3, 6, 9, 15), F2(3, 2), P2(3, 2), F4(3, 6, 9, 15)}},
    {GP_OP_move_stats,
     {.move_stats = {40, 0.25, false}},
     {F1(150), P1(150), V('n', 0, 0), F2(1, 150), P2(1, 150)}},
    {GP_OP_move_stats,
     {.move_stats = {1, 0, true}},
     {F1(150), P1(150), V('n', 0, 0), F2(1, 150), P2(1, 150)}},
    {GP_OP_merge_stats,
     {.merge_stats = {40, 0.25, false}},
     {F1(150), P1(150), V('n', 0, 0), P2(5, 150), F2(1, 150), P2(1, 150)}},
    {GP_OP_merge_stats,
     {.merge_stats = {40, 0, true}},
     {F1(150), P1(150), V('n', 0, 0), P2(5, 150), F2(1, 150), P2(1, 150)}},
    {GP_OP_replica_gather,
     {.replica_gather = {.replicas = 1, .rows = 5}},
     {F2(1, 150), F2(1, 150)}},
    {GP_OP_replica_stats, {.replica_stats = {.positions = 4}}, {P2(5, 300), P1(5)}},
    {GP_OP_replica_sums, {.replica_sums = {.rows = 3}}, {F2(6, 300), P1(6)}},
    {GP_OP_loss_seed, {.loss_seed = {GP_F32, true, 0}}, {V(0, 0, 0)}},
    {GP_OP_accumulate, NONE, {F2(150, 7), F2(150, 7)}},
    {GP_OP_assign, NONE, {F2(150, 7), F2(150, 7)}},
    {GP_OP_assign, NONE, {F2(150, 7), F1(7)}},
};

enum { HAND_SAMPLES = sizeof samples / sizeof *samples, ROW_SAMPLES = 128 };

/* ---- samples from rows ----------------------------------------------------------------------- */

static inline bool has_sample(gp_op op) {
  for (int s = 0; s < HAND_SAMPLES; s++)
    if (samples[s].op == op) return true;
  return false;
}

/* Returns the choice that an op has among its attributes, or NULL. */
static inline const gp_attr *choice_of(gp_op op) {
  for (const gp_attr *a = gp_op_attrs(op); a->name; a++)
    if (a->kind == GP_ATTR_CHOICE) return a;
  return NULL;
}

static inline sample row_sample(gp_op op) {
  static const input value = F2(150, 7), truth = B2(150, 7);
  const gp_operand *operands = gp_op_contract(op)->operands;
  sample s = {.op = op};
  gp_attrs_default(op, &s.attrs);
  for (int i = 0; operands[i].role; i++) s.in[i] = operands[i].kind == GP_KIND_BOOL ? truth : value;
  return s;
}

/* Appends the samples of an elementwise op; returns the new count. */
static inline int add_row_samples(gp_op op, sample *list, int count) {
  const gp_attr *choice = choice_of(op);
  int value = 0;
  do {
    CHECK(count < ROW_SAMPLES);
    list[count] = row_sample(op);
    if (choice) *(int *)gp_attr_field(&list[count].attrs, choice) = value;
    count++;
  } while (choice && ++value < gp_attr_choices(choice));
  return count;
}

static inline int row_samples(const sample **made) {
  static sample list[ROW_SAMPLES];
  static bool ready;
  static int count;
  for (int op = 0; op < GP_OP_COUNT && !ready; op++) {
    const unsigned flags = gp_op_contract((gp_op)op)->flags;
    if ((flags & GP_OP_MAPS) == GP_OP_MAPS && !has_sample((gp_op)op))
      count = add_row_samples((gp_op)op, list, count);
  }
  ready = true;
  *made = list;
  return count;
}

/* ---- all ------------------------------------------------------------------------------------- */

static inline int sample_count(void) {
  const sample *made;
  return HAND_SAMPLES + row_samples(&made);
}

static inline const sample *sample_at(int i) {
  const sample *made;
  row_samples(&made);
  return i < HAND_SAMPLES ? &samples[i] : &made[i - HAND_SAMPLES];
}

#endif
