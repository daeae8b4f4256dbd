/* gpipe/tensor.h - dtypes, shapes, and views of reference-counted storage. See gpipe.h for what
 * holds everywhere. */
#ifndef GP_PUBLIC_TENSOR_H
#define GP_PUBLIC_TENSOR_H

#include "gpipe/status.h"

enum { GP_MAX_RANK = 8 }; /* dimensions of a shape */

/* X(NAME, "name", bytes, is_float) in the order of the enum. CPUs compute in f32 and f64, and store
 * and convert the others; GPUs also compute with the halves, bf16 and f16, in f32. */
/* clang-format off */
#define GP_DTYPE_LIST(X)  \
  X(F32,  "f32",  4, 1)   \
  X(F64,  "f64",  8, 1)   \
  X(BF16, "bf16", 2, 1)   \
  X(F16,  "f16",  2, 1)   \
  X(I64,  "i64",  8, 0)   \
  X(I32,  "i32",  4, 0)   \
  X(U8,   "u8",   1, 0)   \
  X(BOOL, "bool", 1, 0)
/* clang-format on */

#define GP_DTYPE_ENUM(name, text, bytes, is_float) GP_##name,
typedef enum gp_dtype { GP_DTYPE_LIST(GP_DTYPE_ENUM) GP_DTYPE_COUNT } gp_dtype;
#undef GP_DTYPE_ENUM

const char *gp_dtype_name(gp_dtype dtype);
size_t gp_dtype_size(gp_dtype dtype); /* bytes of one element */
bool gp_dtype_is_float(gp_dtype dtype);
/* Errors: GP_EINVAL lists the names. */
gp_status gp_dtype_parse(const char *name, gp_dtype *dtype);

typedef struct gp_shape {
  int rank; /* 0 is a scalar */
  int64_t dim[GP_MAX_RANK];
} gp_shape;

/* How a value lies in its memory. A contiguous one is row-major with offset 0. */
typedef struct gp_meta {
  gp_dtype dtype;
  gp_shape shape;
  int64_t stride[GP_MAX_RANK]; /* elements; 0 where a dimension is broadcast */
  int64_t offset;              /* elements from the start of the storage */
} gp_meta;

/* Number of elements. Errors: GP_ESHAPE for negative dims and for more than 64 bits can count. */
gp_status gp_shape_numel(const gp_shape *shape, int64_t *numel);
bool gp_shape_equal(const gp_shape *a, const gp_shape *b);
/* Write "32x128" (or "scalar") into text of the given size, cut off where it is too small; returns
 * text. */
char *gp_shape_print(const gp_shape *shape, char *text, size_t size);

/* ---- tensors ------------------------------------------------------------------------------- */

/* A view of reference-counted storage, on the host or on a GPU. Immutable but for its elements. */
typedef struct gp_tensor gp_tensor;

/* Make a contiguous tensor; its elements are zero. Errors: GP_ESHAPE, GP_EDTYPE. */
gp_status gp_tensor_new(gp_dtype dtype, const gp_shape *shape, gp_tensor **tensor);
/* Make another view (meta copied) of the same storage, which both keep alive. Errors: GP_ESHAPE if
 * it leaves the storage, GP_EINVAL if elements would not be aligned. */
gp_status gp_tensor_view(gp_tensor *base, const gp_meta *meta, gp_tensor **tensor);
/* Make a scalar view of the element at flat row-major position `index`, which the
 * caller has checked. */
gp_status gp_tensor_element(gp_tensor *tensor, int64_t index, gp_tensor **scalar);
gp_tensor *gp_tensor_retain(gp_tensor *tensor);
void gp_tensor_free(gp_tensor *tensor); /* gives one reference back */

const gp_meta *gp_tensor_meta(const gp_tensor *tensor); /* borrowed from the tensor */
int64_t gp_tensor_numel(const gp_tensor *tensor);
/* Address of element 0, offset applied; the host cannot use that of a tensor on a GPU. */
void *gp_tensor_data(const gp_tensor *tensor);
const char *gp_tensor_device(const gp_tensor *tensor); /* "cpu", "cuda:0" */
bool gp_tensor_is_host(const gp_tensor *tensor);
/* The values on another device: the tensor itself (retained) where it is there already, else a
 * contiguous copy. device: "cpu", "cuda:1". Errors: GP_EINVAL for no such name; GP_EDEVICE with
 * what is missing. */
gp_status gp_tensor_move(gp_tensor *tensor, const char *device, gp_tensor **moved);
bool gp_tensor_is_contiguous(const gp_tensor *tensor);
size_t gp_tensor_bytes(const gp_tensor *tensor); /* bytes of the whole storage it keeps alive */
/* Mix the values into a hash: those at either end of a tensor, enough to tell two batches apart.
 * Values that lie apart, or where the host cannot read them, do not count. */
uint64_t gp_tensor_hash(const gp_tensor *tensor, uint64_t hash);
bool gp_tensor_overlaps(const gp_tensor *a, const gp_tensor *b); /* same storage */
/* Tell whether another tensor is a view of the same storage. */
bool gp_tensor_is_shared(const gp_tensor *tensor);
/* Compare shape, dtype and every bit; on the host. */
bool gp_tensor_equal(const gp_tensor *a, const gp_tensor *b);

/* Copy elements with conversion: floats round to nearest even, become integers by truncation.
 * Shapes: equal. Errors: GP_ESHAPE. */
gp_status gp_tensor_copy(gp_tensor *to, const gp_tensor *from);
/* Read or write the element at flat row-major position `index` of a tensor on the host: 0-based and
 * in range, which is the caller's to check. Integers keep 64 bits. Cost: a division per dimension;
 * for single elements. */
double gp_tensor_get_double(const gp_tensor *tensor, int64_t index);
int64_t gp_tensor_get_int(const gp_tensor *tensor, int64_t index);
void gp_tensor_set_double(gp_tensor *tensor, int64_t index, double value);
void gp_tensor_set_int(gp_tensor *tensor, int64_t index, int64_t value);

#endif
