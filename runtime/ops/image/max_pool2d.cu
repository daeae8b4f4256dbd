/* ops/image/max_pool2d.cu - see max_pool2d.c: the largest element of each window on a GPU, and its
 * gradient, element by element. */
#include <math.h>

#include "ops/image/lines.h"
#include "ops/image/pixels.cuh"

template <typename T> struct pool {
  gp_lines h, w;
  int64_t channels;
  const T *from;
  T *to;
  int64_t *positions;
};

/* ---- forward -------------------------------------------------------------------------------- */

/* Return the position of the first of the largest elements, or of the first NaN; -1 if the
 * window has none. */
template <typename T> static __device__ int64_t find_largest(const pool<T> &s, gp_pixel p) {
  const gp_lines_range rows = gp_lines_read(&s.h, p.y), columns = gp_lines_read(&s.w, p.x);
  const T *image = s.from + p.row * s.h.image * s.w.image * s.channels + p.c;
  int64_t found = -1;
  gp_compute<T> best = 0;
  for (int64_t i = rows.first; i < rows.end; i += rows.step)
    for (int64_t j = columns.first; j < columns.end; j += columns.step) {
      const gp_compute<T> x = gp_load(image[(i * s.w.image + j) * s.channels]);
      if (found >= 0 && !(x > best || (x != x && best == best))) continue;
      best = x, found = i * s.w.image + j;
    }
  return found;
}

template <typename T> struct max_pool2d_element {
  pool<T> s;

  __device__ void operator()(int64_t at, const gp_pixel &p) const {
    const int64_t found = find_largest(s, p);
    const int64_t from = (p.row * s.h.image * s.w.image + found) * s.channels + p.c;
    s.to[at] = found < 0 ? gp_store<T>((gp_compute<T>)-INFINITY) : s.from[from];
    s.positions[at] = found;
  }
};

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_POOL_ATTRS(call->attr->max_pool2d);
  const gp_shape *image = &call->in[0].meta->shape, *result = &call->out[0].meta->shape;
  const pool<T> s = {gp_lines_of(a, 0, image, result),
                     gp_lines_of(a, 1, image, result),
                     image->dim[1],
                     (const T *)call->in[0].data,
                     (T *)call->out[0].data,
                     (int64_t *)call->out[1].data};
  return gp_each_pixel(gpu, max_pool2d_element<T>{s}, call->out[0].meta);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_max_pool2d = {run, NULL};

/* ---- gradient ------------------------------------------------------------------------------- */

/* Sum over all windows that meet the element: each may have taken it. */
template <typename T> static __device__ gp_compute<T> collect(const pool<T> &s, gp_pixel p) {
  const gp_lines_range rows = gp_lines_made(&s.h, p.y), columns = gp_lines_made(&s.w, p.x);
  const int64_t own = p.y * s.w.image + p.x;
  gp_compute<T> sum = 0;
  for (int64_t i = rows.first; i < rows.end; i++)
    for (int64_t j = columns.first; j < columns.end; j++) {
      const int64_t at = ((p.row * s.h.result + i) * s.w.result + j) * s.channels + p.c;
      if (s.positions[at] == own) sum += gp_load(s.from[at]);
    }
  return sum;
}

template <typename T> struct max_pool2d_dx_element {
  pool<T> s;

  __device__ void operator()(int64_t at, const gp_pixel &p) const {
    s.to[at] = gp_store<T>(collect(s, p));
  }
};

template <typename T> static gp_status launch_dx(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_POOL_ATTRS(call->attr->max_pool2d_dx);
  const gp_shape *image = &call->out[0].meta->shape, *result = &call->in[0].meta->shape;
  const pool<T> s = {gp_lines_of(a, 0, image, result),
                     gp_lines_of(a, 1, image, result),
                     image->dim[1],
                     (const T *)call->in[0].data,
                     (T *)call->out[0].data,
                     (int64_t *)call->in[1].data};
  return gp_each_pixel(gpu, max_pool2d_dx_element<T>{s}, call->out[0].meta);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch_dx<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_max_pool2d_dx = {run_dx, NULL};
