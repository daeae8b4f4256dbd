/* tests/cuda/beside_cudnn_test.cpp - the kernels that work beside cuDNN's convolutions: the library
 * needs a GPU, these kernels run on the host too. */
#include "launcher.h"
#include "test.h"

#include "ops/convolution/beside_cudnn.cu"

/* O = 5, I / groups = 3, KH x KW = 2 x 3; two images of 2 x 1 positions on either side. */
enum { O = 5, I = 3, KH = 2, KW = 3, TAPS = KH * KW, WEIGHT = O * I * TAPS, ROWS = 2, PLACES = 2 };

static gp_convolution convolution(gp_dtype dtype) {
  gp_convolution c = {};
  c.dtype = dtype, c.rows = ROWS, c.groups = 2, c.image_c = 2 * I, c.map_c = O;
  c.h = {PLACES, PLACES, KH, 1, 0, 1}, c.w = {1, 1, KW, 1, 0, 1};
  return c;
}

/* Returns where element (o, i, tap) lies for the op, and for the library. */
static int for_op(int o, int i, int t) { return (o * I + i) * TAPS + t; }
static int for_library(int o, int i, int t) { return (o * TAPS + t) * I + i; }

template <typename F> static void each_weight(F f) {
  for (int o = 0; o < O; o++)
    for (int i = 0; i < I; i++)
      for (int t = 0; t < TAPS; t++) f(for_op(o, i, t), for_library(o, i, t));
}

template <typename T> static void check_turn(gp_dtype dtype) {
  device d;
  array<T> w(WEIGHT), to(WEIGHT);
  gp_convolution c = convolution(dtype);
  for (int k = 0; k < WEIGHT; k++) w[(size_t)k] = (T)(k + 1);
  c.weight = w.data;
  CHECK(gp_convolution_turn(&d.gpu, &c, to.data) == GP_OK);
  each_weight([&](int op, int library) { CHECK(to[(size_t)library] == w[(size_t)op]); });
}

TEST(weights_are_turned) {
  check_turn<uint16_t>(GP_BF16);
  check_turn<uint32_t>(GP_F32);
}

/* Converts halves to f32, and adds or writes them. */
template <typename T> static void check_turn_back(gp_dtype dtype, bool accumulate) {
  device d;
  array<T> from(WEIGHT);
  array<float> dw(WEIGHT);
  gp_convolution c = convolution(dtype);
  for (int k = 0; k < WEIGHT; k++) from[(size_t)k] = gp_store<T>((float)k), dw[(size_t)k] = 0.25f;
  c.weight = dw.data, c.weight_dtype = GP_F32, c.accumulate = accumulate;
  CHECK(gp_convolution_turn_back(&d.gpu, &c, from.data) == GP_OK);
  each_weight([&](int op, int library) {
    CHECK(dw[(size_t)op] == (float)library + (accumulate ? 0.25f : 0.0f));
  });
}

TEST(gradients_of_weights_are_turned_back) {
  check_turn_back<float>(GP_F32, true);
  check_turn_back<gp_bf16>(GP_BF16, true);
  check_turn_back<gp_f16>(GP_F16, false);
}

template <typename T> static void check_bias(gp_dtype dtype, gp_convolution_pass pass) {
  device d;
  gp_convolution c = convolution(dtype);
  const size_t channels = (size_t)(pass == GP_CONVOLUTION_MAP ? c.map_c : c.image_c);
  const size_t n = ROWS * PLACES * channels;
  array<T> bias(channels), to(n + 1);
  for (size_t k = 0; k < channels; k++) bias[k] = (T)(k + 7);
  to[n] = 1;
  c.pass = pass, c.bias = bias.data, c.image = c.map = to.data;
  CHECK(gp_convolution_write_bias(&d.gpu, &c) == GP_OK);
  for (size_t k = 0; k < n; k++) CHECK(to[k] == bias[k % channels]);
  CHECK(to[n] == 1);
}

TEST(a_bias_is_written_to_every_position) {
  check_bias<uint16_t>(GP_F16, GP_CONVOLUTION_MAP);
  check_bias<uint32_t>(GP_F32, GP_CONVOLUTION_IMAGE);
}

TEST_MAIN(weights_are_turned, gradients_of_weights_are_turned_back,
          a_bias_is_written_to_every_position)
