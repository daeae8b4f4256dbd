/* tests/c/io/archive_test.c - saving and loading archives: what is read back, and what failures
 * leave behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "folder.h"
#include "test.h"

/* ---- making archives ----------------------------------------------------------------------- */

static gp_tensor *counted(gp_dtype dtype, int rank, const int64_t *dims) {
  gp_shape shape = {.rank = rank};
  for (int d = 0; d < rank; d++) shape.dim[d] = dims[d];
  gp_tensor *tensor = NULL;
  CHECK_STATUS(gp_tensor_new(dtype, &shape, &tensor), GP_OK);
  for (int64_t i = 0; i < gp_tensor_numel(tensor); i++)
    gp_tensor_set_int(tensor, i, dtype == GP_BOOL ? i % 2 : i % 100);
  return tensor;
}

static void add(gp_archive *archive, const char *name, gp_tensor *tensor) {
  CHECK_STATUS(gp_archive_add(archive, name, tensor), GP_OK);
  gp_tensor_free(tensor);
}

/* Makes an archive with every dtype, a scalar, an empty tensor, and names and metadata that need
 * escapes. */
static gp_archive *sample(void) {
  gp_archive *archive = NULL;
  CHECK_STATUS(gp_archive_new(&archive), GP_OK);
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++)
    add(archive, gp_dtype_name((gp_dtype)dtype),
        counted((gp_dtype)dtype, 2, (int64_t[]){3, 5 + dtype % 2}));
  add(archive, "scalar", counted(GP_F64, 0, NULL));
  add(archive, "empty", counted(GP_I32, 2, (int64_t[]){0, 4}));
  add(archive, "na\"me\\\n\x01 \xc3\xa4\xf0\x9f\x98\x80", counted(GP_U8, 1, (int64_t[]){7}));
  CHECK_STATUS(gp_archive_add_text(archive, "who", "l1\nl2\t\"q\" \xe2\x82\xac"), GP_OK);
  CHECK_STATUS(gp_archive_add_text(archive, "", ""), GP_OK);
  return archive;
}

static bool same(const gp_archive *a, const gp_archive *b) {
  bool equal = gp_archive_count(a) == gp_archive_count(b) &&
               gp_archive_text_count(a) == gp_archive_text_count(b);
  for (size_t i = 0; equal && i < gp_archive_count(a); i++)
    equal = !strcmp(gp_archive_name(a, i), gp_archive_name(b, i)) &&
            gp_tensor_equal(gp_archive_tensor(a, i), gp_archive_tensor(b, i));
  for (size_t i = 0; equal && i < gp_archive_text_count(a); i++)
    equal = !strcmp(gp_archive_text_key(a, i), gp_archive_text_key(b, i)) &&
            !strcmp(gp_archive_text_value(a, i), gp_archive_text_value(b, i));
  return equal;
}

/* ---- what comes back ----------------------------------------------------------------------- */

TEST(an_archive_comes_back_bit_by_bit_in_order) {
  folder_make();
  gp_archive *archive = sample(), *loaded = NULL;
  CHECK_STATUS(gp_archive_save(archive, folder_path("a.st")), GP_OK);
  CHECK_STATUS(gp_archive_load(folder_path("a.st"), &loaded), GP_OK);
  CHECK(loaded && same(archive, loaded));
  CHECK(folder_count() == 1);
  gp_archive_free(loaded);
  gp_archive_free(archive);
  folder_remove();
}

TEST(the_file_is_what_the_format_says) {
  folder_make();
  gp_archive *archive = NULL;
  gp_archive_new(&archive);
  add(archive, "b", counted(GP_U8, 1, (int64_t[]){3}));
  add(archive, "w", counted(GP_F32, 2, (int64_t[]){1, 2}));
  CHECK_STATUS(gp_archive_add_text(archive, "k", "v"), GP_OK);
  CHECK_STATUS(gp_archive_save(archive, folder_path("f.st")), GP_OK);
  gp_archive_free(archive);
  static const char header[] = "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"U8\",\"shape\":["
                               "3],\"data_offsets\":[8,11]},"
                               "\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";
  char bytes[512];
  long size = folder_read("f.st", bytes, sizeof bytes);
  uint64_t length = 0;
  memcpy(&length, bytes, 8);
  CHECK(length % 8 == 0 && size == (long)(8 + length + 11));
  CHECK(!memcmp(bytes + 8, header, sizeof header - 1));
  for (size_t i = sizeof header - 1; i < length; i++) CHECK(bytes[8 + i] == ' ');
  CHECK(!memcmp(bytes + 8 + length, "\0\0\0\0\0\0\x80\x3f\0\1\2", 11));
  folder_remove();
}

