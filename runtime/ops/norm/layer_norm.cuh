/* ops/norm/layer_norm.cuh - what the kernels of layer norm and of its gradients share. */
#ifndef GP_OPS_NORM_LAYER_NORM_CUH
#define GP_OPS_NORM_LAYER_NORM_CUH

#include "ops/reduce/columns.cuh"
#include "ops/short_rows.cuh"

/* The operands of the kernels of one direction; mean and rstd are of dtype `stats`. */
template <typename T> struct layer {
  const T *dy, *x, *w, *b;
  const T *more; /* added to dx; or NULL */
  T *to;         /* y or dx */
  void *mean, *rstd;
  gp_dtype stats;
  int64_t rows, n;
  bool paired; /* all rows can be moved by pairs */
  double eps;
};

/* Return the operands of a gradient of the input: dy, x, w, mean, rstd, and what is added to it. */
template <typename T> static layer<T> gp_layer_norm_backward(const gp_gpu_call *call) {
  const gp_arg *in = call->op.in;
  layer<T> a = {};
  a.dy = (const T *)in[0].data, a.x = (const T *)in[1].data, a.w = (const T *)in[2].data;
  a.to = (T *)call->op.out[0].data, a.mean = in[3].data, a.rstd = in[4].data;
  a.more = call->op.n_in == 6 ? (const T *)in[5].data : NULL;
  a.stats = in[3].meta->dtype;
  a.rows = gp_rows_of(in[0].meta), a.n = gp_width_of(in[0].meta);
  a.paired = gp_is_paired<T>(a.dy, a.n) && gp_is_paired<T>(a.x, a.n) && gp_is_paired<T>(a.w, a.n) &&
             gp_is_paired<T>(a.to, a.n) && gp_is_paired<T>(a.more, a.n);
  return a;
}

/* Terms dy (x - mean) rstd of a sum over rows; and dy itself, if the bias is wanted
 * beside the weight. */
template <typename T, int SUMS> struct weight_terms {
  typedef gp_compute<T> sum;
  struct terms {
    gp_pack<T> dy, x;
    sum mean, rstd;
  };
  static const int count = gp_pack<T>::count, sums = SUMS, ahead = 4;
  const T *dy, *x;
  const void *mean, *rstd;
  gp_dtype stats;

  bool packed(void) const { return gp_is_packed(dy) && gp_is_packed(x); }
  template <bool PACKED>
  __device__ terms read(int64_t, int64_t row, const gp_column_group &group) const {
    return {gp_columns_load<PACKED>(dy + row * group.width, group),
            gp_columns_load<PACKED>(x + row * group.width, group), gp_get<sum>(mean, stats, row),
            gp_get<sum>(rstd, stats, row)};
  }
  __device__ void add(sum *to, const terms &t) const {
#pragma unroll
    for (int k = 0; k < count; k++) {
      const sum d = gp_load(t.dy.at[k]);
      to[k] = gp_plus(to[k], d * ((gp_load(t.x.at[k]) - t.mean) * t.rstd));
      if constexpr (SUMS == 2) to[count + k] = gp_plus(to[count + k], d);
    }
  }
};

/* Run the first pass of both sums, as a plan of their columns says: the plan's parts go to `out`.
 * layer_norm.cu has it for each T. */
template <typename T>
gp_status gp_layer_norm_columns(gp_gpu *gpu, const layer<T> &a, const gp_columns &p,
                                const gp_column_sinks<2> &out);

#endif
