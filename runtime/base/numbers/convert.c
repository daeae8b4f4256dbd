/* base/numbers/convert.c - every dtype into every other, without a function for each of the 64
 * pairs.
 *
 * A line is read block by block into one of three wide types that hold the source exactly (float,
 * double, int64), and written from there: 8 readers and 3 x 8 writers. If the source is already
 * wide and dense, the writer reads it directly. */
#include "base/numbers/convert.h"

#include <math.h>

#include "base/numbers/half.h"

enum { BLOCK = 512 }; /* elements of the wide buffer: 4 KiB, stays in the first-level cache */

typedef enum wide_kind { WIDE_F32, WIDE_F64, WIDE_I64, WIDE_COUNT } wide_kind;

/* ---- single values ---- */

/* Two roundings in a row can differ from one: double to float to bf16 would turn a value just above
 * a tie into the tie. So the first one keeps a mark, in the last bit, of what it dropped. */

/* Round to odd: a later rounding to fewer bits then gives what one rounding would have given. */
static inline float odd_float(double value) {
  float near = (float)value;
  if ((double)near == value || value != value) return near;
  uint32_t bits = gp_float_bits(near);
  if (fabs((double)near) > fabs(value)) bits--; /* towards zero */
  return gp_float_of(bits | 1u);
}

/* An int64 as a double whose last bit is sticky, for the same reason. */
static inline double odd_double(int64_t value) {
  uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
  double magnitude =
      size >> 53 ? (double)(size >> 11 | ((size & 0x7ff) != 0)) * 2048.0 : (double)size;
  return value < 0 ? -magnitude : magnitude;
}

/* The limits are powers of two, exact in float and double. The casts are guarded: no value outside
 * the range reaches them. */
#define TRUNCATE(name, W, T, low, high, limit_low, limit_high)                                     \
  static inline T name(W value) {                                                                  \
    if (value >= (limit_high)) return high;                                                        \
    if (value > (limit_low)) return (T)value;                                                      \
    return value != value ? (T)0 : low;                                                            \
  }
TRUNCATE(f32_to_i64, float, int64_t, INT64_MIN, INT64_MAX, -0x1p63f, 0x1p63f)
TRUNCATE(f64_to_i64, double, int64_t, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63)
TRUNCATE(f32_to_i32, float, int32_t, INT32_MIN, INT32_MAX, -0x1p31f, 0x1p31f)
TRUNCATE(f64_to_i32, double, int32_t, INT32_MIN, INT32_MAX, -0x1p31 - 1, 0x1p31)
TRUNCATE(f32_to_u8, float, uint8_t, 0, UINT8_MAX, -1.0f, 256.0f)
TRUNCATE(f64_to_u8, double, uint8_t, 0, UINT8_MAX, -1.0, 256.0)

/* ---- lines ---- */

#define READER(name, T, W, expression)                                                             \
  static void read_##name(const void *from, int64_t stride, int64_t n, void *wide) {               \
    const T *x = from;                                                                             \
    W *y = wide;                                                                                   \
    if (stride == 1)                                                                               \
      for (int64_t i = 0; i < n; i++) {                                                            \
        const T v = x[i];                                                                          \
        y[i] = (W)(expression);                                                                    \
      }                                                                                            \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) {                                                            \
        const T v = x[i * stride];                                                                 \
        y[i] = (W)(expression);                                                                    \
      }                                                                                            \
  }
READER(f32, float, float, v)
READER(f64, double, double, v)
READER(bf16, uint16_t, float, gp_bf16_widen(v))
READER(f16, uint16_t, float, gp_f16_widen(v))
READER(i64, int64_t, int64_t, v)
READER(i32, int32_t, int64_t, v)
READER(u8, uint8_t, int64_t, v)
READER(bool, uint8_t, int64_t, v != 0)

/* The second branch of each loop is the same with a stride: the compiler vectorises
 * only the first. */
#define WRITER(name, W, T, expression)                                                             \
  static void write_##name(const void *wide, int64_t n, void *to, int64_t stride) {                \
    const W *x = wide;                                                                             \
    T *y = to;                                                                                     \
    if (stride == 1)                                                                               \
      for (int64_t i = 0; i < n; i++) {                                                            \
        const W v = x[i];                                                                          \
        y[i] = (T)(expression);                                                                    \
      }                                                                                            \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) {                                                            \
        const W v = x[i];                                                                          \
        y[i * stride] = (T)(expression);                                                           \
      }                                                                                            \
  }
WRITER(f32_f32, float, float, v)
WRITER(f32_f64, float, double, v)
WRITER(f32_bf16, float, uint16_t, gp_bf16_narrow(v))
WRITER(f32_f16, float, uint16_t, gp_f16_narrow(v))
WRITER(f32_i64, float, int64_t, f32_to_i64(v))
WRITER(f32_i32, float, int32_t, f32_to_i32(v))
WRITER(f32_u8, float, uint8_t, f32_to_u8(v))
WRITER(f32_bool, float, uint8_t, v != 0)

