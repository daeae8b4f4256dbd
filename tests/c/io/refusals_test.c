/* tests/c/io/refusals_test.c - what an operating system may do in the middle of a read or a save.
 *
 * This program has a pread and an fsync of its own, which do what each case says: a file shrinks
 * while it is read, a disk fails, a folder cannot be synced. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "folder.h"
#include "io/file/reader.h"
#include "test.h"

/* ---- the system ---------------------------------------------------------------------------- */

/* What the n-th call does: it fails with this error number, or a read returns 1 byte, or 0 (the
 * end). */
enum { AS_ALWAYS = 0, ONE_BYTE = -1, THE_END = -2, MOST_CALLS = 4 };

static int answers[MOST_CALLS];
static int calls;
static bool shortens; /* fsync cuts the file's last byte off before it succeeds */

static int next_answer(void) { return calls < MOST_CALLS ? answers[calls++] : AS_ALWAYS; }

static void answer(const int *list) {
  memcpy(answers, list, sizeof answers);
  calls = 0;
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at) {
  int what = next_answer();
  if (what > 0) return errno = what, -1;
  if (what == THE_END) return 0;
  return (ssize_t)syscall(SYS_pread64, fd, data, what == ONE_BYTE ? 1 : bytes, at);
}

int fsync(int fd) {
  int what = next_answer();
  if (what > 0) return errno = what, -1;
  if (shortens && ftruncate(fd, lseek(fd, 0, SEEK_END) - 1)) return -1;
  return (int)syscall(SYS_fsync, fd);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A signal during a read and a short read are no failures. */
TEST(reads_go_on_until_all_is_there_or_say_why_not) {
  static const struct {
    int answers[MOST_CALLS];
    gp_status status;
    const char *text;
  } cases[] = {
      {{EINTR, ONE_BYTE, EINTR, ONE_BYTE}, GP_OK, ""},
      {{ONE_BYTE, EIO}, GP_EIO, "r: cannot read: Input/output error"},
      {{ONE_BYTE, ONE_BYTE, THE_END}, GP_EIO, "r: ends at byte 2 of 5: it changed while"},
  };
  folder_make();
  const char *path = folder_write("r", "bytes", 5);
  size_t live = gp_memory().live;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gp_tensor *bytes = NULL;
    answer(cases[i].answers);
    CHECK_STATUS(gp_file_read(path, &bytes), cases[i].status);
    CHECK((bytes != NULL) == (cases[i].status == GP_OK));
    if (bytes) CHECK(memcmp(gp_tensor_data(bytes), "bytes", 5) == 0);
    if (!bytes) CHECK_TEXT(gp_error_text(), cases[i].text);
    gp_tensor_free(bytes);
    CHECK(gp_memory().live == live);
  }
  folder_remove();
}

/* A file that another process truncates after it was opened must not kill this one. */
TEST(a_file_that_shrinks_is_refused_where_it_ends) {
  char data[8];
  folder_make();
  gp_reader reader;
  const char *path = folder_write("s", "0123456", 7);
  CHECK_STATUS(gp_reader_open(&reader, path), GP_OK);
  CHECK(reader.size == 7 && truncate(path, 3) == 0);
  CHECK_STATUS(gp_reader_get(&reader, 1, data, 2), GP_OK);
  CHECK(memcmp(data, "12", 2) == 0);
  CHECK_STATUS(gp_reader_get(&reader, 1, data, 6), GP_EIO);
  CHECK_TEXT(gp_error_text(), "s: ends at byte 3 of 7");
  gp_reader_close(&reader);
  folder_remove();
}

/* ---- saving -------------------------------------------------------------------------------- */

/* fsync is called for the file, then for its folder. Before the file is in place the old one stays;
 * afterwards the new one does, and the error says that it may not survive. */
TEST(a_save_that_fails_leaves_one_whole_file) {
  static const struct {
    int answers[MOST_CALLS];
    bool shortens, replaced;
    gp_status status;
    const char *text;
  } cases[] = {
      {{EIO}, false, false, GP_EIO, "f: cannot write to the disk: Input/output error"},
      {{ENOSPC}, false, false, GP_EIO, "f: cannot write to the disk: No space left"},
      {{AS_ALWAYS, EIO}, true, false, GP_EIO, "f: the file has 2 bytes after writing 3"},
      {{AS_ALWAYS, EIO}, false, true, GP_EIO, "f: saved, but it may not survive a power cut"},
      {{AS_ALWAYS, EINVAL}, false, true, GP_OK, ""}, /* this file system cannot fsync folders */
  };
  folder_make();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char bytes[8];
    answer((int[MOST_CALLS]){0});
    CHECK_STATUS(gp_file_write(folder_path("f"), "old", 3), GP_OK);
    size_t live = gp_memory().live;
    shortens = cases[i].shortens;
    answer(cases[i].answers);
    CHECK_STATUS(gp_file_write(folder_path("f"), "new", 3), cases[i].status);
    shortens = false;
    if (cases[i].status) CHECK_TEXT(gp_error_text(), cases[i].text);
    CHECK(folder_read("f", bytes, sizeof bytes) == 3);
    CHECK(memcmp(bytes, cases[i].replaced ? "new" : "old", 3) == 0);
    CHECK(folder_count() == 1 && gp_memory().live == live);
  }
  folder_remove();
}

TEST_MAIN(reads_go_on_until_all_is_there_or_say_why_not,
          a_file_that_shrinks_is_refused_where_it_ends, a_save_that_fails_leaves_one_whole_file)
