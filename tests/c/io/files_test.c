/* tests/c/io/files_test.c - files as bytes, lists of files, tables of numbers. */
#include "base/status.h"
#include "folder.h"
#include "test.h"

/* ---- files ---------------------------------------------------------------------------------- */

TEST(a_file_is_read_whole) {
  folder_make();
  gp_tensor *bytes = NULL;
  CHECK_STATUS(gp_file_read(folder_write("f", "a\0b", 3), &bytes), GP_OK);
  CHECK(gp_tensor_numel(bytes) == 3 && !memcmp(gp_tensor_data(bytes), "a\0b", 3));
  gp_tensor_free(bytes);
  CHECK_STATUS(gp_file_read(folder_write("f", "", 0), &bytes), GP_OK);
  CHECK(gp_tensor_numel(bytes) == 0);
  gp_tensor_free(bytes);
  CHECK_STATUS(gp_file_read(folder_path("none"), &bytes), GP_EIO);
  CHECK_TEXT(gp_error_text(), "none: cannot read: No such file or directory");
  CHECK_STATUS(gp_file_read(folder, &bytes), GP_EIO);
  folder_remove();
}

TEST(a_file_is_written_whole_or_not_at_all) {
  char bytes[16];
  folder_make();
  CHECK_STATUS(gp_file_write(folder_path("w"), "a\0b", 3), GP_OK);
  CHECK(folder_read("w", bytes, sizeof bytes) == 3 && !memcmp(bytes, "a\0b", 3));
  CHECK_STATUS(gp_file_write(folder_path("w"), "", 0), GP_OK);
  CHECK(folder_read("w", bytes, sizeof bytes) == 0 && folder_count() == 1);
  size_t live = gp_memory().live;
  gp_status status = GP_ENOMEM;
  for (uint64_t n = 1; status == GP_ENOMEM && n < 20; n++) {
    gp_memory_fail_at(n);
    status = gp_file_write(folder_path("w"), "new", 3);
    gp_memory_fail_at(0);
    CHECK(folder_read("w", bytes, sizeof bytes) == (status ? 0 : 3));
    CHECK(gp_memory().live == live && folder_count() == 1);
  }
  CHECK(status == GP_OK);
  CHECK_STATUS(gp_file_write(folder_path("no/w"), "", 0), GP_EIO);
  folder_remove();
}

