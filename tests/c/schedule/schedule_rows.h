/* tests/c/schedule/schedule_rows.h - schedules of rows of text, as tests write them. */
#ifndef GP_TEST_SCHEDULE_ROWS_H
#define GP_TEST_SCHEDULE_ROWS_H

#include "schedule/schedule.h"

/* One row per device, one device per stage. */
static inline gp_status schedule_of_rows(const gp_schedule_spec *from, const char *const *texts,
                                         int devices, gp_schedule **schedule,
                                         gp_schedule_fault *fault) {
  gp_schedule_spec spec = *from;
  gp_rows *rows = NULL;
  int position = -1;
  GP_TRY(gp_rows_new(devices, &rows));
  gp_status status = GP_OK;
  for (int d = 0; !status && d < devices; d++) {
    status = gp_rows_read(rows, d, texts[d], &position);
    if (status && fault) *fault = (gp_schedule_fault){"text", d, position};
  }
  spec.rows = rows;
  if (!spec.copy_count) spec.copy_count = 1;
  if (!status) status = gp_schedule_new(&spec, schedule, fault);
  gp_rows_free(rows);
  return status;
}

#endif
