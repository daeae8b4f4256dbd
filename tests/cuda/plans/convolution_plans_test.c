/* tests/cuda/plans/convolution_plans_test.c - the real cuDNN accepts the graphs of convolutions;
 * cudnn_plans_test.c says how that is tested. */
#include <stdio.h>

#include "described_gpu.h"
#include "device/cuda/cudnn/convolution/graph.h"

static gp_cudnn_library library;

/* ---- cases --------------------------------------------------------------------------------- */

/* Images are square; where `behind` is 0 all sides have the same padding. */
typedef struct sizes {
  int64_t rows, image_c, image, map_c, kernel, stride, before, dilation, groups;
  int64_t behind; /* more than before */
} sizes;

static const sizes cases[] = {
    {32, 64, 56, 64, 3, 1, 1, 1, 1, 0}, /* ResNet */
    {32, 64, 56, 256, 1, 1, 0, 1, 1, 0},  {32, 256, 56, 512, 1, 2, 0, 1, 1, 0},
    {32, 128, 56, 128, 3, 2, 1, 1, 1, 0}, {32, 512, 7, 512, 3, 1, 1, 1, 1, 0},
    {32, 3, 224, 64, 7, 2, 3, 1, 1, 0},   {8, 1, 28, 10, 5, 1, 0, 1, 1, 0},  /* few channels */
    {8, 33, 17, 7, 3, 1, 1, 1, 1, 0},     {4, 64, 33, 64, 3, 1, 2, 2, 1, 0}, /* dilated */
    {8, 64, 32, 64, 3, 1, 1, 1, 64, 0},                                      /* depthwise */
    {8, 128, 32, 256, 3, 1, 1, 1, 32, 0},                                    /* ResNeXt */
    {4, 16, 16, 32, 2, 2, 0, 1, 1, 0},                                       /* U-Net, upwards */
    {4, 64, 32, 64, 3, 1, 0, 1, 1, 2}, /* padded behind alone */
};
enum { CASES = sizeof cases / sizeof *cases };

static gp_convolution convolution_of(const sizes *s, gp_dtype dtype, gp_convolution_pass pass) {
  const int64_t map =
      (s->image + 2 * s->before + s->behind - s->dilation * (s->kernel - 1) - 1) / s->stride + 1;
  const gp_convolution_axis axis = {s->image, map, s->kernel, s->stride, s->before, s->dilation};
  return (gp_convolution){.pass = pass,
                          .dtype = dtype,
                          .rows = s->rows,
                          .groups = s->groups,
                          .image_c = s->image_c,
                          .map_c = s->map_c,
                          .h = axis,
                          .w = axis,
                          .weight_dtype = GP_F32};
}

static const sizes *const last = &cases[CASES];

static void print_refusal(const gpu_kind *kind, const gp_convolution *c,
                          const gp_cudnn_plan *plan) {
  char why[512] = "";
  library.cudnnGetLastErrorString(why, sizeof why);
  fprintf(stderr, "%s: convolution, pass %d, dtype %d, %lld x %lld x %lld: %s (%s)\n", kind->name,
          c->pass, c->dtype, (long long)c->rows, (long long)c->image_c, (long long)c->h.image,
          library.cudnnGetErrorString(plan->graph.status), why);
}

static void check_plan(const gpu_kind *kind, const gp_convolution *c, bool tf32) {
  const gp_cudnn_limits limits = gp_cudnn_convolution_limits(c, tf32);
  gp_cudnn_plan plan = {.graph = {.library = &library}, .limits = limits};
  const gp_cudnn_target target = {.properties = properties_of(&library, kind)};
  CHECK(!gp_cudnn_convolution_refusal(c));
  gp_cudnn_convolution_describe(&plan.graph, c);
  const bool built = gp_cudnn_plan_build(&plan, &target);
  if (!built) print_refusal(kind, c, &plan);
  CHECK(built && plan.workspace <= limits.workspace);
  gp_cudnn_plan_close(&plan);
  library.cudnnBackendDestroyDescriptor(target.properties);
}

/* Checks all passes; those that may have a bias also with it. */
static void check_passes(const gpu_kind *kind, gp_dtype dtype, bool tf32) {
  for (const sizes *s = cases; s < last; s++)
    for (int pass = GP_CONVOLUTION_MAP; pass <= GP_CONVOLUTION_WEIGHT; pass++) {
      gp_convolution c = convolution_of(s, dtype, (gp_convolution_pass)pass);
      check_plan(kind, &c, tf32);
      c.biased = pass != GP_CONVOLUTION_WEIGHT;
      if (c.biased) check_plan(kind, &c, tf32);
    }
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(convolutions_have_plans_on_sm_80) {
  check_passes(&ampere, GP_F32, true);
  check_passes(&ampere, GP_BF16, false);
}

TEST(convolutions_have_plans_on_sm_90) {
  check_passes(&hopper, GP_F32, false);
  check_passes(&hopper, GP_BF16, false);
  check_passes(&hopper, GP_F16, false);
}

TEST(what_cudnn_cannot_take_is_not_offered_to_it) {
  gp_convolution c = convolution_of(&cases[0], GP_F32, GP_CONVOLUTION_MAP);
  CHECK(!gp_cudnn_convolution_refusal(&c));
  c.dtype = GP_F64;
  CHECK(gp_cudnn_convolution_refusal(&c));
  c.dtype = GP_F16, c.rows = 0;
  CHECK(gp_cudnn_convolution_refusal(&c));
  c.rows = 1, c.weight = (void *)4;
  CHECK(gp_cudnn_convolution_refusal(&c));
  c.weight = NULL, c.h.image += 3; /* no window reaches the last three rows */
  CHECK(gp_cudnn_convolution_refusal(&c));
}

/* This test runs first: the others use the library. */
TEST(the_library_opens) {
  char why[256] = "";
  const bool opened = gp_cudnn_library_open(&library, why, sizeof why);
  if (!opened) fprintf(stderr, "%s\n", why);
  CHECK(opened);
}

TEST_MAIN(the_library_opens, convolutions_have_plans_on_sm_80, convolutions_have_plans_on_sm_90,
          what_cudnn_cannot_take_is_not_offered_to_it)
