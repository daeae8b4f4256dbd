/* ops/convolution/library/library.cu - see library.cuh: what the ops of a convolution decide
 * in the same way. */
#include "ops/convolution/library/library.cuh"

#include <stdio.h>

#include "device/cuda/cudnn/cudnn.h"

static gp_convolution_axis axis_of(const gp_conv_axis &a) {
  return {a.image, a.map, a.kernel, a.stride, a.before, a.dilation};
}

gp_convolution gp_convolution_of(gp_convolution_pass pass, const gp_conv &c,
                                 const gp_conv_values &v, const gp_call *call) {
  gp_convolution made = {};
  made.pass = pass, made.dtype = v.image->meta->dtype, made.biased = v.bias != NULL;
  made.rows = c.rows, made.groups = c.groups, made.image_c = c.image_c, made.map_c = c.map_c;
  made.h = axis_of(c.h), made.w = axis_of(c.w);
  made.image = v.image->data, made.map = v.map->data, made.weight = v.weight->data;
  made.bias = v.bias ? v.bias->data : NULL;
  made.weight_dtype = v.weight->meta->dtype, made.accumulate = call->accumulate;
  const gp_weight_steps steps = gp_weight_steps_of(*v.weight->meta);
  made.turned = pass != GP_CONVOLUTION_WEIGHT && steps.channel < steps.tap;
  return made;
}

/* Write "NxM", or one number if both are the same. */
static void write_pair(char *text, size_t size, int64_t h, int64_t w) {
  if (h == w)
    snprintf(text, size, "%lld", (long long)h);
  else
    snprintf(text, size, "%lldx%lld", (long long)h, (long long)w);
}

/* Note the path for reports. why: why cuDNN does not compute it, or NULL. */
static void note_path(gp_gpu *gpu, const gp_convolution *c, const char *why) {
  static const char *const passes[] = {"map", "image", "weight"};
  char kernel[32], stride[32], shape[112];
  write_pair(kernel, sizeof kernel, c->h.kernel, c->w.kernel);
  write_pair(stride, sizeof stride, c->h.stride, c->w.stride);
  const bool tf32 = c->dtype == GP_F32 && gpu->math == GP_GPU_TF32;
  snprintf(shape, sizeof shape, "%s %s N=%lld %lldx%lldx%lld -> %lldx%lldx%lld K=%s S=%s G=%lld%s",
           passes[c->pass], tf32 ? "tf32" : gp_gpu_dtype_name(c->dtype), (long long)c->rows,
           (long long)c->image_c, (long long)c->h.image, (long long)c->w.image, (long long)c->map_c,
           (long long)c->h.map, (long long)c->w.map, kernel, stride, (long long)c->groups,
           c->biased ? " bias" : "");
  gp_gpu_note_path(gpu, "convolution", shape, why ? "own kernels" : "cuDNN", why);
}

gp_status gp_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch) {
  const char *why;
  size_t bytes = 0;
  GP_GPU_TRY(gp_cudnn_convolution_prepare(gpu, c, &bytes, &why));
  *scratch = why ? 0 : bytes;
  note_path(gpu, c, why);
  return GP_OK;
}

gp_status gp_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done) {
  const char *why;
  GP_GPU_TRY(gp_cudnn_convolution_run(gpu, c, done, &why));
  if (why) note_path(gpu, c, why);
  return GP_OK;
}
