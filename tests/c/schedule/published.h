/* tests/c/schedule/published.h - the published schedules for many sizes, read from the text that
 * tests/support/published_rows.lua writes when the tests are built. */
#ifndef GP_TEST_PUBLISHED_H
#define GP_TEST_PUBLISHED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule.h"

enum { PUBLISHED_LINE = 8192 };

typedef struct published {
  FILE *file;
  char name[64], line[PUBLISHED_LINE];
  int devices, micros;
} published;

static inline gp_status published_rows(published *p, gp_schedule_spec *spec, gp_rows *rows,
                                       gp_schedule **schedule) {
  for (int d = 0; d < p->devices; d++) {
    if (!fgets(p->line, sizeof p->line, p->file)) return gp_fail(GP_EIO, "a row is missing");
    p->line[strcspn(p->line, "\n")] = 0;
    GP_TRY(gp_rows_read(rows, d, p->line, NULL));
  }
  spec->rows = rows;
  return gp_schedule_new(spec, schedule, NULL);
}

/* Read the next schedule; *schedule is NULL behind the last one. */
static inline gp_status published_next(published *p, gp_schedule **schedule) {
  gp_schedule_spec spec = {.copy_count = 0};
  int32_t placement[64];
  gp_rows *rows;
  *schedule = NULL;
  if (fscanf(p->file, "%d %d %d %d %d %63s", &p->devices, &spec.stage_count, &spec.copy_count,
             &spec.batch, &p->micros, p->name) != 6)
    return GP_OK;
  for (int i = 0; i < spec.stage_count * spec.copy_count; i++)
    if (i == 64 || fscanf(p->file, "%d", &placement[i]) != 1)
      return gp_fail(GP_EIO, "%s: no placement of 64 stages at most", p->name);
  if (!fgets(p->line, sizeof p->line, p->file)) return gp_fail(GP_EIO, "%s: no rows", p->name);
  spec.placement = placement;
  GP_TRY(gp_rows_new(p->devices, &rows));
  gp_status status = published_rows(p, &spec, rows, schedule);
  gp_rows_free(rows);
  return status;
}

#endif
