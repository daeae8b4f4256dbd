/* base/tensor_copy.c - strided copies with conversion.
 *
 * A copy is first put into its simplest form: dimensions of size 1 are dropped, the rest are
 * ordered by the destination's strides, and neighbours that are one run in both views are
 * merged. Two contiguous views become a single line. The axes that are left are walked
 * recursively; when lines are dense in the destination but not in the source (a transposition),
 * tiles keep both in the cache. */
#include <stdlib.h>
#include <string.h>

#include "base/numbers/convert.h"
#include "base/tensor.h"
#include "base/turn.h"

enum { TILE = 32 }; /* lines x elements of a transposed tile: 32 cache lines on either side */

/* One dimension of a copy; strides in elements. */
typedef struct axis {
  int64_t dim, to, from;
} axis;

typedef struct walk {
  int rank;
  axis axis[GP_MAX_RANK]; /* outermost first */
  gp_dtype to_dtype, from_dtype;
  int64_t to_size, from_size; /* bytes of an element */
} walk;

/* Insert an axis in descending order of the destination's stride; equal ones keep their order. */
static void add_axis(walk *w, axis a) {
  int place = w->rank++;
  while (place > 0 && llabs(w->axis[place - 1].to) < llabs(a.to)) {
    w->axis[place] = w->axis[place - 1];
    place--;
  }
  w->axis[place] = a;
}

static void merge_axes(walk *w) {
  int kept = 0;
  for (int i = 1; i < w->rank; i++) {
    axis *outer = &w->axis[kept], inner = w->axis[i];
    bool one_run = outer->to == inner.to * inner.dim && outer->from == inner.from * inner.dim;
    if (one_run)
      *outer = (axis){outer->dim * inner.dim, inner.to, inner.from};
    else
      w->axis[++kept] = inner;
  }
  w->rank = kept + 1;
}

/* Put the axis that is dense in the source beside the line, for tiles to work on. The order of the
 * other axes does not matter. */
static void bring_together(walk *w) {
  int last = w->rank - 1;
  if (last < 2 || w->axis[last].from == 1) return;
  for (int i = 0; i < last; i++) {
    axis dense = w->axis[i];
    if (dense.from != 1) continue;
    w->axis[i] = w->axis[last - 1];
    w->axis[last - 1] = dense;
    return;
  }
}

static walk plan_walk(const gp_meta *to, const gp_meta *from) {
  walk w = {.to_dtype = to->dtype,
            .from_dtype = from->dtype,
            .to_size = (int64_t)gp_dtype_size(to->dtype),
            .from_size = (int64_t)gp_dtype_size(from->dtype)};
  for (int i = 0; i < to->shape.rank; i++)
    if (to->shape.dim[i] != 1)
      add_axis(&w, (axis){to->shape.dim[i], to->stride[i], from->stride[i]});
  if (w.rank == 0) add_axis(&w, (axis){1, 1, 1});
  merge_axes(&w);
  bring_together(&w);
  return w;
}

static gp_line line_of(const char *data, int64_t stride, gp_dtype dtype) {
  return (gp_line){(void *)(uintptr_t)data, stride, dtype}; /* gp_convert writes only `to` */
}

static void copy_line(const walk *w, int64_t n, char *to, const char *from) {
  const axis *a = &w->axis[w->rank - 1];
  gp_convert(line_of(to, a->to, w->to_dtype), line_of(from, a->from, w->from_dtype), n);
}

/* Copy a tile of a transposition: height lines of the destination, width elements each. It is read
 * in the source's order into a small buffer first: rows that lie a power of two apart share a few
 * places in the cache and would push each other out. */
static void copy_tile(const walk *w, int64_t height, int64_t width, char *to, const char *from) {
  _Alignas(64) char buffer[TILE * TILE * 8];
  const axis *rows = &w->axis[w->rank - 2], *line = &w->axis[w->rank - 1];
  for (int64_t c = 0; c < width; c++)
    gp_convert(line_of(buffer + c * TILE * w->from_size, 1, w->from_dtype),
               line_of(from + c * line->from * w->from_size, 1, w->from_dtype), height);
  for (int64_t r = 0; r < height; r++)
    gp_convert(line_of(to + r * rows->to * w->to_size, line->to, w->to_dtype),
               line_of(buffer + r * w->from_size, TILE, w->from_dtype), width);
}

/* Copy the last two axes, tile by tile. */
static void copy_tiles(const walk *w, char *to, const char *from) {
  axis rows = w->axis[w->rank - 2], line = w->axis[w->rank - 1];
  for (int64_t r = 0; r < rows.dim; r += TILE)
    for (int64_t c = 0; c < line.dim; c += TILE) {
      int64_t height = r + TILE < rows.dim ? TILE : rows.dim - r;
      int64_t width = c + TILE < line.dim ? TILE : line.dim - c;
      copy_tile(w, height, width, to + (r * rows.to + c * line.to) * w->to_size,
                from + (r * rows.from + c * line.from) * w->from_size);
    }
}

/* ---- transposing elements of two and four bytes: weights, once in every step, and images ----- */

/* The side of a tile, and the pitch of its rows in the buffer: not a power of two. */
enum { SIDE = 64, PITCH = SIDE + 16 };

/* Copy the last two axes, tile by tile, without a conversion. The size is a constant where this is
 * called. */
