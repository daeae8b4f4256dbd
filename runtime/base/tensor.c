/* base/tensor.c - tensors: reference-counted views of reference-counted storage.
 *
 * Views are cheap and share storage. A storage knows how to release its memory, so that of an arena
 * or of a mapped file serves as well as memory of our own. Both counts are atomic: a worker may
 * drop the last reference. A view is checked against its storage once, when it is made. */
#include "base/tensor.h"

#include <stdatomic.h>
#include <string.h>

#include "base/numbers/convert.h"
#include "base/memory.h"

typedef struct storage {
  _Atomic int64_t references; /* tensors that are views of it */
  _Atomic uint64_t writes;    /* see gp_tensor_writes */
  gp_extent memory;
} storage;

struct gp_tensor {
  _Atomic int64_t references;
  gp_meta meta;
  int64_t numel;
  void *data; /* address of element 0 */
  storage *storage;
};

/* ---- bounds ---- */

/* Find the lowest and the highest element that a view touches, counted from the start of the
 * storage. Return false if 64 bits are not enough. */
static bool view_range(const gp_meta *meta, int64_t *lowest, int64_t *highest) {
  *lowest = *highest = meta->offset;
  for (int i = 0; i < meta->shape.rank; i++) {
    int64_t reach;
    if (__builtin_mul_overflow(meta->stride[i], meta->shape.dim[i] - 1, &reach)) return false;
    int64_t *end = reach < 0 ? lowest : highest;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  return true;
}

/* Check everything that could make a later access wrong: shape, bounds of the storage, alignment.
 * Metas come from mapped files and arenas too, so none is trusted. */
static gp_status check_view(const gp_meta *meta, const void *data, size_t bytes) {
  gp_meta contiguous; /* made only for its checks of shape and dtype */
  GP_TRY(gp_meta_make(meta->dtype, &meta->shape, &contiguous));
  size_t size = gp_dtype_size(meta->dtype);
  int64_t capacity = (int64_t)(bytes / size), lowest = 0, highest = 0;
  bool inside = gp_meta_numel(meta) == 0
                    ? meta->offset >= 0 && meta->offset <= capacity
                    : view_range(meta, &lowest, &highest) && lowest >= 0 && highest < capacity;
  char text[160];
  if (!inside)
    return gp_fail(GP_ESHAPE, "tensor: %s at element %lld leaves its storage of %zu bytes",
                   gp_meta_print(meta, text, sizeof text), (long long)meta->offset, bytes);
  if ((uintptr_t)data % size != 0)
    return gp_fail(GP_EINVAL, "tensor: memory of %s is not aligned to %zu bytes",
                   gp_meta_print(meta, text, sizeof text), size);
  return GP_OK;
}

/* ---- life ---- */

/* Make a tensor that takes over one reference of the storage. */
static gp_status make_tensor(storage *owner, const gp_meta *meta, gp_tensor **tensor) {
  void *memory;
  GP_TRY(gp_alloc(sizeof(gp_tensor), &memory));
  gp_tensor *t = memory;
  atomic_init(&t->references, 1);
  t->meta = *meta;
  t->numel = gp_meta_numel(meta);
  t->data = (char *)owner->memory.data + meta->offset * (int64_t)gp_dtype_size(meta->dtype);
  t->storage = owner;
  *tensor = t;
  return GP_OK;
}

/* Wrap the caller's memory. A failure releases nothing: the caller still has the memory. */
gp_status gp_tensor_wrap(const gp_meta *meta, const gp_extent *memory, gp_tensor **tensor) {
  GP_TRY(check_view(meta, memory->data, memory->bytes));
  void *block;
  GP_TRY(gp_alloc(sizeof(storage), &block));
  storage *owner = block;
  *owner = (storage){.memory = *memory};
  atomic_init(&owner->references, 1);
  gp_status status = make_tensor(owner, meta, tensor);
  if (status != GP_OK) gp_free(owner);
  return status;
}

gp_status gp_tensor_new(gp_dtype dtype, const gp_shape *shape, gp_tensor **tensor) {
  gp_meta meta;
  GP_TRY(gp_meta_make(dtype, shape, &meta));
  gp_extent memory = {.bytes = gp_meta_bytes(&meta), .release = gp_free};
  GP_TRY(gp_alloc(memory.bytes, &memory.data));
  memory.context = memory.data;
  gp_status status = gp_tensor_wrap(&meta, &memory, tensor);
  if (status != GP_OK) gp_free(memory.data);
  return status;
}

/* Count the storage up last, when nothing can fail any more. */
gp_status gp_tensor_view(gp_tensor *base, const gp_meta *meta, gp_tensor **tensor) {
  storage *owner = base->storage;
  GP_TRY(check_view(meta, owner->memory.data, owner->memory.bytes));
  GP_TRY(make_tensor(owner, meta, tensor));
  atomic_fetch_add_explicit(&owner->references, 1, memory_order_relaxed);
  return GP_OK;
}

/* Taking a reference orders nothing, since its taker holds one already. Giving one back does
 * (acq_rel): the thread that frees the memory must see what the others did to it. */
gp_tensor *gp_tensor_retain(gp_tensor *tensor) {
  atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
  return tensor;
}

static void drop_storage(storage *owner) {
  if (atomic_fetch_sub_explicit(&owner->references, 1, memory_order_acq_rel) > 1) return;
  if (owner->memory.release) owner->memory.release(owner->memory.context);
  gp_free(owner);
}

void gp_tensor_free(gp_tensor *tensor) {
  if (!tensor) return;
  if (atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1) return;
  drop_storage(tensor->storage);
  gp_free(tensor);
}

/* ---- facts ---- */

const gp_meta *gp_tensor_meta(const gp_tensor *tensor) { return &tensor->meta; }

int64_t gp_tensor_numel(const gp_tensor *tensor) { return tensor->numel; }

void *gp_tensor_data(const gp_tensor *tensor) { return tensor->data; }

bool gp_tensor_is_contiguous(const gp_tensor *tensor) {
  return gp_meta_is_contiguous(&tensor->meta);
}

size_t gp_tensor_bytes(const gp_tensor *tensor) { return tensor->storage->memory.bytes; }

gp_space *gp_tensor_space(const gp_tensor *tensor) { return tensor->storage->memory.space; }

uint64_t gp_tensor_writes(const gp_tensor *tensor) {
  return atomic_load_explicit(&tensor->storage->writes, memory_order_relaxed);
}

/* This is no atomic addition, which would slow single elements down: scripts write on one
 * thread. */
void gp_tensor_touch(gp_tensor *tensor) {
  atomic_store_explicit(&tensor->storage->writes, gp_tensor_writes(tensor) + 1,
                        memory_order_relaxed);
}

bool gp_tensor_is_shared(const gp_tensor *tensor) {
  return atomic_load(&tensor->storage->references) > 1;
}

bool gp_tensor_overlaps(const gp_tensor *a, const gp_tensor *b) { return a->storage == b->storage; }

/* ---- elements ---- */

/* Find the element at flat row-major position index, counted from element 0. */
static int64_t place_of(const gp_tensor *tensor, int64_t index) {
  GP_ASSERT(index >= 0 && index < tensor->numel);
  const gp_meta *meta = &tensor->meta;
  int64_t place = 0;
  for (int i = meta->shape.rank - 1; i >= 0; i--) {
    place += index % meta->shape.dim[i] * meta->stride[i];
    index /= meta->shape.dim[i];
  }
  return place;
}

/* Return that element as a line of one. */
static gp_line element(const gp_tensor *tensor, int64_t index) {
  GP_ASSERT(!gp_tensor_space(tensor));
  int64_t size = (int64_t)gp_dtype_size(tensor->meta.dtype);
  char *data = (char *)tensor->data + place_of(tensor, index) * size;
  return (gp_line){data, 1, tensor->meta.dtype};
}

gp_status gp_tensor_element(gp_tensor *tensor, int64_t index, gp_tensor **scalar) {
  gp_meta meta = {.dtype = tensor->meta.dtype};
  meta.offset = tensor->meta.offset + place_of(tensor, index);
  return gp_tensor_view(tensor, &meta, scalar);
}

/* Read by the conversion loop with n = 1: elements and tensors have one set of rounding rules. */
double gp_tensor_get_double(const gp_tensor *tensor, int64_t index) {
  double value;
  gp_convert((gp_line){&value, 1, GP_F64}, element(tensor, index), 1);
  return value;
}

int64_t gp_tensor_get_int(const gp_tensor *tensor, int64_t index) {
  int64_t value;
  gp_convert((gp_line){&value, 1, GP_I64}, element(tensor, index), 1);
  return value;
}

void gp_tensor_set_double(gp_tensor *tensor, int64_t index, double value) {
  gp_tensor_touch(tensor);
  gp_convert(element(tensor, index), (gp_line){&value, 1, GP_F64}, 1);
}

void gp_tensor_set_int(gp_tensor *tensor, int64_t index, int64_t value) {
  gp_tensor_touch(tensor);
  gp_convert(element(tensor, index), (gp_line){&value, 1, GP_I64}, 1);
}

/* Compare dimensions level.. of two views at the given addresses. */
static bool equal_level(const gp_tensor *a, const gp_tensor *b, int level, const char *x,
                        const char *y) {
  size_t size = gp_dtype_size(a->meta.dtype);
  if (level == a->meta.shape.rank) return memcmp(x, y, size) == 0;
  int64_t step_x = a->meta.stride[level] * (int64_t)size;
  int64_t step_y = b->meta.stride[level] * (int64_t)size;
  for (int64_t i = 0; i < a->meta.shape.dim[level]; i++)
    if (!equal_level(a, b, level + 1, x + i * step_x, y + i * step_y)) return false;
  return true;
}

bool gp_tensor_equal(const gp_tensor *a, const gp_tensor *b) {
  GP_ASSERT(!gp_tensor_space(a) && !gp_tensor_space(b));
  if (!gp_meta_equal(&a->meta, &b->meta)) return false;
  if (a->numel == 0) return true;
  if (gp_tensor_is_contiguous(a) && gp_tensor_is_contiguous(b))
    return memcmp(a->data, b->data, gp_meta_bytes(&a->meta)) == 0;
  return equal_level(a, b, 0, a->data, b->data);
}
