/* scripts/bench/layers.c - how fast oneDNN's own convolution does a shape: one thread, images
 * channels-last, the weight in the order that the library likes best.
 *
 *   bench_layers N I O SIZE KERNEL STRIDE PADDING
 *
 * Prints the seconds of the forward pass, of the gradient of the input and of that of the weight
 * (the best of a few; processor time, which other programs on a shared machine lengthen little). It
 * uses nothing of the runtime, because layers.lua compares the runtime with it. Without the
 * library's headers of 2.x (libdnnl-dev) it fails at once. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(GPIPE_BENCH_DNNL)
#include <oneapi/dnnl/dnnl.h>
#endif

#if defined(DNNL_VERSION_MAJOR) && DNNL_VERSION_MAJOR == 2

enum { PASSES = 9, ARGS = 4 };

static dnnl_engine_t engine;
static dnnl_stream_t stream;

#define TRY(call)                                                                                  \
  do {                                                                                             \
    if ((call) != dnnl_success) {                                                                  \
      fprintf(stderr, "bench_layers: the library refused %s\n", #call);                            \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* Allocates memory and fills it with numbers between -1 and 1. */
static dnnl_memory_t fill(const dnnl_memory_desc_t *desc) {
  size_t bytes = dnnl_memory_desc_get_size(desc);
  float *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
  dnnl_memory_t memory;
  if (!data) exit(1);
  for (size_t i = 0; i < bytes / sizeof *data; i++)
    data[i] = (float)(i * 2654435761u % 2001) / 1000 - 1;
  TRY(dnnl_memory_create(&memory, desc, engine, data));
  return memory;
}

static dnnl_memory_t made_for(const_dnnl_primitive_desc_t pd, dnnl_query_t what) {
  return fill(dnnl_primitive_desc_query_md(pd, what, 0));
}

static double seconds(dnnl_primitive_desc_t pd, const dnnl_exec_arg_t *args) {
  double best = 1e9;
  dnnl_primitive_t primitive;
  TRY(dnnl_primitive_create(&primitive, pd));
  for (int i = 0; i < PASSES; i++) {
    clock_t begin = clock();
    TRY(dnnl_primitive_execute(primitive, stream, 3, args));
    TRY(dnnl_stream_wait(stream));
    double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (i > 0 && took < best) best = took;
  }
  return best;
}

typedef struct shape {
  dnnl_dims_t stride, none, padding;
  dnnl_memory_desc_t x, w, y;
  dnnl_primitive_desc_t hint;
} shape;

static shape shape_of(char **argv) {
  int64_t v[7];
  for (int i = 0; i < 7; i++) v[i] = atoll(argv[1 + i]);
  const int64_t out = (v[3] + 2 * v[6] - v[4]) / v[5] + 1;
  shape s = {.stride = {v[5], v[5]}, .padding = {v[6], v[6]}};
  dnnl_dims_t x = {v[0], v[1], v[3], v[3]}, w = {v[2], v[1], v[4], v[4]},
              y = {v[0], v[2], out, out};
  TRY(dnnl_memory_desc_init_by_tag(&s.x, 4, x, dnnl_f32, dnnl_nhwc));
  TRY(dnnl_memory_desc_init_by_tag(&s.w, 4, w, dnnl_f32, dnnl_format_tag_any));
  TRY(dnnl_memory_desc_init_by_tag(&s.y, 4, y, dnnl_f32, dnnl_nhwc));
  return s;
}

static double forward(shape *s) {
  dnnl_convolution_desc_t desc;
  TRY(dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training,
                                                 dnnl_convolution_direct, &s->x, &s->w, NULL, &s->y,
                                                 s->stride, s->none, s->padding, s->padding));
  TRY(dnnl_primitive_desc_create(&s->hint, &desc, NULL, engine, NULL));
  const dnnl_exec_arg_t args[ARGS] = {{DNNL_ARG_SRC, fill(&s->x)},
                                      {DNNL_ARG_WEIGHTS, made_for(s->hint, dnnl_query_weights_md)},
                                      {DNNL_ARG_DST, fill(&s->y)}};
  return seconds(s->hint, args);
}

static double of_input(const shape *s) {
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t pd;
  TRY(dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &s->x, &s->w,
                                                       &s->y, s->stride, s->none, s->padding,
                                                       s->padding));
  TRY(dnnl_primitive_desc_create(&pd, &desc, NULL, engine, s->hint));
  const dnnl_exec_arg_t args[ARGS] = {{DNNL_ARG_DIFF_DST, fill(&s->y)},
                                      {DNNL_ARG_WEIGHTS, made_for(pd, dnnl_query_weights_md)},
                                      {DNNL_ARG_DIFF_SRC, fill(&s->x)}};
  return seconds(pd, args);
}

static double of_weight(const shape *s) {
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t pd;
  TRY(dnnl_dilated_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &s->x,
                                                          &s->w, NULL, &s->y, s->stride, s->none,
                                                          s->padding, s->padding));
  TRY(dnnl_primitive_desc_create(&pd, &desc, NULL, engine, s->hint));
  const dnnl_exec_arg_t args[ARGS] = {
      {DNNL_ARG_SRC, fill(&s->x)},
      {DNNL_ARG_DIFF_DST, fill(&s->y)},
      {DNNL_ARG_DIFF_WEIGHTS, made_for(pd, dnnl_query_diff_weights_md)}};
  return seconds(pd, args);
}

/* The caller sets OMP_NUM_THREADS=1, because libgomp reads it when it is loaded. */
int main(int argc, char **argv) {
  if (argc != 8) return 2;
  TRY(dnnl_engine_create(&engine, dnnl_cpu, 0));
  TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
  shape s = shape_of(argv);
  const double times[] = {forward(&s), of_input(&s), of_weight(&s)};
  printf("%.9f %.9f %.9f\n", times[0], times[1], times[2]);
  return 0;
}

#else

int main(void) {
  fprintf(stderr, "bench_layers: made without the headers of oneDNN 2 (libdnnl-dev)\n");
  return 1;
}

#endif
