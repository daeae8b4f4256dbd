/* ops/convolution/conv_transpose2d.cu - see conv_transpose2d.c: from a map to an image on a GPU, by
 * cuDNN or element by element. */
#include "ops/convolution/library/library.cuh"

template <typename T> struct conv_transpose2d_element {
  gp_conv c;
  gp_weight_steps steps;
  const T *x, *w, *bias;
  T *y;

  /* Taps outermost, then the channels of the map in its group. */
  template <int> __device__ void make(const gp_pixel &p) const {
    const int64_t made = c.image_c / c.groups, read = c.map_c / c.groups;
    const int64_t taps = c.h.kernel * c.w.kernel, first = p.c / made * read;
    const T *own = w + first * made * taps + p.c % made * steps.channel;
    gp_compute<T> sum = bias ? gp_load(bias[p.c]) : (gp_compute<T>)0;
    for (int64_t t = 0; t < taps; t++) {
      const int64_t line = gp_conv_met(c.h, p.y, t / c.w.kernel);
      const int64_t column = gp_conv_met(c.w, p.x, t % c.w.kernel);
      if (line < 0 || column < 0) continue;
      const T *from = x + ((p.row * c.h.map + line) * c.w.map + column) * c.map_c + first;
      for (int64_t o = 0; o < read; o++)
        sum += gp_load(from[o]) * gp_load(own[o * made * taps + t * steps.tap]);
    }
    y[p.at] = gp_store<T>(sum);
  }
};

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const conv_transpose2d_element<T> f = {gp_conv_transposed(call),
                                         gp_weight_steps_of(*call->in[1].meta),
                                         (const T *)call->in[0].data,
                                         (const T *)call->in[1].data,
                                         call->n_in == 3 ? (const T *)call->in[2].data : NULL,
                                         (T *)call->out[0].data};
  return gp_each_element(gpu, f, call->out[0].meta);
}

static gp_convolution describe(const gp_call *call) {
  const gp_conv_values values = {&call->out[0], &call->in[0], &call->in[1],
                                 call->n_in == 3 ? &call->in[2] : NULL};
  return gp_convolution_of(GP_CONVOLUTION_IMAGE, gp_conv_transposed(call), values, call);
}

GP_CONVOLUTION_KERNEL(conv_transpose2d, describe)