TEST(strided_tensors_are_saved_as_they_look) {
  folder_make();
  gp_tensor *base = counted(GP_F32, 2, (int64_t[]){4, 3}), *turned = NULL;
  gp_meta meta = *gp_tensor_meta(base);
  meta.shape = (gp_shape){.rank = 2, .dim = {3, 2}};
  meta.stride[0] = 1;
  meta.stride[1] = 6;
  CHECK_STATUS(gp_tensor_view(base, &meta, &turned), GP_OK);
  gp_archive *archive = NULL, *loaded = NULL;
  gp_archive_new(&archive);
  CHECK_STATUS(gp_archive_add(archive, "t", turned), GP_OK);
  CHECK_STATUS(gp_archive_save(archive, folder_path("s.st")), GP_OK);
  CHECK_STATUS(gp_archive_load(folder_path("s.st"), &loaded), GP_OK);
  CHECK(loaded && gp_tensor_equal(gp_archive_tensor(loaded, 0), turned));
  gp_archive_free(loaded);
  gp_archive_free(archive);
  gp_tensor_free(turned);
  gp_tensor_free(base);
  folder_remove();
}

/* The memory to read a file is in proportion to its size, whatever it holds. */
TEST(a_file_of_many_small_things_costs_little) {
  enum { MANY = 4096 };
  folder_make();
  gp_archive *archive = NULL, *loaded = NULL;
  gp_archive_new(&archive);
  for (int i = 0; i < MANY; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    add(archive, name, counted(GP_F32, 1, (int64_t[]){0}));
    CHECK_STATUS(gp_archive_add_text(archive, name, "v"), GP_OK);
  }
  CHECK_STATUS(gp_archive_save(archive, folder_path("m.st")), GP_OK);
  gp_archive_free(archive);
  struct stat info;
  stat(folder_path("m.st"), &info);
  size_t live = gp_memory().live;
  CHECK_STATUS(gp_archive_load(folder_path("m.st"), &loaded), GP_OK);
  CHECK(gp_memory().live - live < 5 * (size_t)info.st_size);
  CHECK(loaded && gp_archive_count(loaded) == MANY && gp_archive_text_count(loaded) == MANY);
  CHECK(loaded &&
        !strcmp(gp_archive_name(loaded, MANY - 1), gp_archive_text_key(loaded, MANY - 1)));
  gp_archive_free(loaded);
  CHECK(gp_memory().live == live);
  folder_remove();
}

/* Such tensors cost memory but no byte of the file: 60,000 in a hostile one took 6.6 times its
 * size. */
TEST(tensors_without_elements_have_a_limit) {
  gp_archive *archive = NULL;
  gp_archive_new(&archive);
  gp_tensor *empty = counted(GP_F32, 1, (int64_t[]){0});
  gp_status status = GP_OK;
  int count = 0;
  for (; count <= 4096 && status == GP_OK; count++) {
    char name[16];
    snprintf(name, sizeof name, "%d", count);
    status = gp_archive_add(archive, name, empty);
  }
  CHECK(count == 4097);
  CHECK_STATUS(status, GP_EINVAL);
  CHECK(strstr(gp_error_text(), "more than 4096 tensors without elements"));
  gp_tensor_free(empty);
  gp_archive_free(archive);
}

TEST(metadata_has_a_limit) {
  gp_archive *archive = NULL;
  gp_archive_new(&archive);
  gp_status status = GP_OK;
  int count = 0;
  for (; count <= 100000 && status == GP_OK; count++) {
    char key[16];
    snprintf(key, sizeof key, "%d", count);
    status = gp_archive_add_text(archive, key, "");
  }
  CHECK(status == GP_EINVAL && count == 100001);
  gp_archive_free(archive);
}

TEST(names_are_checked_when_they_are_added) {
  gp_archive *archive = NULL;
  gp_archive_new(&archive);
  gp_tensor *t = counted(GP_U8, 1, (int64_t[]){1});
  char name[64], too_long[5000];
  memset(too_long, 'n', sizeof too_long - 1);
  too_long[sizeof too_long - 1] = '\0';
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "layer.%d.weight", i);
    CHECK_STATUS(gp_archive_add(archive, name, t), GP_OK);
  }
  CHECK_STATUS(gp_archive_add(archive, "layer.77.weight", t), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "archive: 'layer.77.weight' is given twice");
  CHECK_STATUS(gp_archive_add(archive, "__metadata__", t), GP_EINVAL);
  CHECK_STATUS(gp_archive_add(archive, "\xff", t), GP_EINVAL);
  CHECK_STATUS(gp_archive_add(archive, too_long, t), GP_EINVAL);
  CHECK_STATUS(gp_archive_add_text(archive, "k", "\xc0\x80"), GP_EINVAL);
  CHECK_STATUS(gp_archive_add_text(archive, "k", "v"), GP_OK);
  CHECK_STATUS(gp_archive_add_text(archive, "k", "v"), GP_EINVAL);
  CHECK(gp_archive_count(archive) == 300 && gp_archive_text_count(archive) == 1);
  gp_tensor_free(t);
  gp_archive_free(archive);
}

