/* tests/c/io/records_test.c - records of a run: columns, files that grow, are cut or damaged, and
 * the points that plots draw. */
#include "folder.h"
#include "test.h"

static gp_records *opened(const char *text) {
  gp_records *records = NULL;
  bool anew;
  CHECK_STATUS(gp_records_new(folder_write("log.jsonl", text, strlen(text)), &records), GP_OK);
  CHECK_STATUS(gp_records_update(records, &anew), GP_OK);
  return records;
}

/* Returns the number of values of a column; 0 where there is none. */
static size_t values_of(const gp_records *records, const char *name, const double **values) {
  const double *steps;
  size_t column;
  if (!gp_records_find(records, name, &column)) return 0;
  return gp_records_column(records, column, &steps, values);
}

TEST(columns_hold_the_numbers) {
  folder_make();
  gp_records *r = opened("{\"step\":1,\"loss\":2.5}\n"
                         "{\"step\":2,\"val\":true,\"loss\":0.10000000000000001}\n"
                         "\n"
                         "{\"loss\":-1e-3,\"step\":3,\"note\":\"text\",\"memory\":[7,8]}\n"
                         "{\"step\":4,\"loss\":null,\"nonfinite\":{\"loss\":\"-inf\"}}\n"
                         "{\"step\":5,\"loss\":null}\n");
  const double *value;
  CHECK(gp_records_count(r) == 5);
  CHECK(values_of(r, "loss", &value) == 5);
  CHECK(value[0] == 2.5 && value[1] == 0.1 && value[2] == -1e-3);
  CHECK(isinf(value[3]) && value[3] < 0 && isnan(value[4]));
  CHECK(values_of(r, "val", &value) == 1 && value[0] == 1);
  CHECK(values_of(r, "memory[2]", &value) == 1 && value[0] == 8);
  CHECK(values_of(r, "note", &value) == 0 && values_of(r, "step", &value) == 0);
  gp_records_free(r);
  folder_remove();
}

/* The fast parser gives what strtod gives. */
TEST(numbers_are_exact) {
  static const char *const texts[] = {
      "0.3",     "9007199254740992",  "9007199254740993", "123456.789",
      "-0.0",    "0.000000000000001", "17.00000001",      "1e308",
      "4.9e-324"};
  folder_make();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char line[128];
    const double *value;
    snprintf(line, sizeof line, "{\"step\":1,\"x\":%s}\n", texts[i]);
    gp_records *r = opened(line);
    CHECK(values_of(r, "x", &value) == 1 && value[0] == strtod(texts[i], NULL));
    gp_records_free(r);
  }
  folder_remove();
}

TEST(half_a_line_waits_for_the_rest) {
  static const char whole[] = "{\"step\":1,\"x\":1}\n{\"step\":2,\"x\":2}\n";
  const double *value;
  folder_make();
  for (size_t size = 0; size <= strlen(whole); size++) {
    bool anew;
    gp_records *r = NULL;
    const char *path = folder_write("log.jsonl", whole, size);
    CHECK_STATUS(gp_records_new(path, &r), GP_OK);
    CHECK_STATUS(gp_records_update(r, &anew), GP_OK);
    const char *text;
    CHECK(gp_records_damage(r, &text) == 0);
    folder_write("log.jsonl", whole, strlen(whole));
    CHECK_STATUS(gp_records_update(r, &anew), GP_OK);
    CHECK(!anew && values_of(r, "x", &value) == 2 && value[1] == 2);
    gp_records_free(r);
  }
  folder_remove();
}

TEST(a_file_that_was_cut_is_read_again) {
  folder_make();
  const double *value;
  bool anew;
  gp_records *r = opened("{\"step\":1,\"x\":1}\n{\"step\":2,\"x\":2}\n");
  const char *other = "{\"step\":1,\"x\":1}\n{\"step\":2,\"x\":5}\n{\"step\":3,\"x\":6}\n";
  const char *path = folder_write("log.jsonl", other, strlen(other));
  CHECK_STATUS(gp_records_update(r, &anew), GP_OK);
  CHECK(anew && values_of(r, "x", &value) == 3 && value[1] == 5);
  folder_write("log.jsonl", other, 17);
  CHECK_STATUS(gp_records_update(r, &anew), GP_OK);
  CHECK(anew && values_of(r, "x", &value) == 1);
  unlink(path);
  CHECK_STATUS(gp_records_update(r, &anew), GP_OK);
  CHECK(anew && gp_records_count(r) == 0);
  gp_records_free(r);
  folder_remove();
}

TEST(damaged_lines_are_told_and_left_out) {
  folder_make();
  const char *text;
  const double *value;
  gp_records *r = opened("{\"step\":1,\"x\":1}\n{\"step\":2,\"x\":2,,}\n[]\n{\"x\":4}\n"
                         "{\"step\":5,\"x\":5}\n");
  CHECK(gp_records_damage(r, &text) == 3);
  CHECK_TEXT(text, "log.jsonl:2: ");
  CHECK(values_of(r, "x", &value) == 2 && value[1] == 5);
  gp_records_free(r);
  folder_remove();
}

