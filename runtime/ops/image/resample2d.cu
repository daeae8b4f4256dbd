/* ops/image/resample2d.cu - see resample2d.c: averages, samples and padding of images on a GPU, and
 * their gradient, element by element. */
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

/* ---- forward -------------------------------------------------------------------------------- */

template <typename T> static __device__ gp_compute<T> gather(const resample<T> &s, gp_pixel p) {
  const gp_lines_range rows = gp_lines_read(&s.h, p.y), columns = gp_lines_read(&s.w, p.x);
  gp_compute<T> sum = 0;
  for (int64_t i = rows.first; i < rows.end; i += rows.step) {
    const gp_compute<T> row = (gp_compute<T>)gp_lines_weight(&s.h, p.y, i);
    const int64_t line = (p.row * s.h.image + i) * s.w.image;
    for (int64_t j = columns.first; j < columns.end; j += columns.step)
      sum += row * (gp_compute<T>)gp_lines_weight(&s.w, p.x, j) *
             gp_load(s.from[(line + j) * s.channels + p.c]);
  }
  return sum;
}

template <typename T> struct resample2d_element {
  resample<T> s;

  __device__ void operator()(int64_t at, const gp_pixel &p) const {
    s.to[at] = gp_store<T>(gather(s, p));
  }
};

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_RESAMPLE_ATTRS(call->attr->resample2d);
  const resample<T> s =
      resample_of<T>(call, a, &call->in[0].meta->shape, &call->out[0].meta->shape);
  return gp_each_pixel(gpu, resample2d_element<T>{s}, call->out[0].meta);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_resample2d = {run, NULL};

/* ---- gradient ------------------------------------------------------------------------------- */

/* Return what row i of the result gives. */
template <typename T>
static __device__ gp_compute<T> give_row(const resample<T> &s, gp_pixel p, int64_t i) {
  const gp_lines_range made = gp_lines_made(&s.w, p.x);
  const T *row = s.from + (p.row * s.h.result + i) * s.w.result * s.channels + p.c;
  const int64_t before = gp_lines_mirrored(&s.w, p.x, 0), behind = gp_lines_mirrored(&s.w, p.x, 1);
  gp_compute<T> sum = before >= 0 ? gp_load(row[before * s.channels]) : (gp_compute<T>)0;
  for (int64_t j = made.first; j < made.end; j++)
    sum += (gp_compute<T>)gp_lines_weight(&s.w, j, p.x) * gp_load(row[j * s.channels]);
  return behind >= 0 ? sum + gp_load(row[behind * s.channels]) : sum;
}

template <typename T> static __device__ gp_compute<T> give(const resample<T> &s, gp_pixel p) {
  const gp_lines_range made = gp_lines_made(&s.h, p.y);
  const int64_t before = gp_lines_mirrored(&s.h, p.y, 0), behind = gp_lines_mirrored(&s.h, p.y, 1);
  gp_compute<T> sum = before >= 0 ? give_row(s, p, before) : (gp_compute<T>)0;
  for (int64_t i = made.first; i < made.end; i++) {
    const gp_compute<T> weight = (gp_compute<T>)gp_lines_weight(&s.h, i, p.y);
    if (weight != 0) sum += weight * give_row(s, p, i);
  }
  return behind >= 0 ? sum + give_row(s, p, behind) : sum;
}

template <typename T> struct resample2d_dx_element {
  resample<T> s;

  __device__ void operator()(int64_t at, const gp_pixel &p) const {
    s.to[at] = gp_store<T>(give(s, p));
  }
};

template <typename T> static gp_status launch_dx(gp_gpu *gpu, const gp_call *call) {
  const gp_lines_attrs a = GP_RESAMPLE_ATTRS(call->attr->resample2d_dx);
  const resample<T> s =
      resample_of<T>(call, a, &call->out[0].meta->shape, &call->in[0].meta->shape);
  return gp_each_pixel(gpu, resample2d_dx_element<T>{s}, call->out[0].meta);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch_dx<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_resample2d_dx = {run_dx, NULL};
