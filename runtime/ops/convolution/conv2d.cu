/* ops/convolution/conv2d.cu - see conv2d.c: y = x * w + b on a GPU, by cuDNN or element by
 * element. */
#include "ops/convolution/library/library.cuh"

template <typename T> struct conv2d_element {
  gp_conv c;
  gp_weight_steps steps;
  const T *x, *w, *bias;
  T *y;

  /* Taps outermost, then the channels of its group. */
  template <int> __device__ void make(const gp_pixel &p) const {
    const int64_t channels = c.image_c / c.groups, taps = c.h.kernel * c.w.kernel;
    const int64_t group = p.c / (c.map_c / c.groups);
    const T *own = w + p.c * channels * taps;
    gp_compute<T> sum = bias ? gp_load(bias[p.c]) : (gp_compute<T>)0;
    for (int64_t t = 0; t < taps; t++) {
      const int64_t line = gp_conv_seen(c.h, p.y, t / c.w.kernel);
      const int64_t column = gp_conv_seen(c.w, p.x, t % c.w.kernel);
      if (line < 0 || column < 0) continue;
      const T *from =
          x + ((p.row * c.h.image + line) * c.w.image + column) * c.image_c + group * channels;
      for (int64_t i = 0; i < channels; i++)
        sum += gp_load(from[i]) * gp_load(own[i * steps.channel + t * steps.tap]);
    }
    y[p.at] = gp_store<T>(sum);
  }
};

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const conv2d_element<T> f = {gp_conv_forward(call),
                               gp_weight_steps_of(*call->in[1].meta),
                               (const T *)call->in[0].data,
                               (const T *)call->in[1].data,
                               call->n_in == 3 ? (const T *)call->in[2].data : NULL,
                               (T *)call->out[0].data};
  return gp_each_element(gpu, f, call->out[0].meta);
}

/* Plans of GPUs do not pack weights. */
static gp_convolution describe(const gp_call *call) {
  const gp_conv_values values = {&call->in[0], &call->out[0], &call->in[1],
                                 call->n_in == 3 ? &call->in[2] : NULL};
  return gp_convolution_of(GP_CONVOLUTION_MAP, gp_conv_forward(call), values, call);
}

GP_CONVOLUTION_KERNEL(conv2d, describe)
