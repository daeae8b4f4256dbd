/* base/numbers/dtype.c - the table of element types.
 *
 * It is made from the one list in gpipe/tensor.h, so a dtype cannot be there by halves. Callers
 * hold checked dtypes (gp_meta_make refuses others), so the accessors below do not check again. */
#include "base/status.h"
#include "gpipe/tensor.h"

#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
  bool is_float;
} dtypes[] = {
#define ROW(NAME, text, size, real) [GP_##NAME] = {.name = text, .bytes = size, .is_float = real},
    GP_DTYPE_LIST(ROW)
#undef ROW
};
_Static_assert(sizeof dtypes / sizeof *dtypes == GP_DTYPE_COUNT, "a row for every dtype");

/* The end of the error for a name that is no dtype. */
#define NAME(ID, text, size, real) " " text
static const char all_names[] = GP_DTYPE_LIST(NAME);
#undef NAME

const char *gp_dtype_name(gp_dtype dtype) { return dtypes[dtype].name; }

size_t gp_dtype_size(gp_dtype dtype) { return dtypes[dtype].bytes; }

bool gp_dtype_is_float(gp_dtype dtype) { return dtypes[dtype].is_float; }

gp_status gp_dtype_parse(const char *name, gp_dtype *dtype) {
  for (int i = 0; i < GP_DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].name, name) == 0) {
      *dtype = (gp_dtype)i;
      return GP_OK;
    }
  return gp_fail(GP_EINVAL, "dtype: '%s' is none of%s", name, all_names);
}