__attribute__((always_inline)) static inline void copy_sized(const walk *w, int64_t size, char *to,
                                                             const char *from) {
  _Alignas(64) char buffer[SIDE * PITCH * 4];
  const axis rows = w->axis[w->rank - 2], line = w->axis[w->rank - 1];
  gp_turn tile = {.size = (size_t)size, .from_pitch = line.from, .to = buffer, .to_pitch = PITCH};
  for (int64_t r = 0; r < rows.dim; r += SIDE)
    for (int64_t c = 0; c < line.dim; c += SIDE) {
      tile.lines = r + SIDE < rows.dim ? SIDE : rows.dim - r;
      tile.width = c + SIDE < line.dim ? SIDE : line.dim - c;
      tile.from = from + (r + c * line.from) * size;
      gp_turn_tile(&tile);
      for (int64_t k = 0; k < tile.lines; k++)
        memcpy(to + ((r + k) * rows.to + c) * size, buffer + k * PITCH * size,
               (size_t)(tile.width * size));
    }
}

static void copy_turned(const walk *w, char *to, const char *from) {
  if (w->to_size == 4)
    copy_sized(w, 4, to, from);
  else
    copy_sized(w, 2, to, from);
}

static bool is_turned(const walk *w) {
  return w->to_dtype == w->from_dtype && (w->to_size == 4 || w->to_size == 2) &&
         w->axis[w->rank - 1].to == 1;
}

/* ---- walking --------------------------------------------------------------------------------- */

static bool is_transposition(const walk *w, int level) {
  return level == w->rank - 2 && w->axis[level].from == 1 && w->axis[level + 1].from != 1;
}

static void copy_level(const walk *w, int level, char *to, const char *from) {
  const axis *a = &w->axis[level];
  if (level == w->rank - 1) {
    copy_line(w, a->dim, to, from);
  } else if (is_transposition(w, level)) {
    (is_turned(w) ? copy_turned : copy_tiles)(w, to, from);
  } else {
    for (int64_t i = 0; i < a->dim; i++)
      copy_level(w, level + 1, to + i * a->to * w->to_size, from + i * a->from * w->from_size);
  }
}

void gp_view_copy(const gp_meta *to, void *to_data, const gp_meta *from, const void *from_data) {
  GP_ASSERT(gp_shape_equal(&to->shape, &from->shape));
  if (gp_meta_numel(to) == 0) return;
  walk w = plan_walk(to, from);
  copy_level(&w, 0, to_data, from_data);
}

/* ---- tensors ---- */

static bool is_broadcast(const gp_meta *meta) {
  for (int i = 0; i < meta->shape.rank; i++)
    if (meta->shape.dim[i] > 1 && meta->stride[i] == 0) return true;
  return false;
}

/* range[0] is the address of the first byte, range[1] that behind the last. */
void gp_tensor_range(const gp_tensor *tensor, uintptr_t range[2]) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  int64_t size = (int64_t)gp_dtype_size(meta->dtype), low = 0, high = size;
  for (int i = 0; i < meta->shape.rank; i++) {
    int64_t reach = meta->stride[i] * (meta->shape.dim[i] - 1) * size;
    *(reach < 0 ? &low : &high) += reach;
  }
  range[0] = (uintptr_t)gp_tensor_data(tensor) + (uintptr_t)low;
  range[1] = (uintptr_t)gp_tensor_data(tensor) + (uintptr_t)high;
}

/* Two views of one arena may have no byte in common. */
static bool may_share_bytes(const gp_tensor *a, const gp_tensor *b) {
  uintptr_t x[2], y[2];
  gp_tensor_range(a, x);
  gp_tensor_range(b, y);
  return x[0] < y[1] && y[0] < x[1];
}

/* Copy through a contiguous tensor, since the two views share memory. */
static gp_status copy_apart(gp_tensor *to, const gp_tensor *from) {
  const gp_meta *meta = gp_tensor_meta(from);
  gp_tensor *apart;
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &apart));
  const gp_meta *apart_meta = gp_tensor_meta(apart);
  gp_view_copy(apart_meta, gp_tensor_data(apart), meta, gp_tensor_data(from));
  gp_view_copy(gp_tensor_meta(to), gp_tensor_data(to), apart_meta, gp_tensor_data(apart));
  gp_tensor_free(apart);
  return GP_OK;
}

gp_status gp_tensor_copy(gp_tensor *to, const gp_tensor *from) {
  const gp_meta *a = gp_tensor_meta(to), *b = gp_tensor_meta(from);
  if (!gp_shape_equal(&a->shape, &b->shape)) {
    char wanted[128], is[128];
    return gp_fail(GP_ESHAPE, "copy: source is %s, expected %s",
                   gp_shape_print(&b->shape, is, sizeof is),
                   gp_shape_print(&a->shape, wanted, sizeof wanted));
  }
  if (is_broadcast(a))
    return gp_fail(GP_ESHAPE, "copy: the destination is broadcast, its elements share memory");
  if (gp_tensor_numel(to) == 0) return GP_OK;
  gp_tensor_touch(to);
  if (gp_tensor_space(to) || gp_tensor_space(from)) return gp_space_copy(to, from);
  if (may_share_bytes(to, from)) return copy_apart(to, from);
  gp_view_copy(a, gp_tensor_data(to), b, gp_tensor_data(from));
  return GP_OK;
}
