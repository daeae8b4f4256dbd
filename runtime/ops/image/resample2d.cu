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

/* The lines of the result that read a line of the image, in the order of their sum: the one that
 * mirrors it before the image, those whose windows hold it, the one that mirrors it behind. Numbers
 * count them from begin to end, so that there is one loop for all of them. Windows have no
 * mirrors. */
template <typename A, bool WINDOW> struct readers {
  gp_lines axis;
  gp_line read, first, last, begin, end, before, behind;

  __device__ readers(const gp_lines &l, gp_line at) : axis(axis_of<WINDOW>(l)), read(at) {
    const gp_lines_range made = gp_lines_made(&axis, at);
    before = gp_lines_mirrored(&axis, at, 0), behind = gp_lines_mirrored(&axis, at, 1);
    first = made.first, last = made.end > made.first ? made.end : made.first;
    begin = before >= 0 ? first - 1 : first, end = behind >= 0 ? last + 1 : last;
  }
  __device__ gp_line line(gp_line n) const {
    return WINDOW ? n : n < first ? before : n < last ? n : behind;
  }
  __device__ A weight(gp_line n) const {
    const bool mirrors = !WINDOW && (n < first || n >= last);
    return mirrors ? A(1) : weight_of<A, WINDOW>(axis, n, read);
  }
};

template <typename T, bool WINDOW> struct resample2d_dx_element {
  typedef gp_compute<T> A;
  resample<T> s;

  template <int COUNT> __device__ void make(const gp_pixel &p) const {
    const readers<A, WINDOW> rows(s.h, p.y), columns(s.w, p.x);
    const T *image = s.from + p.row * s.h.result * s.w.result * s.channels + p.c;
    A sum[COUNT] = {};
    for (gp_line i = rows.begin; i < rows.end; i++) {
      const A weight = rows.weight(i);
      const T *row = image + rows.line(i) * s.w.result * s.channels;
      if (!WINDOW && weight == 0) continue;
      A line[COUNT] = {};
      for (gp_line j = columns.begin; j < columns.end; j++)
        add_channels(line, row + columns.line(j) * s.channels, columns.weight(j));
#pragma unroll
      for (int k = 0; k < COUNT; k++) sum[k] += weight * line[k];
    }
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
