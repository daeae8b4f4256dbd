/* tests/c/base/convert_test.c - every dtype into every other: all half-precision patterns, rounding
 * at every tie, saturation at every limit. */
#include "base/numbers/convert.h"

#include "base/tensor.h"
#include "test.h"

/* Returns the number that the bits of a small float mean, by definition. */
static double half_value(unsigned bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, mask = (1 << exponent_bits) - 1;
  int exponent = (int)(bits >> mantissa_bits) & mask;
  double mantissa = (double)(bits & ((1u << mantissa_bits) - 1)),
         one = (double)(1 << mantissa_bits);
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == mask) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexp(mantissa / one, 1 - bias);
  return sign * ldexp(1 + mantissa / one, exponent - bias);
}

static bool same_float(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

TEST(every_f16_pattern_survives) {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; bits++) {
    float value = gp_f16_to_float((uint16_t)bits);
    uint16_t back = gp_f16_from_float(value);
    wrong += !same_float(value, half_value(bits, 5, 10));
    wrong += isnan(value) ? back != (bits | 0x200) : back != bits;
  }
  CHECK(wrong == 0);
}

TEST(every_bf16_pattern_survives) {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; bits++) {
    float value = gp_bf16_to_float((uint16_t)bits);
    uint16_t back = gp_bf16_from_float(value);
    wrong += !same_float(value, half_value(bits, 8, 7));
    wrong += isnan(value) ? back != (bits | 0x40) : back != bits;
  }
  CHECK(wrong == 0);
}

static uint16_t narrow_double(gp_dtype dtype, double value) {
  uint16_t bits = 0;
  gp_convert((gp_line){&bits, 1, dtype}, (gp_line){&value, 1, GP_F64}, 1);
  return bits;
}

/* Between every two neighbours the tie goes to the even one, and the slightest bit decides. */
static int count_wrong_ties(gp_dtype dtype, int exponent_bits, int mantissa_bits,
                            uint16_t (*narrow)(float)) {
  int wrong = 0;
  unsigned infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  for (unsigned low = 0; low < infinity; low++) {
    double a = half_value(low, exponent_bits, mantissa_bits);
    /* The largest number's upper neighbour is taken as if it were finite. */
    double b = low + 1 == infinity ? 2 * a - half_value(low - 1, exponent_bits, mantissa_bits)
                                   : half_value(low + 1, exponent_bits, mantissa_bits);
    double tie = a + (b - a) / 2;
    unsigned even = low & 1 ? low + 1 : low;
    wrong += narrow((float)tie) != even || narrow((float)-tie) != (even | 0x8000);
    wrong += narrow(nextafterf((float)tie, 0)) != low;
    wrong += narrow(nextafterf((float)tie, INFINITY)) != low + 1;
    wrong += narrow_double(dtype, tie) != even;
    wrong += narrow_double(dtype, nextafter(tie, 0)) != low;
    wrong += narrow_double(dtype, nextafter(-tie, -INFINITY)) != ((low + 1) | 0x8000);
  }
  return wrong;
}

TEST(f16_rounds_once_to_nearest_even) {
  CHECK(count_wrong_ties(GP_F16, 5, 10, gp_f16_from_float) == 0);
  CHECK(gp_f16_from_float(1e30f) == 0x7c00 && gp_f16_from_float(-1e-30f) == 0x8000);
  CHECK(narrow_double(GP_F16, 1e300) == 0x7c00 && narrow_double(GP_F16, -1e-300) == 0x8000);
}

TEST(bf16_rounds_once_to_nearest_even) {
  CHECK(count_wrong_ties(GP_BF16, 8, 7, gp_bf16_from_float) == 0);
  CHECK(narrow_double(GP_BF16, -1e300) == 0xff80);
}

static int64_t to_int(gp_dtype dtype, double value) {
  union {
    int64_t i64;
    int32_t i32;
    uint8_t u8;
  } out = {.i64 = 0};
  gp_convert((gp_line){&out, 1, dtype}, (gp_line){&value, 1, GP_F64}, 1);
  float narrow = (float)value;
  union {
    int64_t i64;
    int32_t i32;
    uint8_t u8;
  } same = {.i64 = 0};
  gp_convert((gp_line){&same, 1, dtype}, (gp_line){&narrow, 1, GP_F32}, 1);
  if ((double)narrow == value || isnan(value)) CHECK(out.i64 == same.i64);
  return dtype == GP_I64 ? out.i64 : dtype == GP_I32 ? out.i32 : out.u8;
}

