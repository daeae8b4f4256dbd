/* device/cuda/cudnn/convolution/run.c - choose which convolutions cuDNN computes, and run its
 * plans.
 *
 * Before a plan, our own kernels reorder the weights as it requires, unless the model's plan has
 * done so once for all uses (graph/turn.c), and write the bias that it adds to; after it they
 * reorder the weights' gradients back. */
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

/* The key of a plan holds everything that its graph depends on, and which engines may compute
 * it. */
static gp_cudnn_key key_of(const gp_gpu *gpu, const gp_convolution *c) {
  gp_cudnn_key key = {{KEY_CONVOLUTION, c->pass, c->dtype, c->biased, is_tf32(gpu, c), c->rows,
                       c->groups, c->image_c, c->map_c}};
  add_axis(&key.field[9], &c->h);
  add_axis(&key.field[15], &c->w);
  return key;
}

static void describe(gp_cudnn_graph *graph, const void *what) {
  gp_cudnn_convolution_describe(graph, what);
}

/* ---- values in memory ---------------------------------------------------------------------- */

static size_t element_bytes(const gp_convolution *c) { return c->dtype == GP_F32 ? 4 : 2; }

static int64_t weight_elements(const gp_convolution *c) {
  return c->map_c * (c->image_c / c->groups) * c->h.kernel * c->w.kernel;
}

/* A request, with the sizes of the values that the graph reads and writes. */
static gp_cudnn_request request_of(const gp_gpu *gpu, const gp_convolution *c) {
  const size_t element = element_bytes(c);
  return (gp_cudnn_request){
      .key = key_of(gpu, c),
      .describe = describe,
      .what = c,
      .limits = gp_cudnn_convolution_limits(c, is_tf32(gpu, c)),
      .values = {{GP_CUDNN_IMAGE,
                  (size_t)(c->rows * c->image_c * c->h.image * c->w.image) * element},
                 {GP_CUDNN_MAP, (size_t)(c->rows * c->map_c * c->h.map * c->w.map) * element},
                 {GP_CUDNN_WEIGHT, (size_t)weight_elements(c) * element}},
      .n_values = 3};
}

/* ---- scratch ------------------------------------------------------------------------------- */

static bool turns(const gp_convolution *c) {
  const int64_t taps = c->h.kernel * c->w.kernel;
  if (c->pass == GP_CONVOLUTION_WEIGHT) return true;
  return !c->turned && taps > 1 && c->image_c > c->groups;
}

/* The scratch holds the weight as the graph reads it, then the library's workspace. */
static size_t weight_bytes(const gp_convolution *c) {
  const size_t bytes = (size_t)weight_elements(c) * element_bytes(c);
  return turns(c) ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
}

/* ---- preparing ----------------------------------------------------------------------------- */

gp_status gp_cudnn_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch,
                                       const char **why) {
  gp_cudnn_answer answer;
  *why = gp_cudnn_convolution_refusal(c);
  if (*why) return GP_OK;
  const gp_cudnn_request request = request_of(gpu, c);
  GP_GPU_TRY(gp_cudnn_prepare(gpu, &request, &answer));
  *why = answer.why;
  *scratch = weight_bytes(c) + answer.workspace;
  return GP_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Run the plan, by the engines that are left: each finds the bias in the result. A plan without a
 * workspace ignores its address. */
static gp_status run_plan(gp_gpu *gpu, const gp_cudnn_key *key, const gp_convolution *c,
                          const char **why) {
  char *scratch = c->scratch;
  void *weight = turns(c) ? scratch : c->weight;
  const gp_cudnn_operand operands[] = {
      {GP_CUDNN_IMAGE, c->image}, {GP_CUDNN_MAP, c->map}, {GP_CUDNN_WEIGHT, weight}};
  void *workspace = scratch ? scratch + weight_bytes(c) : NULL;
  const gp_cudnn_work work = {operands, 3, workspace, "a convolution"};
  const bool made = c->pass == GP_CONVOLUTION_WEIGHT;
  if (turns(c) && !made) GP_GPU_TRY(gp_convolution_turn(gpu, c, weight));
  gp_cudnn_outcome outcome;
  do {
    if (c->biased) GP_GPU_TRY(gp_convolution_write_bias(gpu, c));
    GP_GPU_TRY(gp_cudnn_run(gpu, key, &work, &outcome));
  } while (outcome.again);
  *why = outcome.why;
  return made && !*why ? gp_convolution_turn_back(gpu, c, weight) : GP_OK;
}

/* If the plan is refused, our own kernels write everything again. */
gp_status gp_cudnn_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done,
                                   const char **why) {
  *done = false, *why = NULL;
  if (gp_cudnn_convolution_refusal(c)) return GP_OK;
  const gp_cudnn_key key = key_of(gpu, c);
  if (!gp_cudnn_has(gpu, &key)) return GP_OK;
  GP_GPU_TRY(run_plan(gpu, &key, c, why));
  *done = *why == NULL;
  return GP_OK;
}
