/* io/items/rows.c - rows of tensors, and windows of ids, as items. */
#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/data.h"
#include "gpipe/gather.h"
#include "io/items/items.h"

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct rows {
  gp_items items;
  gp_tensor *x, *y;
} rows;

static gp_status make_rows(const gp_items *items, const gp_items_call *call, gp_tensor **x,
                           gp_tensor **y) {
  const rows *r = (const rows *)items;
  gp_tensor *first;
  GP_TRY(gp_data_rows(r->x, call->positions, &first));
  gp_status status = gp_data_rows(r->y, call->positions, y);
  if (status)
    gp_tensor_free(first);
  else
    *x = first;
  return status;
}

static void release_rows(gp_items *items) {
  rows *r = (rows *)items;
  gp_tensor_free(r->x);
  gp_tensor_free(r->y);
}

static const gp_items_ops rows_ops = {.make = make_rows, .release = release_rows};

gp_status gp_items_rows(gp_tensor *x, gp_tensor *y, gp_items **items) {
  const gp_shape *a = &gp_tensor_meta(x)->shape, *b = &gp_tensor_meta(y)->shape;
  if (!a->rank || !b->rank || a->dim[0] != b->dim[0])
    return gp_fail(GP_ESHAPE, "items: x and y do not have the same number of rows");
  GP_TRY(gp_items_new(&rows_ops, sizeof(rows), a->dim[0], items));
  rows *r = (rows *)*items;
  r->x = gp_tensor_retain(x);
  r->y = gp_tensor_retain(y);
  return GP_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct windows {
  gp_items items;
  gp_windows rule; /* bytes is retained, path owned */
  char *path;
} windows;

static gp_status make_windows(const gp_items *items, const gp_items_call *call, gp_tensor **x,
                              gp_tensor **y) {
  const windows *w = (const windows *)items;
  if (w->path) GP_TRY(gp_file_unchanged(w->path, gp_tensor_numel(w->rule.bytes)));
  gp_tensor *starts = NULL;
  GP_TRY(gp_tensor_new(GP_I64, &(gp_shape){.rank = 1, .dim = {call->n}}, &starts));
  int64_t *start = gp_tensor_data(starts);
  for (int64_t i = 0; i < call->n; i++) start[i] = call->at[i] * w->rule.stride;
  gp_status status = gp_data_windows(w->rule.bytes, w->rule.width, starts, w->rule.context, x, y);
  gp_tensor_free(starts);
  return status;
}

static void release_windows(gp_items *items) {
  windows *w = (windows *)items;
  gp_tensor_free(w->rule.bytes);
  gp_free(w->path);
}

static const gp_items_ops windows_ops = {.make = make_windows, .release = release_windows};

gp_status gp_items_windows(const gp_windows *rule, gp_items **items) {
  int64_t ids = rule->width > 0 ? gp_tensor_numel(rule->bytes) / rule->width : 0;
  if (rule->stride < 1 || rule->context < 1 || rule->count < 1 || ids <= rule->context ||
      rule->count - 1 > (ids - rule->context - 1) / rule->stride)
    return gp_fail(GP_ERANGE, "windows: %lld windows do not lie within %lld ids",
                   (long long)rule->count, (long long)ids);
  char *path = NULL;
  if (rule->path) GP_TRY(gp_copy_string(rule->path, &path));
  gp_status status = gp_items_new(&windows_ops, sizeof(windows), rule->count, items);
  if (status) {
    gp_free(path);
    return status;
  }
  windows *w = (windows *)*items;
  w->rule = *rule;
  w->rule.path = w->path = path;
  gp_tensor_retain(rule->bytes);
  return GP_OK;
}
