/* ops/image/max_pool2d.cu - see max_pool2d.c: the largest element of each window on a GPU, and its
 * gradient, position by position.
 *
 * P is the type of the kept positions: bytes count the taps of a window, and then the windows are
 * known to be such; wide ones count the elements of the image. */
#include <math.h>

#include "ops/image/lines.h"
#include "ops/image/pixels.cuh"
#include "ops/image/taps.h"

template <typename T, typename P> struct pool {
  gp_lines h, w;
  int64_t channels;
  const T *from;
  T *to;
  P *positions;
};

template <typename P> struct kept { static const bool taps = sizeof(P) == 1; };

/* Return an axis whose kind of window the compiler knows. */
template <typename P> static __device__ inline gp_lines axis_of(gp_lines l) {
  if (kept<P>::taps) l.mode = GP_RESAMPLE_WINDOW;
  return l;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* The first of the largest elements of a window, or of its NaNs. */
template <typename T, int COUNT> struct largest {
  gp_lane_pack<T, COUNT> value;
  int32_t found[COUNT]; /* -1: the window has none */

  __device__ void take(const gp_lane_pack<T, COUNT> &x, int32_t position) {
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
      const gp_compute<T> a = gp_load(x.at[k]), best = gp_load(value.at[k]);
      if (found[k] >= 0 && !(a > best || (a != a && best == best))) continue;
      value.at[k] = x.at[k], found[k] = position;
    }
  }
};

template <typename T, typename P> struct max_pool2d_element {
  pool<T, P> s;

  /* Taps count from the window's beginning, also where padding hides the first of them. */
  template <int COUNT> __device__ void search(const gp_pixel &p, largest<T, COUNT> *best) const {
    const gp_lines h = axis_of<P>(s.h), w = axis_of<P>(s.w);
    const gp_lines_range rows = gp_lines_read(&h, p.y), columns = gp_lines_read(&w, p.x);
    const T *image = s.from + p.row * h.image * w.image * s.channels + p.c;
    gp_line tap_row = gp_taps_hidden(&h, p.y) * w.kernel, first = gp_taps_hidden(&w, p.x);
    for (gp_line i = rows.first; i < rows.end; i += rows.step, tap_row += w.kernel) {
      gp_line tap = tap_row + first;
      for (gp_line j = columns.first; j < columns.end; j += columns.step, tap++) {
        const int64_t at = (int64_t)i * w.image + j;
        best->take(gp_lane_load<COUNT>(image + at * s.channels), kept<P>::taps ? tap : (int32_t)at);
      }
    }
  }

  template <int COUNT> __device__ void make(const gp_pixel &p) const {
    largest<T, COUNT> best;
    gp_lane_pack<P, COUNT> positions;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      best.value.at[k] = gp_store<T>((gp_compute<T>)-INFINITY), best.found[k] = -1;
    search<COUNT>(p, &best);
#pragma unroll
    for (int k = 0; k < COUNT; k++) positions.at[k] = (P)best.found[k];
    gp_lane_store(s.to + p.at, best.value);
    gp_lane_store(s.positions + p.at, positions);
  }
};

template <typename T, typename P> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_POOL_ATTRS(call->attr->max_pool2d);
  const gp_shape *image = &call->in[0].meta->shape, *result = &call->out[0].meta->shape;
  GP_GPU_TRY(gp_lines_check_sizes(image, result));
  const pool<T, P> s = {
      gp_lines_of(a, 0, image, result), gp_lines_of(a, 1, image, result), image->dim[1],
      (const T *)call->in[0].data,      (T *)call->out[0].data,           (P *)call->out[1].data};
  const bool packed = gp_is_packed(s.from) && gp_is_packed(s.to) && gp_is_packed(s.positions);
  return gp_each_pixel<T>(gpu, max_pool2d_element<T, P>{s}, call->out[0].meta, packed);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  if (call->op.out[1].meta->dtype == GP_U8)
    GP_BY_FLOAT(call->op.out[0].meta->dtype, return (launch<T, uint8_t>(gpu, &call->op)));
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return (launch<T, int64_t>(gpu, &call->op)));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_max_pool2d = {run, NULL};

/* ---- gradient ------------------------------------------------------------------------------- */

/* Sum over all windows that meet the element: each may have taken it. */
template <typename T, typename P> struct max_pool2d_dx_element {
  pool<T, P> s;

  /* Add what a window gives whose kept position would be `own`. */
  template <int COUNT>
  __device__ void add(int64_t at, int64_t own, gp_compute<T> (&sum)[COUNT]) const {
    const gp_lane_pack<P, COUNT> kept = gp_lane_load<COUNT>(s.positions + at);
    const gp_lane_pack<T, COUNT> dy = gp_lane_load<COUNT>(s.from + at);
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      if (kept.at[k] == own) sum[k] += gp_load(dy.at[k]);
  }

  template <int COUNT> __device__ void make(const gp_pixel &p) const {
    const gp_lines h = axis_of<P>(s.h), w = axis_of<P>(s.w);
    const gp_lines_range rows = gp_lines_made(&h, p.y), columns = gp_lines_made(&w, p.x);
    const int64_t element = (int64_t)p.y * w.image + p.x;
    gp_compute<T> sum[COUNT] = {};
    for (gp_line i = rows.first; i < rows.end; i++) {
      const gp_line tap_row = gp_taps_of(&h, i, p.y);
      if (kept<P>::taps && tap_row < 0) continue;
      for (gp_line j = columns.first; j < columns.end; j++) {
        const gp_line tap = gp_taps_of(&w, j, p.x);
        if (kept<P>::taps && tap < 0) continue;
        const int64_t at = ((p.row * h.result + i) * w.result + j) * s.channels + p.c;
        add<COUNT>(at, kept<P>::taps ? (int64_t)(tap_row * w.kernel + tap) : element, sum);
      }
    }
    gp_lane_pack<T, COUNT> to;
#pragma unroll
    for (int k = 0; k < COUNT; k++) to.at[k] = gp_store<T>(sum[k]);
    gp_lane_store(s.to + p.at, to);
  }
};

template <typename T, typename P> static gp_status launch_dx(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_POOL_ATTRS(call->attr->max_pool2d_dx);
  const gp_shape *image = &call->out[0].meta->shape, *result = &call->in[0].meta->shape;
  GP_GPU_TRY(gp_lines_check_sizes(image, result));
  const pool<T, P> s = {
      gp_lines_of(a, 0, image, result), gp_lines_of(a, 1, image, result), image->dim[1],
      (const T *)call->in[0].data,      (T *)call->out[0].data,           (P *)call->in[1].data};
  const bool packed = gp_is_packed(s.from) && gp_is_packed(s.to) && gp_is_packed(s.positions);
  return gp_each_pixel<T>(gpu, max_pool2d_dx_element<T, P>{s}, call->out[0].meta, packed);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  if (call->op.in[1].meta->dtype == GP_U8)
    GP_BY_FLOAT(call->op.out[0].meta->dtype, return (launch_dx<T, uint8_t>(gpu, &call->op)));
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return (launch_dx<T, int64_t>(gpu, &call->op)));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_max_pool2d_dx = {run_dx, NULL};
