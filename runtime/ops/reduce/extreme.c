/* ops/reduce/extreme.c - the largest element along a dim; see extreme.h.
 *
 * NaN counts as larger than everything, so a broken value shows; of equal elements the first one
 * counts. Results with neighbours (inner > 1) are searched side by side. 64 lanes search a line
 * without neighbours, for the value and then for its first position. Both loops vectorise. */
#include "ops/reduce/extreme.h"

#include "base/status.h"
#include "base/tensor.h"
#include "ops/axis.h"
#include "ops/infer.h"

enum { COLUMNS = 64 }; /* results searched side by side */

/* A search through `size` elements, `step` apart, for each of n neighbours. */
typedef struct search {
  const void *x;
  int64_t size, step, n;
  void *values; /* NULL: not needed */
  int64_t *positions;
} search;

#define IS_NAN(v)    ((v) != (v))
#define NEVER_NAN(v) ((void)(v), false)

/* Tell whether b is larger than a; `load` makes a stored T comparable. */
#define LARGER(b, a, load, is_nan) (load(b) > load(a) || (is_nan(load(b)) && !is_nan(load(a))))

#define SEARCH(name, T, load, is_nan)                                                              \
  static void name##_line(const search *s) {                                                       \
    const T *x = s->x;                                                                             \
    T best[COLUMNS];                                                                               \
    int64_t i = 0;                                                                                 \
    for (int64_t j = 0; j < COLUMNS; j++) best[j] = x[0];                                          \
    for (; i + COLUMNS <= s->size; i += COLUMNS)                                                   \
      for (int64_t j = 0; j < COLUMNS; j++)                                                        \
        best[j] = LARGER(x[i + j], best[j], load, is_nan) ? x[i + j] : best[j];                    \
    for (; i < s->size; i++) best[0] = LARGER(x[i], best[0], load, is_nan) ? x[i] : best[0];       \
    for (int64_t j = 1; j < COLUMNS; j++)                                                          \
      best[0] = LARGER(best[j], best[0], load, is_nan) ? best[j] : best[0];                        \
    for (i = 0; LARGER(best[0], x[i], load, is_nan);) i++;                                         \
    s->positions[0] = i + 1;                                                                       \
    if (s->values) *(T *)s->values = x[i];                                                         \
  }                                                                                                \
  static void name##_columns(const search *s) {                                                    \
    const T *x = s->x;                                                                             \
    T best[COLUMNS];                                                                               \
    for (int64_t j = 0; j < s->n; j++) {                                                           \
      best[j] = x[j];                                                                              \
      s->positions[j] = 1;                                                                         \
    }                                                                                              \
    for (int64_t i = 1; i < s->size; i++)                                                          \
      for (int64_t j = 0; j < s->n; j++) {                                                         \
        const T next = x[i * s->step + j];                                                         \
        const bool larger = LARGER(next, best[j], load, is_nan);                                   \
        best[j] = larger ? next : best[j];                                                         \
        s->positions[j] = larger ? i + 1 : s->positions[j];                                        \
      }                                                                                            \
    if (s->values)                                                                                 \
      for (int64_t j = 0; j < s->n; j++) ((T *)s->values)[j] = best[j];                            \
  }                                                                                                \
  static void name(const search *s) { (s->step == 1 ? name##_line : name##_columns)(s); }

/* A half is compared as the float that it stands for. */
SEARCH(search_f32, float, , IS_NAN)
SEARCH(search_f64, double, , IS_NAN)
SEARCH(search_bf16, uint16_t, gp_bf16_to_float, IS_NAN)
SEARCH(search_f16, uint16_t, gp_f16_to_float, IS_NAN)
SEARCH(search_i64, int64_t, , NEVER_NAN)
SEARCH(search_i32, int32_t, , NEVER_NAN)
SEARCH(search_u8, uint8_t, , NEVER_NAN)

/* bool is stored as 0 and 1 in a byte. */
static void (*const searches[GP_DTYPE_COUNT])(const search *) = {
    [GP_F32] = search_f32, [GP_F64] = search_f64, [GP_BF16] = search_bf16, [GP_F16] = search_f16,
    [GP_I64] = search_i64, [GP_I32] = search_i32, [GP_U8] = search_u8,     [GP_BOOL] = search_u8,
};

/* max and argmax have the same attributes. */
gp_status gp_extreme_shape(const gp_sig *sig, gp_shape *shape) {
  int64_t dim = sig->attr->max.dim;
  GP_TRY(gp_infer_dim(&sig->in[0]->shape, dim));
  if (sig->in[0]->shape.dim[dim] == 0)
    return gp_fail(GP_ESHAPE, "dimension %lld is empty and has no largest element",
                   (long long)dim + 1);
  return gp_infer_reduced(&sig->in[0]->shape, INT64_C(1) << dim, sig->attr->max.keep, shape);
}

/* Cut into pieces of about 16384 comparisons. */
gp_cut gp_extreme_cut(const gp_call *call) {
  gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->max.dim);
  int64_t grain = 16384 / axis.size;
  return (gp_cut){.units = axis.outer * axis.inner, .grain = grain > COLUMNS ? grain : COLUMNS};
}

/* Result r lies at (r / inner, r % inner); search up to COLUMNS neighbours of one outer
 * index at once. */
void gp_extreme_run(const gp_call *call, gp_span span, void *values, int64_t *positions) {
  gp_dtype dtype = call->in[0].meta->dtype;
  gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->max.dim);
  size_t item = gp_dtype_size(dtype);
  for (int64_t r = span.first; r < span.last;) {
    int64_t outer = r / axis.inner, column = r % axis.inner, n = axis.inner - column;
    if (n > span.last - r) n = span.last - r;
    if (n > COLUMNS) n = COLUMNS;
    size_t at = (size_t)(outer * axis.size * axis.inner + column) * item;
    search s = {(const char *)call->in[0].data + at,
                axis.size,
                axis.inner,
                n,
                values ? (char *)values + (size_t)r * item : NULL,
                positions + r};
    searches[dtype](&s);
    r += n;
  }
}

/* Count one comparison per element of the input. */
gp_cost gp_extreme_cost(const gp_sig *sig) {
  gp_cost cost = gp_cost_elements(sig, 0);
  cost.flop = (double)gp_meta_numel(sig->in[0]);
  return cost;
}
