/* ops/image/resample2d.cu - see resample2d.c: averages, samples and padding of images on a GPU, and
 * their gradient, position by position.
 *
 * In averages over windows of one size (WINDOW), which are the common case, a weight is a quotient
 * for each axis. */
#include "ops/image/lines.h"
#include "ops/image/pixels.cuh"

template <typename T> struct resample {
  gp_lines h, w;
  int64_t channels;
  const T *from;
  T *to;
};

template <typename T>
static resample<T> resample_of(const gp_call *call, gp_lines_attrs a, const gp_shape *image,
                               const gp_shape *result) {
  return {gp_lines_of(a, 0, image, result), gp_lines_of(a, 1, image, result), image->dim[1],
          (const T *)call->in[0].data, (T *)call->out[0].data};
}

/* Return an axis whose kind of window the compiler knows. */
template <bool WINDOW> static __device__ inline gp_lines axis_of(gp_lines l) {
  if (WINDOW) l.mode = GP_RESAMPLE_WINDOW, l.dilation = 1;
  return l;
}

/* Return gp_lines_weight, in type A, of two positions that meet. A quotient of 1 and a number of 29
 * bits is the same in f32 as in f64 rounded to f32: it is never so near the middle of two. */
template <typename A, bool WINDOW>
static __device__ inline A weight_of(const gp_lines &l, gp_line made, gp_line read) {
  if (WINDOW) return 1 / (A)gp_lines_divisor(&l, made);
  return (A)gp_lines_weight(&l, made, read);
}

/* Add the channels of a position, each times a weight. */
template <int COUNT, typename T>
static __device__ inline void add_channels(gp_compute<T> (&sum)[COUNT], const T *from,
                                           gp_compute<T> weight) {
  const gp_lane_pack<T, COUNT> x = gp_lane_load<COUNT>(from);
#pragma unroll
  for (int k = 0; k < COUNT; k++) sum[k] += weight * gp_load(x.at[k]);
}

template <int COUNT, typename T>
static __device__ inline void store_channels(T *to, const gp_compute<T> (&sum)[COUNT]) {
  gp_lane_pack<T, COUNT> x;
#pragma unroll
  for (int k = 0; k < COUNT; k++) x.at[k] = gp_store<T>(sum[k]);
  gp_lane_store(to, x);
}

/* ---- forward -------------------------------------------------------------------------------- */

template <typename T, bool WINDOW> struct resample2d_element {
  typedef gp_compute<T> A;
  resample<T> s;

  template <int COUNT> __device__ void make(const gp_pixel &p) const {
    const gp_lines h = axis_of<WINDOW>(s.h), w = axis_of<WINDOW>(s.w);
    const gp_lines_range rows = gp_lines_read(&h, p.y), columns = gp_lines_read(&w, p.x);
    const T *image = s.from + p.row * h.image * w.image * s.channels + p.c;
    A sum[COUNT] = {};
    for (gp_line i = rows.first; i < rows.end; i += rows.step) {
      const A row = weight_of<A, WINDOW>(h, p.y, i);
      for (gp_line j = columns.first; j < columns.end; j += columns.step)
        add_channels(sum, image + ((int64_t)i * w.image + j) * s.channels,
                     row * weight_of<A, WINDOW>(w, p.x, j));
    }
    store_channels(s.to + p.at, sum);
  }
};

template <typename T>
static gp_status resample_all(gp_gpu *gpu, const resample<T> &s, const gp_meta *made) {
  const bool packed = gp_is_packed(s.from) && gp_is_packed(s.to);
  if (s.h.mode == GP_RESAMPLE_WINDOW)
    return gp_each_pixel<T>(gpu, resample2d_element<T, true>{s}, made, packed);
  return gp_each_pixel<T>(gpu, resample2d_element<T, false>{s}, made, packed);
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_RESAMPLE_ATTRS(call->attr->resample2d);
  const gp_shape *image = &call->in[0].meta->shape, *result = &call->out[0].meta->shape;
  GP_GPU_TRY(gp_lines_check_sizes(image, result));
  return resample_all(gpu, resample_of<T>(call, a, image, result), call->out[0].meta);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_resample2d = {run, NULL};

/* ---- gradient ------------------------------------------------------------------------------- */

template <typename T, bool WINDOW> struct resample2d_dx_element {
  typedef gp_compute<T> A;
  resample<T> s;

  /* Add what row i of the result gives, times a weight. */
  template <int COUNT>
  __device__ void give_row(A (&sum)[COUNT], const gp_pixel &p, gp_line i, A weight) const {
    const gp_lines w = axis_of<WINDOW>(s.w);
    const gp_lines_range made = gp_lines_made(&w, p.x);
    const T *row = s.from + (p.row * s.h.result + i) * w.result * s.channels + p.c;
    const gp_line before = gp_lines_mirrored(&w, p.x, 0), behind = gp_lines_mirrored(&w, p.x, 1);
    A line[COUNT] = {};
    if (before >= 0) add_channels(line, row + before * s.channels, A(1));
    for (gp_line j = made.first; j < made.end; j++)
      add_channels(line, row + j * s.channels, weight_of<A, WINDOW>(w, j, p.x));
    if (behind >= 0) add_channels(line, row + behind * s.channels, A(1));
#pragma unroll
    for (int k = 0; k < COUNT; k++) sum[k] += weight * line[k];
  }

  template <int COUNT> __device__ void make(const gp_pixel &p) const {
    const gp_lines h = axis_of<WINDOW>(s.h);
    const gp_lines_range made = gp_lines_made(&h, p.y);
    const gp_line before = gp_lines_mirrored(&h, p.y, 0), behind = gp_lines_mirrored(&h, p.y, 1);
    A sum[COUNT] = {};
    if (before >= 0) give_row(sum, p, before, A(1));
    for (gp_line i = made.first; i < made.end; i++) {
      const A weight = weight_of<A, WINDOW>(h, i, p.y);
      if (weight != 0) give_row(sum, p, i, weight);
    }
    if (behind >= 0) give_row(sum, p, behind, A(1));
    store_channels(s.to + p.at, sum);
  }
};

template <typename T>
static gp_status give_all(gp_gpu *gpu, const resample<T> &s, const gp_meta *made) {
  const bool packed = gp_is_packed(s.from) && gp_is_packed(s.to);
  if (s.h.mode == GP_RESAMPLE_WINDOW)
    return gp_each_pixel<T>(gpu, resample2d_dx_element<T, true>{s}, made, packed);
  return gp_each_pixel<T>(gpu, resample2d_dx_element<T, false>{s}, made, packed);
}

template <typename T> static gp_status launch_dx(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_RESAMPLE_ATTRS(call->attr->resample2d_dx);
  const gp_shape *image = &call->out[0].meta->shape, *result = &call->in[0].meta->shape;
  GP_GPU_TRY(gp_lines_check_sizes(image, result));
  return give_all(gpu, resample_of<T>(call, a, image, result), call->out[0].meta);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch_dx<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_resample2d_dx = {run_dx, NULL};
