/* gpipe/attrs.h - the attributes of ops: what an op needs beside its operands, by name.
 *
 * Every row of ops.def with attributes makes a struct here, so that C and CUDA read
 * `attr->matmul.transpose_a`, and `(gp_attrs){.matmul = {.transpose_a = true}}` writes it. What a
 * caller leaves out is 0; gp_attrs_default (gpipe/contract.h) has the defaults of the row instead.
 * Callers that know an op by number alone (Lua, tests) go through its contract. */
#ifndef GP_PUBLIC_ATTRS_H
#define GP_PUBLIC_ATTRS_H

#include "gpipe/tensor.h"

typedef enum gp_gelu_mode { GP_GELU_ERF, GP_GELU_TANH } gp_gelu_mode;
/* How one image becomes another of a different size: pooling windows, sampling, padding. */
typedef enum gp_resample_mode {
  GP_RESAMPLE_WINDOW,
  GP_RESAMPLE_ADAPTIVE,
  GP_RESAMPLE_NEAREST,
  GP_RESAMPLE_BILINEAR,
  GP_RESAMPLE_ZERO,
  GP_RESAMPLE_REFLECT
} gp_resample_mode;

/* An integer that may be absent. */
typedef struct gp_maybe {
  bool given;
  int64_t value;
} gp_maybe;

/* One integer per dimension: an order, strides, paddings. */
typedef struct gp_list {
  int count;
  int64_t at[GP_MAX_RANK];
} gp_list;

#define GP_NO_ATTRS                           int64_t none;
#define GP_INT(name, otherwise)               int64_t name;
#define GP_MAYBE(name)                        gp_maybe name;
#define GP_FLAG(name)                         bool name;
#define GP_REAL(name, otherwise, least, most) double name;
#define GP_DTYPE(name)                        gp_dtype name;
#define GP_CHOICE(name, type, names)          type name;
#define GP_DIM(name)                          int64_t name;
#define GP_DIMS(name)                         int64_t name;
#define GP_SHAPE(name)                        gp_shape name;
#define GP_LIST(name)                         gp_list name;

#define GP_OP(name, operands, outputs, attributes, flags, text)                                    \
  typedef struct gp_attr_##name {                                                                  \
    attributes                                                                                     \
  } gp_attr_##name;
#include "ops/rows.def"
#undef GP_OP

typedef struct gp_attrs {
  uint32_t random; /* the number of a random op in its trace, set by the tracer */
  union {
#define GP_OP(name, operands, outputs, attributes, flags, text) gp_attr_##name name;
#include "ops/rows.def"
#undef GP_OP
  };
} gp_attrs;

#undef GP_NO_ATTRS
#undef GP_INT
#undef GP_MAYBE
#undef GP_FLAG
#undef GP_REAL
#undef GP_DTYPE
#undef GP_CHOICE
#undef GP_DIM
#undef GP_DIMS
#undef GP_SHAPE
#undef GP_LIST

#endif
