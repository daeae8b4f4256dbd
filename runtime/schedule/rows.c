/* schedule/rows.c - lists of actions under construction: what generators append to.
 *
 * A schedule of a thousand devices has millions of actions; here each costs 16 bytes, where a Lua
 * table would cost a hundred.
 */
#include <string.h>

#include "base/memory.h"
#include "schedule/schedule.h"

typedef struct row {
  gp_action *actions;
  int32_t count;
  size_t room;
} row;

struct gp_rows {
  int32_t device_count;
  row *rows;
};

gp_status gp_rows_new(int device_count, gp_rows **rows) {
  gp_rows *made;
  if (device_count < 1)
    return gp_fail(GP_ERANGE, "schedule: %d devices, expected at least one", device_count);
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->device_count = device_count;
  gp_status status = gp_alloc_array((size_t)device_count, sizeof(row), (void **)&made->rows);
  if (status) return gp_rows_free(made), status;
  *rows = made;
  return GP_OK;
}

void gp_rows_free(gp_rows *rows) {
  if (!rows) return;
  for (int32_t d = 0; rows->rows && d < rows->device_count; d++) gp_free(rows->rows[d].actions);
  gp_free(rows->rows);
  gp_free(rows);
}

int gp_rows_device_count(const gp_rows *rows) { return rows->device_count; }

/* The room doubles, so appending n actions copies fewer than 2n. */
static gp_status grow(row *r) {
  size_t room = r->room ? 2 * r->room : 4;
  if (r->count == INT32_MAX) return gp_fail(GP_ERANGE, "schedule: too many actions for a device");
  GP_TRY(gp_resize_array(r->room, room, sizeof(gp_action), (void **)&r->actions));
  r->room = room;
  return GP_OK;
}

/* Only the device is checked. The verifier checks actions later, because it can show where a wrong
 * one stands. */
gp_status gp_rows_add(gp_rows *rows, int device, const gp_action *action) {
  if (device < 0 || device >= rows->device_count)
    return gp_fail(GP_ERANGE, "schedule: device %d, expected 0..%d", device,
                   (int)rows->device_count - 1);
  row *r = &rows->rows[device];
  if ((size_t)r->count == r->room) GP_TRY(grow(r));
  r->actions[r->count++] = *action;
  return GP_OK;
}

gp_status gp_rows_append(gp_rows *rows, int device, const gp_action *actions, int32_t count) {
  row *r = &rows->rows[device];
  const size_t room = (size_t)r->count + (size_t)count;
  if (room > INT32_MAX) return gp_fail(GP_ERANGE, "schedule: too many actions for a device");
  if (room > r->room) {
    GP_TRY(gp_resize_array(r->room, room, sizeof(gp_action), (void **)&r->actions));
    r->room = room;
  }
  if (count) memcpy(&r->actions[r->count], actions, (size_t)count * sizeof *actions);
  r->count += count;
  return GP_OK;
}

const gp_action *gp_rows_get(const gp_rows *rows, int device, int *count) {
  *count = rows->rows[device].count;
  return rows->rows[device].actions;
}
