/* gpipe/records.h - the records that a training run leaves (log.jsonl, timing.jsonl), as columns of
 * numbers and as the points of a picture. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_RECORDS_H
#define GP_PUBLIC_RECORDS_H

#include "gpipe/status.h"

/* One JSON object a line, each with a "step". Every other number is a value of the column with its
 * name; true and false are 1 and 0; null beside "nonfinite" is what that says, else NaN; the
 * elements of a list are columns "name[1]", "name[2]" ... Texts are left out. */
typedef struct gp_records gp_records;

/* Make the records of a file; reads nothing yet. */
gp_status gp_records_new(const char *path, gp_records **records);
void gp_records_free(gp_records *records);
/* Read what the file has beyond what was read before: whole lines, since a run that was killed, or
 * one that is writing, leaves half a line. *anew receives whether the file was cut or replaced, so
 * that all of it was read again. A file that is not there has no records. Lines that are no records
 * are skipped; gp_records_damage tells of them. Errors: GP_EIO; GP_EFORMAT for a line beyond 16 MiB
 * or more than 4096 columns. Cost: 16 bytes a value. */
gp_status gp_records_update(gp_records *records, bool *anew);

/* Count the lines that were skipped; *text receives which was the first and why. */
size_t gp_records_damage(const gp_records *records, const char **text);
size_t gp_records_count(const gp_records *records);
/* Count the columns; their order is that in which their names first came. */
size_t gp_records_columns(const gp_records *records);
const char *gp_records_name(const gp_records *records, size_t column);
/* Find the column of that name; false if there is none. */
bool gp_records_find(const gp_records *records, const char *name, size_t *column);
/* Count the values of a column; *steps and *values receive them in the order of the file, borrowed
 * until the next update. */
size_t gp_records_column(const gp_records *records, size_t column, const double **steps,
                         const double **values);

/* ---- pictures ------------------------------------------------------------------------------- */

/* The values of a stretch of x: a spike of one record in a million still shows in `low` or
 * `high`. */
typedef struct gp_curve_point {
  double x, low, high, mean;
  double smooth; /* of all values up to here */
} gp_curve_point;

typedef struct gp_curve_rule {
  const gp_records *clock; /* optional: x is its "seconds", else its "time" since the first */
  size_t most;             /* points at most, at least 2 */
  double smoothing;        /* share of the past, from 0 and below 1 */
  bool positive;           /* for a logarithmic axis: values that are not above 0 are left out */
} gp_curve_rule;

/* Make points[most] of a column, *count of them; *left_out receives how many values were not finite
 * (or not positive). Smoothing is a mean with exponentially falling weights, normalised from the
 * first value on. Source: TensorBoard's, which divides by 1 - smoothing^n. */
gp_status gp_records_curve(const gp_records *records, size_t column, const gp_curve_rule *rule,
                           gp_curve_point *points, size_t *count, size_t *left_out);

#endif