TEST(a_folder_is_listed_in_order_without_hidden_files_and_circles) {
  folder_make();
  folder_write("b", "", 0);
  folder_write("a", "", 0);
  folder_write(".hidden", "", 0);
  mkdir(folder_path("B"), 0777);
  folder_write("B/c", "", 0);
  symlink(".", folder_path("B/circle"));
  symlink("gone", folder_path("dangling"));
  symlink("a", folder_path("z"));
  char **names = NULL;
  size_t count = 0;
  CHECK_STATUS(gp_file_list(folder, &names, &count), GP_OK);
  static const char *const wanted[] = {"B/c", "a", "b", "z"};
  CHECK(count == 4);
  for (size_t i = 0; i < count && i < 4; i++) CHECK(!strcmp(names[i], folder_path(wanted[i])));
  gp_file_list_free(names, count);
  CHECK_STATUS(gp_file_list(folder_path("a"), &names, &count), GP_OK);
  CHECK(count == 1 && !strcmp(names[0], folder_path("a")));
  gp_file_list_free(names, count);
  CHECK_STATUS(gp_file_list(folder_path("none"), &names, &count), GP_EIO);
  unlink(folder_path("B/c"));
  unlink(folder_path("B/circle"));
  rmdir(folder_path("B"));
  folder_remove();
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Reads a table in which all columns are inputs; words: the last one holds words, which are freed
 * again. */
static gp_status read_table(const char *path, bool header, bool words, gp_tensor **values) {
  enum { MOST = 300000 };
  static gp_csv_column column[MOST];
  static char **word[MOST], **line[2];
  static size_t word_count[MOST], count[2];
  gp_csv_options options = {.header = header, .separator = ','};
  gp_csv_table table = {.words = word, .word_count = word_count};
  GP_TRY(gp_csv_head(path, ',', &line[0], &count[0], &line[1], &count[1]));
  for (int i = 0; i < 2; i++) gp_file_list_free(line[i], count[i]);
  for (size_t i = 0; i < count[0]; i++)
    column[i] = (gp_csv_column){GP_CSV_INPUT, (int64_t)i, words && i + 1 == count[0]};
  GP_TRY(gp_csv_read(path, &options, column, count[0], false, &table));
  for (size_t i = 0; i < count[0]; i++) gp_file_list_free(word[i], word_count[i]);
  gp_tensor_free(table.y);
  *values = table.x;
  return GP_OK;
}

static gp_status read_text(const char *text, bool header, gp_tensor **values) {
  return read_table(folder_write("t.csv", text, strlen(text)), header, false, values);
}

TEST(tables_of_numbers_are_read) {
  static const char *const texts[] = {"a,b\n1,2.5\n-3e2,.5\n", "a,b\r\n1,2.5\r\n-3e2,.5",
                                      ("\xef\xbb\xbf\"a,\"\"x\",b\n\n 1 ,\t2.5\n"
                                       "\"-3e2\" , +.5 \n \n\n")};
  static const double wanted[] = {1, 2.5, -300, 0.5};
  folder_make();
  for (int t = 0; t < 3; t++) {
    gp_tensor *values = NULL;
    CHECK_STATUS(read_text(texts[t], true, &values), GP_OK);
    CHECK(values && gp_tensor_numel(values) == 4 && gp_tensor_meta(values)->shape.dim[0] == 2);
    for (int i = 0; i < 4; i++) CHECK(gp_tensor_get_double(values, i) == wanted[i]);
    gp_tensor_free(values);
  }
  folder_remove();
}

TEST(broken_tables_are_refused_with_line_and_column) {
  static const struct {
    bool header;
    const char *text, *error;
  } cases[] = {
      {true, "a,b\n1,2\n1,x\n", "t.csv:3: column 2 (b) is 'x', expected a number"},
      {true, "a,b\n1,2\n,3\n", "t.csv:3: column 1 (a) is empty, expected a number"},
      {true, "a,b\n1,2,3\n", "t.csv:2: 3 columns, expected 2"},
      {true, "a,b\n1\n", "t.csv:2: 1 columns, expected 2"},
      {true, "a,b\n1,nan\n", "'nan', expected a number"},
      {true, "a,b\n1,0x10\n", "'0x10', expected a number"},
      {true, "a,b\n1,1e999\n", "'1e999', expected a number"},
      {true, "a,b\n1,1e39\n", "'1e39', expected a number that f32 holds"},
      {true, "a,b\n1,2-\n", "'2-', expected a number"},
      {true, "a,b\n\"1\n\n\",2\n3,4,5\n", "t.csv:2: column 1"},
      {true, "a,b\n\"1,2\n", "t.csv:2: a quoted field has no end"},
      {true, "a,b\n\"1\"2,3\n", "t.csv:2: text after a quoted field"},
      {true, "a,b\n", "t.csv: there are no rows of values"},
      {true, "", "t.csv: there are no rows"},
      {false, "a,b\n1,2\n", "t.csv:1: column 1 is 'a', expected a number (does the first line"},
      {false, "1,2\n3,4\n5\n", "t.csv:3: 1 columns, expected 2"},
  };
  folder_make();
  size_t live = gp_memory().live;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gp_tensor *values = NULL;
    CHECK_STATUS(read_text(cases[i].text, cases[i].header, &values), GP_EFORMAT);
    CHECK_TEXT(gp_error_text(), cases[i].error);
    CHECK(!values);
  }
  CHECK(gp_memory().live == live);
  folder_remove();
}

/* A value takes four bytes, whatever its text, because the text is read in pieces. */
TEST(a_table_takes_the_memory_of_its_values) {
  enum { ROWS = 400000, PIECES = 1 << 19 };
  folder_make();
  char *text = malloc(4 * ROWS + 1);
  for (int i = 0; i < ROWS; i++) memcpy(text + 4 * i, "1,2\n", 5);
  size_t live = gp_memory().live, numbers = 8 * ROWS;
  gp_memory_info before = gp_memory();
  gp_tensor *values = NULL;
  CHECK_STATUS(read_text(text, false, &values), GP_OK);
  CHECK(values && gp_tensor_numel(values) == 2 * ROWS);
  CHECK(gp_tensor_get_double(values, 2 * ROWS - 1) == 2);
  CHECK(gp_memory().live - live < numbers + 4096);
  CHECK(before.peak > live + numbers + PIECES || gp_memory().peak - live < numbers + PIECES);
  gp_tensor_free(values);
  free(text);
  folder_remove();
}