/* ---- what failures leave behind ------------------------------------------------------------ */

TEST(a_failed_save_leaves_the_old_file_and_nothing_else) {
  folder_make();
  folder_write("old.st", "old content", 11);
  gp_archive *archive = NULL;
  gp_archive_new(&archive);
  add(archive, "big", counted(GP_F32, 1, (int64_t[]){1 << 18}));
  struct rlimit before, small = {.rlim_cur = 300000};
  getrlimit(RLIMIT_FSIZE, &before);
  small.rlim_max = before.rlim_max;
  setrlimit(RLIMIT_FSIZE, &small);
  CHECK_STATUS(gp_archive_save(archive, folder_path("old.st")), GP_EIO);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_TEXT(gp_error_text(), "old.st: cannot write: File too large");
  char bytes[64];
  CHECK(folder_read("old.st", bytes, sizeof bytes) == 11 && !memcmp(bytes, "old content", 11));
  CHECK(folder_count() == 1);
  sigset_t pending;
  sigpending(&pending);
  CHECK(!sigismember(&pending, SIGXFSZ));
  gp_archive_free(archive);
  folder_remove();
}

TEST(a_save_replaces_the_file_and_does_not_write_into_it) {
  folder_make();
  const char *path = folder_write("x.st", "old content", 11);
  chmod(path, 0600);
  symlink("x.st", folder_path("link.st"));
  int old = open(path, O_RDONLY);
  gp_archive *archive = sample(), *loaded = NULL;
  CHECK_STATUS(gp_archive_save(archive, folder_path("link.st")), GP_OK);
  char bytes[64];
  CHECK(read(old, bytes, sizeof bytes) == 11 && !memcmp(bytes, "old content", 11));
  close(old);
  struct stat info;
  CHECK(lstat(folder_path("link.st"), &info) == 0 && S_ISLNK(info.st_mode));
  CHECK(stat(folder_path("x.st"), &info) == 0 && (info.st_mode & 0777) == 0600);
  CHECK_STATUS(gp_archive_load(folder_path("x.st"), &loaded), GP_OK);
  CHECK(loaded && same(archive, loaded) && folder_count() == 2);
  gp_archive_free(loaded);
  gp_archive_free(archive);
  folder_remove();
}

TEST(a_save_through_links_that_lead_nowhere_yet_makes_the_file_at_their_end) {
  folder_make();
  mkdir(folder_path("far"), 0700);
  symlink("second.st", folder_path("first.st"));
  symlink("far/real.st", folder_path("second.st"));
  gp_archive *archive = sample(), *loaded = NULL;
  CHECK_STATUS(gp_archive_save(archive, folder_path("first.st")), GP_OK);
  struct stat info;
  CHECK(lstat(folder_path("first.st"), &info) == 0 && S_ISLNK(info.st_mode));
  CHECK(lstat(folder_path("second.st"), &info) == 0 && S_ISLNK(info.st_mode));
  CHECK(lstat(folder_path("far/real.st"), &info) == 0 && S_ISREG(info.st_mode));
  CHECK_STATUS(gp_archive_load(folder_path("first.st"), &loaded), GP_OK);
  CHECK(loaded && same(archive, loaded));
  unlink(folder_path("far/real.st"));
  symlink("circle.st", folder_path("circle.st"));
  CHECK_STATUS(gp_archive_save(archive, folder_path("circle.st")), GP_EIO);
  CHECK_TEXT(gp_error_text(), strerrordesc_np(ELOOP));
  rmdir(folder_path("far"));
  gp_archive_free(loaded);
  gp_archive_free(archive);
  folder_remove();
}

/* Returns the id of a process that has ended. */
static long gone_process(void) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  return child;
}

