/* io/file/elements.c - turns numbers of a foreign file, of any width and byte order, into a tensor.
 *
 * A type that no dtype has becomes the smallest dtype that holds all its values: i8 and i16 become
 * i32, u16 i32, u32 and u64 i64. */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/data.h"

static const struct {
  char kind;
  int bytes;
  gp_dtype dtype;
} forms[] = {{'b', 1, GP_BOOL}, {'u', 1, GP_U8},  {'i', 1, GP_I32}, {'i', 2, GP_I32},
             {'u', 2, GP_I32},  {'i', 4, GP_I32}, {'u', 4, GP_I64}, {'i', 8, GP_I64},
             {'u', 8, GP_I64},  {'f', 2, GP_F16}, {'f', 4, GP_F32}, {'f', 8, GP_F64}};
enum { FORMS = sizeof forms / sizeof *forms };

bool gp_element_known(gp_element form, gp_dtype *dtype) {
  for (int i = 0; i < FORMS; i++)
    if (forms[i].kind == form.kind && forms[i].bytes == form.bytes) {
      *dtype = forms[i].dtype;
      return true;
    }
  return false;
}

/* The bits of an element, sign-extended to 64. */
static uint64_t load(const unsigned char *from, gp_element form) {
  uint64_t bits = 0;
  for (int b = 0; b < form.bytes; b++) bits = bits << 8 | from[form.big ? b : form.bytes - 1 - b];
  int unused = 64 - 8 * form.bytes;
  return form.kind == 'i' ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

/* Convert the elements. The low bytes of the bits are the element, because all our machines are
 * little-endian. */
static gp_status convert(const unsigned char *from, gp_element form, int64_t count, gp_dtype dtype,
                         unsigned char *to) {
  size_t size = gp_dtype_size(dtype);
  bool alike = (size_t)form.bytes == size && (!form.big || size == 1) && form.kind != 'b' &&
               !(form.kind == 'u' && size == 8);
  if (alike && count) memcpy(to, from, (size_t)count * size);
  if (alike) return GP_OK;
  for (int64_t i = 0; i < count; i++, from += form.bytes, to += size) {
    uint64_t bits = load(from, form);
    if (dtype == GP_BOOL && bits > 1)
      return gp_fail(GP_EFORMAT, "element %lld is %d, which is no bool", (long long)i + 1,
                     (int)bits);
    if (form.kind == 'u' && form.bytes == 8 && bits > INT64_MAX)
      return gp_fail(GP_EFORMAT, "element %lld is %llu, more than i64 holds", (long long)i + 1,
                     (unsigned long long)bits);
    memcpy(to, &bits, size);
  }
  return GP_OK;
}

/* Check that the elements take exactly the bytes after `offset`. */
static gp_status check_size(const gp_tensor *bytes, int64_t offset, gp_element form,
                            const gp_shape *shape, int64_t *count) {
  int64_t have = gp_tensor_numel(bytes) - offset, wanted;
  char text[96];
  if (gp_shape_numel(shape, count) || __builtin_mul_overflow(*count, form.bytes, &wanted))
    return gp_fail(GP_EFORMAT, "the shape is %s, expected one that a file can hold",
                   gp_shape_print(shape, text, sizeof text));
  if (have == wanted) return GP_OK;
  return gp_fail(GP_EFORMAT, "%lld bytes of elements, expected %lld", (long long)have,
                 (long long)wanted);
}

gp_status gp_elements_read(const gp_tensor *bytes, int64_t offset, gp_element form,
                           const gp_shape *shape, gp_tensor **values) {
  gp_dtype dtype;
  int64_t count;
  if (gp_tensor_meta(bytes)->dtype != GP_U8 || !gp_tensor_is_contiguous(bytes))
    return gp_fail(GP_EDTYPE, "elements: the bytes are no contiguous u8 tensor");
  if (offset < 0 || offset > gp_tensor_numel(bytes) || !gp_element_known(form, &dtype))
    return gp_fail(GP_EINVAL, "elements: no such offset or form");
  GP_TRY(check_size(bytes, offset, form, shape, &count));
  gp_tensor *made = NULL;
  GP_TRY(gp_tensor_new(dtype, shape, &made));
  const unsigned char *from = gp_tensor_data(bytes);
  gp_status status = convert(from + offset, form, count, dtype, gp_tensor_data(made));
  if (status)
    gp_tensor_free(made);
  else
    *values = made;
  return status;
}
