/* device/cuda/cudnn/convolution/run.c - which convolutions cuDNN computes, and running its plans.
 *
 * Around a plan our own kernels turn weights into the order that it wants, gradients of them back,
 * and add a bias that the graph does not. */
#include "device/cuda/cudnn/cache.h"
#include "device/cuda/cudnn/convolution/graph.h"

enum { KEY_CONVOLUTION = 2, ALIGNMENT = 256 };

/* ---- plans --------------------------------------------------------------------------------- */

static void add_axis(int64_t *field, const gp_convolution_axis *a) {
  const int64_t all[] = {a->image, a->map, a->kernel, a->stride, a->before, a->dilation};
  for (int i = 0; i < 6; i++) field[i] = all[i];
}

static bool is_tf32(const gp_gpu *gpu, const gp_convolution *c) {
  return c->dtype == GP_F32 && gpu->math == GP_GPU_TF32;
}

/* A plan is found by all that its graph was made of, and by the engines that may compute it. What
 * has a bias shares none with what has not, see gp_cudnn_convolution_prepare. */
static gp_cudnn_key key_of(const gp_gpu *gpu, const gp_cudnn_convolution *what) {
  const gp_convolution *c = &what->c;
  gp_cudnn_key key = {{KEY_CONVOLUTION, c->pass, c->dtype, c->biased, what->adds_bias,
                       is_tf32(gpu, c), c->rows, c->groups, c->image_c, c->map_c}};
  add_axis(&key.field[10], &c->h);
  add_axis(&key.field[16], &c->w);
  return key;
}

static void describe(gp_cudnn_graph *graph, const void *what) {
  gp_cudnn_convolution_describe(graph, what);
}

/* ---- scratch ------------------------------------------------------------------------------- */

static bool turns(const gp_convolution *c) {
  const int64_t taps = c->h.kernel * c->w.kernel;
  return c->pass == GP_CONVOLUTION_WEIGHT || (taps > 1 && c->image_c > c->groups);
}

/* The weight as the graph has it comes first, the library's workspace behind it. */
static size_t weight_bytes(const gp_convolution *c) {
  const int64_t elements = c->map_c * (c->image_c / c->groups) * c->h.kernel * c->w.kernel;
  const size_t bytes = (size_t)elements * (c->dtype == GP_F32 ? 4 : 2);
  return turns(c) ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
}

/* ---- preparing ----------------------------------------------------------------------------- */

static gp_status ask(gp_gpu *gpu, const gp_cudnn_convolution *what, gp_cudnn_answer *answer) {
  const gp_cudnn_request request = {
      key_of(gpu, what), describe, what,
      gp_cudnn_convolution_limits(&what->c, gpu->math == GP_GPU_TF32)};
  return gp_cudnn_prepare(gpu, &request, answer);
}

/* With the bias in the graph, or without it. After a plan that did not run no other is asked for:
 * who was prepared for that plan would find the other one, and has the wrong scratch. */
gp_status gp_cudnn_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch,
                                       const char **why) {
  gp_cudnn_convolution what = {*c, gp_cudnn_may_add_bias(c)};
  gp_cudnn_answer answer;
  *why = gp_cudnn_convolution_refusal(c);
  if (*why) return GP_OK;
  GP_GPU_TRY(ask(gpu, &what, &answer));
  if (answer.why && !answer.refused && what.adds_bias) {
    what.adds_bias = false;
    GP_GPU_TRY(ask(gpu, &what, &answer));
  }
  *why = answer.why;
  *scratch = weight_bytes(c) + answer.workspace;
  return GP_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* A plan that wants no workspace ignores where it lies. */
static gp_status enqueue(gp_gpu *gpu, const gp_cudnn_key *key, const gp_cudnn_convolution *what,
                         void *weight, const char **why) {
  const gp_convolution *c = &what->c;
  char *scratch = c->scratch;
  const gp_cudnn_operand operands[] = {{GP_CUDNN_IMAGE, c->image},
                                       {GP_CUDNN_MAP, c->map},
                                       {GP_CUDNN_WEIGHT, weight},
                                       {GP_CUDNN_BIAS, c->bias}};
  void *workspace = scratch ? scratch + weight_bytes(c) : NULL;
  const gp_cudnn_work work = {operands, what->adds_bias ? 4 : 3, workspace, "a convolution"};
  return gp_cudnn_run(gpu, key, &work, why);
}

static gp_status run_plan(gp_gpu *gpu, const gp_cudnn_key *key, const gp_cudnn_convolution *what,
                          const char **why) {
  const gp_convolution *c = &what->c;
  void *weight = turns(c) ? c->scratch : c->weight;
  const bool made = c->pass == GP_CONVOLUTION_WEIGHT;
  if (turns(c) && !made) GP_GPU_TRY(gp_convolution_turn(gpu, c, weight));
  GP_GPU_TRY(enqueue(gpu, key, what, weight, why));
  if (*why) return GP_OK;
  if (made) return gp_convolution_turn_back(gpu, c, weight);
  return c->biased && !what->adds_bias ? gp_convolution_add_bias(gpu, c) : GP_OK;
}

/* A refusal leaves nothing that our own kernels would not write again. */
gp_status gp_cudnn_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done,
                                   const char **why) {
  gp_cudnn_convolution what = {*c, gp_cudnn_may_add_bias(c)};
  *done = false, *why = NULL;
  if (gp_cudnn_convolution_refusal(c)) return GP_OK;
  gp_cudnn_key key = key_of(gpu, &what);
  if (what.adds_bias && !gp_cudnn_has(gpu, &key)) {
    what.adds_bias = false;
    key = key_of(gpu, &what);
  }
  if (!gp_cudnn_has(gpu, &key)) return GP_OK;
  GP_GPU_TRY(run_plan(gpu, &key, &what, why));
  *done = *why == NULL;
  return GP_OK;
}
