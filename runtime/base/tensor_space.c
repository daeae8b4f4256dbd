/* base/tensor_space.c - tensors whose memory the host cannot read: they are made, brought to the
 * host and taken back.
 *
 * Whatever looks at values or converts them is done on the host with the bytes that a view
 * touches: scripts print, load and save this way, training moves no tensor so. Only plain copies
 * within a device stay there. */
#include "base/memory.h"
#include "base/tensor.h"

/* ---- making -------------------------------------------------------------------------------- */

/* What a storage releases when its last tensor goes. */
typedef struct owned {
  gp_space *space;
  void *memory;
  size_t bytes;
  bool room; /* made by the space's room */
} owned;

static void give_back(void *context) {
  owned *o = context;
  (o->room ? o->space->leave : o->space->free)(o->space, o->memory, o->bytes);
  gp_free(o);
}

static gp_status make(gp_space *space, bool room, gp_dtype dtype, const gp_shape *shape,
                      gp_tensor **tensor) {
  gp_meta meta;
  owned *o;
  GP_TRY(gp_meta_make(dtype, shape, &meta));
  GP_TRY(gp_alloc(sizeof *o, (void **)&o));
  gp_extent memory = {
      .bytes = gp_meta_bytes(&meta), .space = space, .release = give_back, .context = o};
  *o = (owned){.space = space, .bytes = memory.bytes, .room = room};
  gp_status status = (room ? space->room : space->alloc)(space, memory.bytes, &o->memory);
  if (status) return gp_free(o), status;
  memory.data = o->memory;
  status = gp_tensor_wrap(&meta, &memory, tensor);
  if (status) give_back(o);
  return status;
}

gp_status gp_tensor_new_at(gp_space *space, gp_dtype dtype, const gp_shape *shape,
                           gp_tensor **tensor) {
  return space ? make(space, false, dtype, shape, tensor) : gp_tensor_new(dtype, shape, tensor);
}

gp_status gp_tensor_room_at(gp_space *space, gp_dtype dtype, const gp_shape *shape,
                            gp_tensor **tensor) {
  return space ? make(space, true, dtype, shape, tensor) : gp_tensor_new(dtype, shape, tensor);
}

/* ---- to the host and back ------------------------------------------------------------------ */

/* A copy on the host of the bytes that a view touches. */
typedef struct window {
  char *bytes;
  size_t size;
  void *there;   /* in the space */
  void *element; /* the first element, on the host */
} window;

/* reads: the bytes are wanted. */
static gp_status open_window(const gp_tensor *tensor, bool reads, window *w) {
  uintptr_t range[2];
  gp_space *space = gp_tensor_space(tensor);
  gp_tensor_range(tensor, range);
  w->size = range[1] - range[0];
  w->there = (void *)range[0];
  GP_TRY(gp_alloc(w->size, (void **)&w->bytes));
  w->element = w->bytes + ((uintptr_t)gp_tensor_data(tensor) - range[0]);
  gp_status status = reads ? space->read(space, w->bytes, w->there, w->size) : GP_OK;
  if (status) gp_free(w->bytes);
  return status;
}

/* Write a host view into a tensor elsewhere: the bytes between the tensor's elements stay. */
static gp_status put(gp_tensor *to, const gp_tensor *from) {
  window w;
  gp_space *space = gp_tensor_space(to);
  const gp_meta *meta = gp_tensor_meta(to);
  const bool dense = gp_meta_is_contiguous(meta) || gp_meta_is_channels_last(meta);
  GP_TRY(open_window(to, !dense, &w));
  gp_view_copy(meta, w.element, gp_tensor_meta(from), gp_tensor_data(from));
  gp_status status = space->write(space, w.there, w.bytes, w.size);
  gp_free(w.bytes);
  return status;
}

/* Can the device copy the bytes itself? The two must lie there in the same order, apart. */
static bool is_plain_copy(const gp_tensor *to, const gp_tensor *from) {
  uintptr_t x[2], y[2];
  if (gp_tensor_space(to) != gp_tensor_space(from)) return false;
  if (gp_tensor_meta(to)->dtype != gp_tensor_meta(from)->dtype) return false;
  if (!gp_tensor_is_contiguous(to) || !gp_tensor_is_contiguous(from)) return false;
  gp_tensor_range(to, x);
  gp_tensor_range(from, y);
  return x[1] <= y[0] || y[1] <= x[0];
}

/* Through the host, the source is read whole before anything is written: so the two may be views
 * of the same memory. */
gp_status gp_space_copy(gp_tensor *to, const gp_tensor *from) {
  gp_tensor *here;
  gp_space *space = gp_tensor_space(to);
  if (is_plain_copy(to, from))
    return space->copy(space, gp_tensor_data(to), gp_tensor_data(from),
                       gp_meta_bytes(gp_tensor_meta(to)));
  GP_TRY(gp_tensor_fetch(from, &here));
  gp_status status = gp_tensor_space(to) ? put(to, here) : gp_tensor_copy(to, here);
  gp_tensor_free(here);
  return status;
}

gp_status gp_tensor_fetch(const gp_tensor *tensor, gp_tensor **host) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  window w;
  gp_tensor *made;
  if (!gp_tensor_space(tensor)) return *host = gp_tensor_retain((gp_tensor *)tensor), GP_OK;
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &made));
  if (gp_tensor_numel(tensor) == 0) return *host = made, GP_OK;
  gp_status status = open_window(tensor, true, &w);
  if (status) return gp_tensor_free(made), status;
  gp_view_copy(gp_tensor_meta(made), gp_tensor_data(made), meta, w.element);
  gp_free(w.bytes);
  *host = made;
  return GP_OK;
}

/* Take a contiguous host tensor into the space as it lies. */
static gp_status take_there(const gp_tensor *tensor, gp_space *space, gp_tensor **moved) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  gp_tensor *made;
  GP_TRY(gp_tensor_room_at(space, meta->dtype, &meta->shape, &made));
  gp_status status =
      space->write(space, gp_tensor_data(made), gp_tensor_data(tensor), gp_meta_bytes(meta));
  if (status) return gp_tensor_free(made), status;
  *moved = made;
  return GP_OK;
}

gp_status gp_tensor_to(gp_tensor *tensor, gp_space *space, gp_tensor **moved) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  gp_tensor *made;
  if (gp_tensor_space(tensor) == space) return *moved = gp_tensor_retain(tensor), GP_OK;
  if (!space) return gp_tensor_fetch(tensor, moved);
  if (gp_tensor_is_host(tensor) && gp_tensor_is_contiguous(tensor))
    return take_there(tensor, space, moved);
  GP_TRY(gp_tensor_new_at(space, meta->dtype, &meta->shape, &made));
  gp_status status = gp_tensor_copy(made, tensor);
  if (status) return gp_tensor_free(made), status;
  *moved = made;
  return GP_OK;
}

const char *gp_tensor_device(const gp_tensor *tensor) {
  return gp_space_name(gp_tensor_space(tensor));
}

bool gp_tensor_is_host(const gp_tensor *tensor) { return !gp_tensor_space(tensor); }
