/* io/records/curve.c - a column as the points of a picture.
 *
 * A picture has a thousand places, a column may have a million values: the values at one place
 * become one point with their minimum, maximum and mean. If a column has no more values than there
 * are places, each value is a point. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "io/records/records.h"

/* The source of x: the steps, or the times that a clock column gives them. */
typedef struct axis {
  const double *step, *time; /* the clock's, [count] */
  size_t count, at;
  double zero; /* the time that counts as 0 */
} axis;

static gp_status open_axis(const gp_records *clock, axis *a) {
  size_t column;
  *a = (axis){0};
  if (!clock) return GP_OK;
  bool spent = gp_records_find(clock, "seconds", &column);
  if (spent || gp_records_find(clock, "time", &column))
    a->count = gp_records_column(clock, column, &a->step, &a->time);
  if (!a->count) return gp_fail(GP_EFORMAT, "%s: no record has a time", clock->path);
  a->zero = spent ? 0 : a->time[0];
  return GP_OK;
}

/* The x of a step. Between two records of the clock, time passes evenly; outside it stands still.
 * Steps ascend, so the search starts at the last place. */
static double place(axis *a, double step) {
  if (!a->count) return step;
  if (step < a->step[a->at]) a->at = 0;
  while (a->at + 1 < a->count && a->step[a->at + 1] <= step) a->at++;
  double from = a->time[a->at], since = step - a->step[a->at];
  if (a->at + 1 < a->count && since > 0) {
    double share = since / (a->step[a->at + 1] - a->step[a->at]);
    from += share * (a->time[a->at + 1] - a->time[a->at]);
  }
  return from - a->zero;
}

/* ---- smoothing ------------------------------------------------------------------------------ */

typedef struct mean {
  double keep, sum, weight;
} mean;

static double smooth(mean *m, double value) {
  m->sum = m->keep * m->sum + (1 - m->keep) * value;
  m->weight = m->keep * m->weight + (1 - m->keep);
  return m->sum / m->weight;
}

/* ---- points --------------------------------------------------------------------------------- */

static bool is_shown(double value, bool positive) {
  return isfinite(value) && (!positive || value > 0);
}

/* The range of x and the number of the values that are shown; false if there are none. */
static bool range_of(const double *step, const double *value, size_t n, axis *a, bool positive,
                     double range[2], size_t *shown) {
  *shown = 0;
  for (size_t i = 0; i < n; i++) {
    if (!is_shown(value[i], positive)) continue;
    double x = place(a, step[i]);
    if (!(*shown)++) range[0] = range[1] = x;
    if (x < range[0]) range[0] = x;
    if (x > range[1]) range[1] = x;
  }
  return *shown > 0;
}

/* Add a value to a point. Until the end x and mean are sums, and *held counts the values. */
static void put(gp_curve_point *point, size_t *held, double x, double value, double smoothed) {
  if (!(*held)++) *point = (gp_curve_point){.low = value, .high = value};
  if (value < point->low) point->low = value;
  if (value > point->high) point->high = value;
  point->x += x;
  point->mean += value;
  point->smooth = smoothed;
}

static size_t close_points(gp_curve_point *points, const size_t *held, size_t most) {
  size_t count = 0;
  for (size_t i = 0; i < most; i++) {
    if (!held[i]) continue;
    gp_curve_point point = points[i];
    point.x /= (double)held[i];
    point.mean /= (double)held[i];
    points[count++] = point;
  }
  return count;
}

gp_status gp_records_curve(const gp_records *records, size_t column, const gp_curve_rule *rule,
                           gp_curve_point *points, size_t *count, size_t *left_out) {
  const double *step, *value;
  size_t n = gp_records_column(records, column, &step, &value), shown = 0, next = 0;
  double range[2] = {0, 0};
  axis a;
  GP_TRY(open_axis(rule->clock, &a));
  bool any = range_of(step, value, n, &a, rule->positive, range, &shown);
  *left_out = n - shown;
  *count = 0;
  if (!any) return GP_OK;
  void *memory = NULL;
  GP_TRY(gp_alloc_array(rule->most, sizeof(size_t), &memory));
  size_t *held = memory;
  bool each = shown <= rule->most || range[1] <= range[0];
  double scale = each ? 0 : (double)rule->most / (range[1] - range[0]);
  mean m = {.keep = rule->smoothing};
  for (size_t i = 0; i < n; i++) {
    if (!is_shown(value[i], rule->positive)) continue;
    double x = place(&a, step[i]), smoothed = smooth(&m, value[i]);
    size_t at = each ? next++ : (size_t)((x - range[0]) * scale);
    if (at >= rule->most) at = rule->most - 1;
    put(&points[at], &held[at], x, value[i], smoothed);
  }
  *count = close_points(points, held, rule->most);
  gp_free(held);
  return GP_OK;
}