TEST(floats_are_truncated_and_saturated) {
  static const struct {
    double value;
    int64_t i64, i32, u8;
  } cases[] = {
      {0.0, 0, 0, 0},
      {-0.99, 0, 0, 0},
      {2.99, 2, 2, 2},
      {-2.5, -2, -2, 0},
      {255.0, 255, 255, 255},
      {255.5, 255, 255, 255},
      {256.0, 256, 256, 255},
      {2147483647.0, 2147483647, 2147483647, 255},
      {2147483648.0, 2147483648, 2147483647, 255},
      {-2147483648.0, -2147483648LL, INT32_MIN, 0},
      {-2147483648.5, -2147483648LL, INT32_MIN, 0},
      {-2147483649.0, -2147483649LL, INT32_MIN, 0},
      {9007199254740991.0, 9007199254740991LL, INT32_MAX, 255},
      {9.2233720368547758e18, INT64_MAX, INT32_MAX, 255},
      {-9.2233720368547758e18, INT64_MIN, INT32_MIN, 0},
      {1e300, INT64_MAX, INT32_MAX, 255},
      {-INFINITY, INT64_MIN, INT32_MIN, 0},
      {NAN, 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK(to_int(GP_I64, cases[i].value) == cases[i].i64);
    CHECK(to_int(GP_I32, cases[i].value) == cases[i].i32);
    CHECK(to_int(GP_U8, cases[i].value) == cases[i].u8);
    CHECK(to_int(GP_BOOL, cases[i].value) == (cases[i].value != 0));
  }
}

TEST(integers_keep_their_bits) {
  static const int64_t values[] = {0, -1, 1, INT64_MAX, INT64_MIN, 0x123456789abcdef0, 300, -129};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    int64_t same = 0;
    int32_t i32 = 0;
    uint8_t u8 = 0, truth = 7;
    gp_line from = {(void *)(uintptr_t)&values[i], 1, GP_I64};
    gp_convert((gp_line){&same, 1, GP_I64}, from, 1);
    gp_convert((gp_line){&i32, 1, GP_I32}, from, 1);
    gp_convert((gp_line){&u8, 1, GP_U8}, from, 1);
    gp_convert((gp_line){&truth, 1, GP_BOOL}, from, 1);
    CHECK(same == values[i]);
    CHECK((uint32_t)i32 == (uint32_t)values[i]);
    CHECK(u8 == (uint8_t)values[i]);
    CHECK(truth == (values[i] != 0));
  }
}

/* As a double, 2^53 + 1 is already rounded to a tie of bf16's neighbours: the last bit must still
 * count. */
TEST(large_integers_round_once) {
  int64_t value = (INT64_C(257) << 53) + 1; /* 257 is halfway between 256 and 258 in bf16 */
  uint16_t bits = 0;
  gp_convert((gp_line){&bits, 1, GP_BF16}, (gp_line){&value, 1, GP_I64}, 1);
  CHECK(gp_bf16_to_float(bits) == 258.0f * 0x1p53f);
  value = -value + 1;
  gp_convert((gp_line){&bits, 1, GP_BF16}, (gp_line){&value, 1, GP_I64}, 1);
  CHECK(gp_bf16_to_float(bits) == -256.0f * 0x1p53f);
  float f32 = 0;
  value = 16777217; /* 2^24 + 1: a tie */
  gp_convert((gp_line){&f32, 1, GP_F32}, (gp_line){&value, 1, GP_I64}, 1);
  CHECK(f32 == 16777216.0f);
}

enum { LINE = 1300, STRIDES = 3 };
static unsigned char source[LINE * STRIDES * 8], expected[LINE * STRIDES * 8],
    found[LINE * STRIDES * 8];

/* Any bits serve as elements: every float pattern may occur, NaN too. */
static void fill_source(void) {
  uint32_t state = 12345;
  for (size_t i = 0; i < sizeof source; i++) {
    state = state * 1664525u + 1013904223u;
    source[i] = (unsigned char)(state >> 24);
  }
}

static void compare_lines(gp_dtype to, gp_dtype from, int64_t to_stride, int64_t from_stride) {
  int64_t to_size = (int64_t)gp_dtype_size(to), from_size = (int64_t)gp_dtype_size(from);
  memset(expected, 0xee, sizeof expected);
  memset(found, 0xee, sizeof found);
  for (int64_t i = 0; i < LINE; i++)
    gp_convert((gp_line){expected + i * to_stride * to_size, 1, to},
               (gp_line){source + i * from_stride * from_size, 1, from}, 1);
  gp_convert((gp_line){found, to_stride, to}, (gp_line){source, from_stride, from}, LINE);
  CHECK(memcmp(expected, found, sizeof found) == 0);
}

TEST(lines_of_any_stride_equal_single_elements) {
  fill_source();
  for (int to = 0; to < GP_DTYPE_COUNT; to++)
    for (int from = 0; from < GP_DTYPE_COUNT; from++)
      for (int64_t a = 1; a <= STRIDES; a++)
        for (int64_t b = 0; b <= STRIDES; b++) compare_lines((gp_dtype)to, (gp_dtype)from, a, b);
}

TEST_MAIN(every_f16_pattern_survives, every_bf16_pattern_survives, f16_rounds_once_to_nearest_even,
          bf16_rounds_once_to_nearest_even, floats_are_truncated_and_saturated,
          integers_keep_their_bits, large_integers_round_once,
          lines_of_any_stride_equal_single_elements)
