/* base/tensor.h - what internal code may do with shapes and tensors beside the public functions. */
#ifndef GP_BASE_TENSOR_H
#define GP_BASE_TENSOR_H

#include "base/space.h"
#include "base/status.h"
#include "gpipe/tensor.h"

/* Contiguous meta of a shape. Errors: GP_ESHAPE. */
gp_status gp_meta_make(gp_dtype dtype, const gp_shape *shape, gp_meta *meta);
/* Ignores the offset, and strides of dimensions of size 1. */
bool gp_meta_is_contiguous(const gp_meta *meta);
/* Four dimensions, N x C x H x W, that lie as N, H, W, C: set such strides, and tell whether a
 * dense value has them (strides of dimensions of size 1 say nothing). */
void gp_meta_set_channels_last(gp_meta *meta);
bool gp_meta_is_channels_last(const gp_meta *meta);
bool gp_meta_equal(const gp_meta *a, const gp_meta *b); /* dtype and shape, whatever the strides */
int64_t gp_meta_numel(const gp_meta *meta);             /* of a checked meta: cannot fail */
/* Multiply the dims before the last; 1 for rank 0 and 1. */
int64_t gp_meta_rows(const gp_meta *meta);
int64_t gp_meta_width(const gp_meta *meta);                        /* last dim; 1 for a scalar */
size_t gp_meta_bytes(const gp_meta *meta);                         /* numel * element size */
char *gp_meta_print(const gp_meta *meta, char *text, size_t size); /* "f32 32x128" */

/* Memory that belongs to another object. */
typedef struct gp_extent {
  void *data;
  size_t bytes;
  gp_space *space;                /* NULL: the host can read it */
  void (*release)(void *context); /* called when the last reference goes; NULL: it outlives us */
  void *context;
} gp_extent;

/* Make a tensor over such memory; on failure it stays the caller's. Errors: as gp_tensor_view. */
gp_status gp_tensor_wrap(const gp_meta *meta, const gp_extent *memory, gp_tensor **tensor);
/* As gp_tensor_new, in the space (NULL: on the host). */
gp_status gp_tensor_new_at(gp_space *space, gp_dtype dtype, const gp_shape *shape,
                           gp_tensor **tensor);
/* As gp_tensor_new_at, but the elements are any: the caller writes all of them. On the host they
 * are zeros. */
gp_status gp_tensor_room_at(gp_space *space, gp_dtype dtype, const gp_shape *shape,
                            gp_tensor **tensor);
gp_space *gp_tensor_space(const gp_tensor *tensor); /* NULL: the host */
/* Return the values in the space (NULL: on the host): the tensor itself (retained) if it is there
 * already, else a contiguous copy. */
gp_status gp_tensor_to(gp_tensor *tensor, gp_space *space, gp_tensor **moved);
/* The same for the host, also for a tensor that is borrowed as const. */
gp_status gp_tensor_fetch(const gp_tensor *tensor, gp_tensor **host);

/* Count how often scripts wrote to the storage since it was made: every gp_tensor_copy into one of
 * its views and every element that is set counts. Code that writes in another way on a script's
 * behalf calls touch. */
uint64_t gp_tensor_writes(const gp_tensor *tensor);
void gp_tensor_touch(gp_tensor *tensor);

/* Copy where one side is not on the host (base/tensor_space.c); shapes agree, there are
 * elements. */
gp_status gp_space_copy(gp_tensor *to, const gp_tensor *from);
/* The bytes that a view with elements touches: range[0] is the address of the first, range[1] that
 * behind the last. */
void gp_tensor_range(const gp_tensor *tensor, uintptr_t range[2]);

/* Strided copy with conversion between raw views of equal shape (the loop behind gp_tensor_copy and
 * the copy/cast ops). */
void gp_view_copy(const gp_meta *to, void *to_data, const gp_meta *from, const void *from_data);

/* bf16 and f16 bits <-> float, round to nearest even. */
float gp_bf16_to_float(uint16_t bits);
uint16_t gp_bf16_from_float(float value);
float gp_f16_to_float(uint16_t bits);
uint16_t gp_f16_from_float(float value);

#endif
