/* io/items/joined.c - items of several data sets one after the other, so that threads can load
 * joined data sets.
 *
 * Each part that has items in a batch makes them, and its rows are copied to their places. */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "io/items/items.h"

typedef struct joined {
  gp_items items;
  gp_items_part *part; /* [parts], items and order retained */
  int64_t *first;      /* [parts] the first item of each part, in the whole */
  size_t parts, room, first_room;
} joined;

/* The items of a batch that lie in one part. */
typedef struct share {
  const joined *of;
  const gp_items_call *call;
  size_t part;
  int64_t *row; /* [call->n]: their rows in the batch */
  int64_t rows;
} share;

/* ---- places ---------------------------------------------------------------------------------- */

static size_t part_of(const joined *j, int64_t at) {
  size_t low = 0, high = j->parts - 1;
  while (low < high) {
    size_t middle = low + (high - low + 1) / 2;
    if (j->first[middle] <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static int64_t place_of(const share *s, int64_t at) {
  const gp_items_part *part = &s->of->part[s->part];
  int64_t item = at - s->of->first[s->part];
  return part->base + (part->order ? ((int64_t *)gp_tensor_data(part->order))[item] - 1 : item);
}

static void find_rows(share *s) {
  s->rows = 0;
  for (int64_t i = 0; i < s->call->n; i++)
    if (part_of(s->of, s->call->at[i]) == s->part) s->row[s->rows++] = i;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Make the whole batch, once its first part is known. Errors: GP_ESHAPE if a part's rows have
 * another shape or dtype. */
static gp_status fit(const gp_tensor *rows, int64_t n, gp_tensor **whole) {
  const gp_meta *meta = gp_tensor_meta(rows);
  gp_shape shape = meta->shape;
  shape.dim[0] = n;
  if (!*whole) return gp_tensor_new(meta->dtype, &shape, whole);
  const gp_meta *has = gp_tensor_meta(*whole);
  if (has->dtype == meta->dtype && gp_shape_equal(&has->shape, &shape)) return GP_OK;
  char first[96], second[96];
  return gp_fail(GP_ESHAPE,
                 "gp.data.concat: batches of the data sets are %s %s and %s %s, expected one shape "
                 "and dtype",
                 gp_dtype_name(has->dtype), gp_shape_print(&has->shape, first, sizeof first),
                 gp_dtype_name(meta->dtype), gp_shape_print(&shape, second, sizeof second));
}

static gp_status put(const share *s, const gp_tensor *rows, gp_tensor **whole) {
  GP_TRY(fit(rows, s->call->n, whole));
  const char *from = gp_tensor_data(rows);
  char *to = gp_tensor_data(*whole);
  size_t bytes =
      (size_t)(gp_tensor_numel(rows) / s->rows) * gp_dtype_size(gp_tensor_meta(rows)->dtype);
  for (int64_t i = 0; i < s->rows && bytes; i++)
    memcpy(to + (size_t)s->row[i] * bytes, from + (size_t)i * bytes, bytes);
  return GP_OK;
}

static gp_status make_share(const share *s, gp_tensor **x, gp_tensor **y) {
  gp_tensor *positions = NULL, *inputs = NULL, *targets = NULL;
  GP_TRY(gp_tensor_new(GP_I64, &(gp_shape){.rank = 1, .dim = {s->rows}}, &positions));
  int64_t *at = gp_tensor_data(positions);
  for (int64_t i = 0; i < s->rows; i++) at[i] = place_of(s, s->call->at[s->row[i]]);
  gp_status status =
      gp_items_batch(s->of->part[s->part].items, positions, s->call->key, &inputs, &targets);
  if (!status) status = put(s, inputs, x);
  if (!status) status = put(s, targets, y);
  gp_tensor_free(positions);
  gp_tensor_free(inputs);
  gp_tensor_free(targets);
  return status;
}

static gp_status make(const gp_items *items, const gp_items_call *call, gp_tensor **x,
                      gp_tensor **y) {
  share s = {.of = (const joined *)items, .call = call};
  gp_tensor *inputs = NULL, *targets = NULL;
  void *rows = NULL;
  GP_TRY(gp_alloc_array((size_t)call->n + 1, sizeof(int64_t), &rows));
  s.row = rows;
  gp_status status = GP_OK;
  for (; s.part < s.of->parts && !status; s.part++) {
    find_rows(&s);
    if (s.rows) status = make_share(&s, &inputs, &targets);
  }
  gp_free(rows);
  if (status) {
    gp_tensor_free(inputs);
    gp_tensor_free(targets);
    return status;
  }
  *x = inputs;
  *y = targets;
  return GP_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(gp_items *items) {
  joined *j = (joined *)items;
  for (size_t i = 0; i < j->parts; i++) {
    gp_items_free(j->part[i].items);
    gp_tensor_free(j->part[i].order);
  }
  gp_free(j->part);
  gp_free(j->first);
}

static const gp_items_ops ops = {.make = make, .release = release};

static gp_status check_part(const gp_items_part *part) {
  const gp_meta *order = part->order ? gp_tensor_meta(part->order) : NULL;
  bool good = part->items && part->count > 0 && part->base >= 0 && part->count < INT64_MAX / 2;
  if (order)
    good = good && order->dtype == GP_I64 && order->shape.rank == 1 &&
           gp_tensor_is_contiguous(part->order) && gp_tensor_numel(part->order) >= part->count;
  return good ? GP_OK : gp_fail(GP_EINVAL, "gp.data.concat: a part without items or order");
}

gp_status gp_items_joined_new(gp_items **items) {
  return gp_items_new(&ops, sizeof(joined), 0, items);
}

/* The arrays grow first: once the part is added, nothing can fail any more. */
gp_status gp_items_joined_add(gp_items *items, const gp_items_part *part) {
  joined *j = (joined *)items;
  if (items->ops != &ops) return gp_fail(GP_EINVAL, "gp.data.concat: these items were not joined");
  GP_TRY(check_part(part));
  void *array = j->part;
  gp_status status = gp_grow_array(j->parts, &j->room, sizeof *j->part, &array);
  j->part = array;
  if (status) return status;
  array = j->first;
  status = gp_grow_array(j->parts, &j->first_room, sizeof *j->first, &array);
  j->first = array;
  if (status) return status;
  j->part[j->parts] = *part;
  gp_items_retain(part->items);
  if (part->order) gp_tensor_retain(part->order);
  j->first[j->parts++] = j->items.count;
  j->items.count += part->count;
  return GP_OK;
}