/* Changes any one byte to any of a few: there must be an answer, and no read beyond the text. */
TEST(any_byte_may_be_wrong) {
  static const char good[] = "{\"step\":1,\"a\\u00e9\":-1.5e3,\"l\":[1,2],\"b\":true,\"c\":null,"
                             "\"nonfinite\":{\"c\":\"inf\"},\"s\":\"t\"}\n";
  static const char wrong[] = "\"{}[],:\\0-e.n\n\x80 ";
  folder_make();
  for (size_t at = 0; at < sizeof good - 1; at++)
    for (size_t k = 0; k < sizeof wrong; k++) {
      char text[sizeof good];
      memcpy(text, good, sizeof good);
      text[at] = wrong[k];
      gp_records *r = NULL;
      bool anew;
      CHECK_STATUS(gp_records_new(folder_write("log.jsonl", text, sizeof good - 1), &r), GP_OK);
      CHECK_STATUS(gp_records_update(r, &anew), GP_OK);
      gp_records_free(r);
    }
  folder_remove();
}

/* ---- points --------------------------------------------------------------------------------- */

enum { VALUES = 5000, MOST = 100 };

TEST(points_keep_the_extremes_and_the_mean) {
  static char text[VALUES * 32];
  size_t size = 0;
  folder_make();
  for (int i = 0; i < VALUES; i++)
    size += (size_t)snprintf(text + size, sizeof text - size, "{\"step\":%d,\"x\":%d}\n", i,
                             i == 1234 ? 1000000 : i % 7);
  gp_records *r = opened(text);
  gp_curve_point points[MOST];
  gp_curve_rule rule = {.most = MOST};
  size_t count, left_out, column;
  CHECK(gp_records_find(r, "x", &column));
  CHECK_STATUS(gp_records_curve(r, column, &rule, points, &count, &left_out), GP_OK);
  CHECK(count == MOST && left_out == 0);
  double sum = 0, high = 0;
  for (size_t i = 0; i < count; i++) {
    CHECK(points[i].low == 0 && points[i].smooth == (double)points[i].smooth);
    CHECK(i == 0 || points[i].x > points[i - 1].x);
    sum += points[i].mean;
    high = points[i].high > high ? points[i].high : high;
  }
  CHECK(high == 1000000);
  CHECK_NEAR(sum / MOST, 3 + 1000000.0 / VALUES, 0.1);
  rule.positive = true;
  CHECK_STATUS(gp_records_curve(r, column, &rule, points, &count, &left_out), GP_OK);
  CHECK(left_out == (VALUES + 6) / 7 - (1234 % 7 == 0) && points[0].low == 1);
  gp_records_free(r);
  folder_remove();
}

TEST(smoothing_weighs_the_first_values_too) {
  folder_make();
  gp_records *r = opened("{\"step\":1,\"x\":4}\n{\"step\":2,\"x\":1}\n{\"step\":3,\"x\":null}\n");
  gp_curve_point points[MOST];
  gp_curve_rule rule = {.most = MOST, .smoothing = 0.5};
  size_t count, left_out;
  CHECK_STATUS(gp_records_curve(r, 0, &rule, points, &count, &left_out), GP_OK);
  CHECK(count == 2 && left_out == 1);
  CHECK_NEAR(points[0].smooth, 4, 1e-12);
  CHECK_NEAR(points[1].smooth, (4 * 0.25 + 1 * 0.5) / 0.75, 1e-12);
  gp_records_free(r);
  folder_remove();
}

TEST(a_clock_gives_seconds) {
  folder_make();
  static const char times[] = "{\"step\":10,\"time\":100}\n{\"step\":20,\"time\":104}\n";
  gp_records *clock = NULL;
  bool anew;
  CHECK_STATUS(gp_records_new(folder_write("timing.jsonl", times, strlen(times)), &clock), GP_OK);
  CHECK_STATUS(gp_records_update(clock, &anew), GP_OK);
  gp_records *r = opened("{\"step\":10,\"x\":1}\n{\"step\":15,\"x\":2}\n{\"step\":25,\"x\":3}\n");
  gp_curve_point points[MOST];
  gp_curve_rule rule = {.most = MOST, .clock = clock};
  size_t count, left_out;
  CHECK_STATUS(gp_records_curve(r, 0, &rule, points, &count, &left_out), GP_OK);
  CHECK(count == 3 && points[0].x == 0 && points[1].x == 2 && points[2].x == 4);
  /* "seconds" is preferred: it does not count pauses */
  static const char spent[] = "{\"step\":10,\"time\":100,\"seconds\":5}\n"
                              "{\"step\":20,\"time\":9000,\"seconds\":7}\n";
  folder_write("timing.jsonl", spent, strlen(spent));
  CHECK_STATUS(gp_records_update(clock, &anew), GP_OK);
  CHECK_STATUS(gp_records_curve(r, 0, &rule, points, &count, &left_out), GP_OK);
  CHECK(count == 3 && points[0].x == 5 && points[1].x == 6 && points[2].x == 7);
  rule.clock = r; /* has no times */
  CHECK_STATUS(gp_records_curve(r, 0, &rule, points, &count, &left_out), GP_EFORMAT);
  gp_records_free(r);
  gp_records_free(clock);
  folder_remove();
}

TEST_MAIN(columns_hold_the_numbers, numbers_are_exact, half_a_line_waits_for_the_rest,
          a_file_that_was_cut_is_read_again, damaged_lines_are_told_and_left_out,
          any_byte_may_be_wrong, points_keep_the_extremes_and_the_mean,
          smoothing_weighs_the_first_values_too, a_clock_gives_seconds)