/* f64_f32 rounds once as it is; only the way to 16 bits goes through float. */
WRITER(f64_f32, double, float, v)
WRITER(f64_f64, double, double, v)
WRITER(f64_bf16, double, uint16_t, gp_bf16_narrow(odd_float(v)))
WRITER(f64_f16, double, uint16_t, gp_f16_narrow(odd_float(v)))
WRITER(f64_i64, double, int64_t, f64_to_i64(v))
WRITER(f64_i32, double, int32_t, f64_to_i32(v))
WRITER(f64_u8, double, uint8_t, f64_to_u8(v))
WRITER(f64_bool, double, uint8_t, v != 0)

WRITER(i64_f32, int64_t, float, v)
WRITER(i64_f64, int64_t, double, v)
WRITER(i64_bf16, int64_t, uint16_t, gp_bf16_narrow(odd_float(odd_double(v))))
WRITER(i64_f16, int64_t, uint16_t, gp_f16_narrow(odd_float(odd_double(v))))
WRITER(i64_i64, int64_t, int64_t, v)
WRITER(i64_i32, int64_t, int32_t, (uint32_t)v) /* modulo 2^32, without a signed overflow */
WRITER(i64_u8, int64_t, uint8_t, v)
WRITER(i64_bool, int64_t, uint8_t, v != 0)

static const struct {
  wide_kind wide;
  bool is_wide; /* the dtype is its own wide type */
  void (*read)(const void *from, int64_t stride, int64_t n, void *wide);
  void (*write[WIDE_COUNT])(const void *wide, int64_t n, void *to, int64_t stride);
} codecs[] = {
#define WRITERS(name)                                                                              \
  { write_f32_##name, write_f64_##name, write_i64_##name }
    [GP_F32] = {WIDE_F32, true, read_f32, WRITERS(f32)},
    [GP_F64] = {WIDE_F64, true, read_f64, WRITERS(f64)},
    [GP_BF16] = {WIDE_F32, false, read_bf16, WRITERS(bf16)},
    [GP_F16] = {WIDE_F32, false, read_f16, WRITERS(f16)},
    [GP_I64] = {WIDE_I64, true, read_i64, WRITERS(i64)},
    [GP_I32] = {WIDE_I64, false, read_i32, WRITERS(i32)},
    [GP_U8] = {WIDE_I64, false, read_u8, WRITERS(u8)},
    [GP_BOOL] = {WIDE_I64, false, read_bool, WRITERS(bool)},
};
_Static_assert(sizeof codecs / sizeof *codecs == GP_DTYPE_COUNT, "a codec for every dtype");

/* ---- equal dtypes ---- */

/* Elements move as bits of their size, whatever they mean. */
#define MOVER(T, name)                                                                             \
  typedef T __attribute__((may_alias)) name##_bits;                                                \
  static void move_##name(gp_line to, gp_line from, int64_t n) {                                   \
    name##_bits *y = to.data;                                                                      \
    const name##_bits *x = from.data;                                                              \
    if (to.stride == 1)                                                                            \
      for (int64_t i = 0; i < n; i++) y[i] = x[i * from.stride];                                   \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) y[i * to.stride] = x[i * from.stride];                       \
  }
MOVER(uint8_t, one)
MOVER(uint16_t, two)
MOVER(uint32_t, four)
MOVER(uint64_t, eight)

static void move_line(gp_line to, gp_line from, int64_t n) {
  size_t size = gp_dtype_size(to.dtype);
  if (to.stride == 1 && from.stride == 1)
    memcpy(to.data, from.data, (size_t)n * size);
  else if (size == 1)
    move_one(to, from, n);
  else if (size == 2)
    move_two(to, from, n);
  else if (size == 4)
    move_four(to, from, n);
  else
    move_eight(to, from, n);
}

/* Return the address of the element at an index of a line. */
static void *line_at(const gp_line *line, int64_t index) {
  return (char *)line->data + index * line->stride * (int64_t)gp_dtype_size(line->dtype);
}

void gp_convert(gp_line to, gp_line from, int64_t n) {
  if (to.dtype == from.dtype) {
    move_line(to, from, n);
    return;
  }
  wide_kind wide = codecs[from.dtype].wide;
  if (codecs[from.dtype].is_wide && from.stride == 1) {
    codecs[to.dtype].write[wide](from.data, n, to.data, to.stride);
    return;
  }
  union {
    float f32[BLOCK];
    double f64[BLOCK];
    int64_t i64[BLOCK];
  } buffer;
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t count = n - i < BLOCK ? n - i : BLOCK;
    codecs[from.dtype].read(line_at(&from, i), from.stride, count, &buffer);
    codecs[to.dtype].write[wide](&buffer, count, line_at(&to, i), to.stride);
  }
}