TEST(words_are_classes_in_the_order_of_their_bytes) {
  static const char text[] = "1,b\n2,\"a,\"\"x\"\"\"\n3,b\n4,Z\n";
  static const double wanted[] = {1, 2, 2, 1, 3, 2, 4, 0};
  folder_make();
  size_t live = gp_memory().live;
  gp_tensor *values = NULL;
  const char *path = folder_write("t.csv", text, strlen(text));
  CHECK_STATUS(read_table(path, false, true, &values), GP_OK);
  for (int i = 0; i < 8; i++) CHECK(gp_tensor_get_double(values, i) == wanted[i]);
  gp_tensor_free(values);
  path = folder_write("t.csv", "1,b\n2,3\n", 8);
  CHECK_STATUS(read_table(path, false, true, &values), GP_EFORMAT);
  CHECK_TEXT(gp_error_text(), "t.csv:2: column 2 is '3', expected a word as in other lines");
  CHECK(gp_memory().live == live);
  folder_remove();
}

/* Copying all names for each one took 0.33 s for 40,000, four times as long for twice as many. */
TEST(a_header_of_many_columns_is_read_in_proportion) {
  enum { COLUMNS = 300000 };
  folder_make();
  char *text = malloc(4 * COLUMNS + 1);
  for (int i = 0; i < COLUMNS; i++) memcpy(text + 2 * i, i + 1 < COLUMNS ? "a," : "a\n", 2);
  for (int i = 0; i < COLUMNS; i++)
    memcpy(text + 2 * (COLUMNS + i), i + 1 < COLUMNS ? "1," : "1\n", 3);
  uint64_t before = gp_memory().allocations;
  gp_tensor *values = NULL;
  CHECK_STATUS(read_text(text, true, &values), GP_OK);
  CHECK(values && gp_tensor_numel(values) == COLUMNS);
  CHECK(gp_memory().allocations - before < 3 * COLUMNS + 100); /* one per field of two lines */
  gp_tensor_free(values);
  free(text);
  folder_remove();
}

TEST(every_failing_allocation_of_a_table_is_reported) {
  folder_make();
  size_t live = gp_memory().live;
  gp_status status = GP_ENOMEM;
  gp_tensor *values = NULL;
  for (uint64_t n = 1; status == GP_ENOMEM && n < 100; n++) {
    gp_memory_fail_at(n);
    status = read_text("a,b,c\n1,2,3\n4,5,6\n", true, &values);
    gp_memory_fail_at(0);
    if (status) CHECK(gp_memory().live == live);
  }
  CHECK(status == GP_OK);
  gp_tensor_free(values);
  folder_remove();
}

/* A zero would end a field early and hide what follows. */
TEST(a_table_with_a_zero_byte_is_refused_with_its_position) {
  folder_make();
  gp_tensor *values = NULL;
  const char *path = folder_write("z.csv", "1,2\n3\0,4\n", 10);
  CHECK_STATUS(read_table(path, false, false, &values), GP_EFORMAT);
  CHECK_TEXT(gp_error_text(), "z.csv: byte 5 is 0");
  CHECK(!values);
  folder_remove();
}

TEST_MAIN(a_table_with_a_zero_byte_is_refused_with_its_position, a_file_is_read_whole,
          a_file_is_written_whole_or_not_at_all,
          a_folder_is_listed_in_order_without_hidden_files_and_circles, tables_of_numbers_are_read,
          broken_tables_are_refused_with_line_and_column, a_table_takes_the_memory_of_its_values,
          words_are_classes_in_the_order_of_their_bytes,
          a_header_of_many_columns_is_read_in_proportion,
          every_failing_allocation_of_a_table_is_reported)