TEST(a_save_removes_what_processes_that_are_gone_left_of_this_file) {
  static const char *const names[] = {".x.st.tmp.%ld.0",  ".x.st.tmp.%ld.17", ".x.st.tmp.%ld.0.bak",
                                      ".x.st.tmp.%ld",    ".y.st.tmp.%ld.0",  "x.st.tmp.%ld.0",
                                      ".x.st.tmp.0%ld.z", ".x.st.tmp.-%ld.0"};
  folder_make();
  long gone = gone_process(), alive = (long)getppid();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[64];
    snprintf(name, sizeof name, names[i], gone);
    folder_write(name, "left", 4);
  }
  char alive_name[64];
  snprintf(alive_name, sizeof alive_name, ".x.st.tmp.%ld.0", alive);
  folder_write(alive_name, "being written", 13);
  gp_archive *archive = sample();
  CHECK_STATUS(gp_archive_save(archive, folder_path("x.st")), GP_OK);
  CHECK(access(folder_path(alive_name), F_OK) == 0);
  CHECK(folder_count() == 6 + 1 + 1); /* others, one being written, the file */
  gp_archive_free(archive);
  folder_remove();
}

TEST(what_is_no_regular_file_is_refused) {
  folder_make();
  gp_archive *archive = sample();
  CHECK_STATUS(gp_archive_save(archive, "/dev/null"), GP_EIO);
  CHECK_TEXT(gp_error_text(), "/dev/null: cannot save: it exists and is not a regular file");
  CHECK_STATUS(gp_archive_save(archive, folder), GP_EIO);
  CHECK_STATUS(gp_archive_save(archive, ""), GP_EIO);
  CHECK_STATUS(gp_archive_save(archive, folder_path("no/such/folder.st")), GP_EIO);
  CHECK_TEXT(gp_error_text(), "No such file or directory");
  gp_archive_free(archive);
  gp_archive *loaded = NULL;
  CHECK_STATUS(gp_archive_load(folder, &loaded), GP_EIO);
  CHECK_TEXT(gp_error_text(), "it is a folder");
  CHECK_STATUS(gp_archive_load("/dev/null", &loaded), GP_EIO);
  CHECK_STATUS(gp_archive_load(folder_path("none.st"), &loaded), GP_EIO);
  CHECK(!loaded && folder_count() == 0);
  folder_remove();
}

/* ---- running out of memory ----------------------------------------------------------------- */

TEST(every_failing_allocation_of_a_save_is_reported) {
  folder_make();
  folder_write("m.st", "old", 3);
  gp_archive *archive = sample();
  gp_status status = GP_ENOMEM;
  uint64_t n = 0;
  while (status == GP_ENOMEM && ++n < 1000) {
    size_t live = gp_memory().live;
    char bytes[16];
    gp_memory_fail_at(n);
    status = gp_archive_save(archive, folder_path("m.st"));
    gp_memory_fail_at(0);
    CHECK(gp_memory().live == live);
    if (status) CHECK(folder_count() == 1 && folder_read("m.st", bytes, sizeof bytes) == 3);
  }
  CHECK(status == GP_OK && n > 3);
  gp_archive_free(archive);
  folder_remove();
}

TEST(every_failing_allocation_of_a_load_is_reported) {
  folder_make();
  gp_archive *archive = sample(), *loaded = NULL;
  CHECK_STATUS(gp_archive_save(archive, folder_path("m.st")), GP_OK);
  gp_status status = GP_ENOMEM;
  uint64_t n = 0;
  while (status == GP_ENOMEM && ++n < 1000) {
    size_t live = gp_memory().live;
    gp_memory_fail_at(n);
    status = gp_archive_load(folder_path("m.st"), &loaded);
    gp_memory_fail_at(0);
    if (status) CHECK(!loaded && gp_memory().live == live);
  }
  CHECK(status == GP_OK && n > 20 && loaded && same(archive, loaded));
  gp_archive_free(loaded);
  gp_archive_free(archive);
  folder_remove();
}

TEST_MAIN(an_archive_comes_back_bit_by_bit_in_order, the_file_is_what_the_format_says,
          strided_tensors_are_saved_as_they_look, names_are_checked_when_they_are_added,
          a_failed_save_leaves_the_old_file_and_nothing_else,
          a_save_replaces_the_file_and_does_not_write_into_it,
          a_save_through_links_that_lead_nowhere_yet_makes_the_file_at_their_end,
          a_save_removes_what_processes_that_are_gone_left_of_this_file,
          a_file_of_many_small_things_costs_little, tensors_without_elements_have_a_limit,
          metadata_has_a_limit, what_is_no_regular_file_is_refused,
          every_failing_allocation_of_a_save_is_reported,
          every_failing_allocation_of_a_load_is_reported)
