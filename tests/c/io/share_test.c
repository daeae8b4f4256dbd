/* tests/c/io/share_test.c - a checkpoint that several processes write: here two writers of one
 * process, of which one leads. */
#include "base/status.h"

#include "folder.h"
#include "test.h"

static gp_archive *archive_of(double value) {
  gp_archive *archive = NULL;
  gp_tensor *tensor = NULL;
  gp_shape shape = {.rank = 1, .dim = {1000}};
  CHECK_STATUS(gp_tensor_new(GP_F64, &shape, &tensor), GP_OK);
  for (int64_t i = 0; i < 1000; i++) gp_tensor_set_double(tensor, i, value);
  CHECK_STATUS(gp_archive_new(&archive), GP_OK);
  CHECK_STATUS(gp_archive_add(archive, "value", tensor), GP_OK);
  gp_tensor_free(tensor);
  return archive;
}

static void make_folder(char target[FOLDER_PATH]) {
  folder_make();
  snprintf(target, FOLDER_PATH, "%s", folder_path("saved"));
}

/* Removes the checkpoint, then the folder around it. */
static void remove_folder(const char *target) {
  (void)gp_folder_remove(target);
  folder_remove();
}

static gp_status all_there(void) { return GP_OK; }
static gp_status one_gone(void) { return gp_fail(GP_EDEVICE, "rank 1 is gone"); }

/* Begins a checkpoint of two files, the second of which another writer has. */
static gp_checkpoint *lead(const char *target, gp_status (*check)(void), char shared[FOLDER_PATH]) {
  gp_checkpoint *c = NULL;
  const char *made;
  CHECK_STATUS(gp_checkpoint_new(target, "the state", &c), GP_OK);
  CHECK_STATUS(gp_checkpoint_lead(c, check, &made), GP_OK);
  snprintf(shared, FOLDER_PATH, "%s", made);
  CHECK_STATUS(gp_checkpoint_add(c, "a.safetensors", archive_of(1)), GP_OK);
  CHECK_STATUS(gp_checkpoint_add(c, "b.safetensors", NULL), GP_OK);
  CHECK_STATUS(gp_checkpoint_start(c), GP_OK);
  return c;
}

static gp_checkpoint *follow(const char *target, const char *shared) {
  gp_checkpoint *c = NULL;
  CHECK_STATUS(gp_checkpoint_new(target, "", &c), GP_OK);
  CHECK_STATUS(gp_checkpoint_follow(c, shared), GP_OK);
  CHECK_STATUS(gp_checkpoint_add(c, "b.safetensors", archive_of(2)), GP_OK);
  CHECK_STATUS(gp_checkpoint_start(c), GP_OK);
  return c;
}

/* Returns how many files the checkpoint has; 0 if it cannot be read. */
static size_t files_of(const char *target) {
  char **names, *state;
  size_t count;
  if (gp_checkpoint_read(target, &names, &count, &state)) return 0;
  CHECK(strcmp(state, "the state") == 0);
  gp_file_list_free(names, count);
  gp_checkpoint_free_state(state);
  return count;
}

TEST(two_writers_make_one_checkpoint) {
  char shared[FOLDER_PATH], target[FOLDER_PATH];
  make_folder(target);
  gp_checkpoint *first = lead(target, all_there, shared);
  CHECK(!gp_checkpoint_is_done(first)); /* it waits for the other one */
  CHECK(files_of(target) == 0);
  gp_checkpoint *second = follow(target, shared);
  CHECK_STATUS(gp_checkpoint_finish(second), GP_OK);
  CHECK_STATUS(gp_checkpoint_finish(first), GP_OK);
  CHECK(files_of(target) == 2);
  CHECK(access(shared, F_OK) != 0);
  gp_checkpoint_free(first);
  gp_checkpoint_free(second);
  remove_folder(target);
}

TEST(a_writer_that_fails_is_the_reason_of_the_one_that_leads) {
  char shared[FOLDER_PATH], target[FOLDER_PATH], path[FOLDER_PATH + 32];
  make_folder(target);
  gp_checkpoint *first = lead(target, all_there, shared);
  snprintf(path, sizeof path, "%s/b.safetensors", shared);
  CHECK(mkdir(path, 0700) == 0); /* no file can take its place */
  gp_checkpoint *second = follow(target, shared);
  CHECK(gp_checkpoint_finish(second) == GP_EIO);
  CHECK_STATUS(gp_checkpoint_finish(first), GP_EIO);
  CHECK_TEXT(gp_error_text(), "b.safetensors");
  CHECK(files_of(target) == 0);
  gp_checkpoint_free(first);
  gp_checkpoint_free(second);
  rmdir(path);
  remove_folder(target);
}

TEST(a_writer_that_is_gone_leaves_the_checkpoint_before) {
  char shared[FOLDER_PATH], target[FOLDER_PATH];
  make_folder(target);
  gp_checkpoint *first = lead(target, all_there, shared);
  gp_checkpoint *second = follow(target, shared);
  CHECK_STATUS(gp_checkpoint_finish(first), GP_OK);
  gp_checkpoint_free(first);
  gp_checkpoint_free(second);
  first = lead(target, one_gone, shared);
  CHECK_STATUS(gp_checkpoint_finish(first), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), "b.safetensors was not written: rank 1 is gone");
  gp_checkpoint_free(first);
  CHECK(files_of(target) == 2);
  CHECK(access(shared, F_OK) != 0);
  remove_folder(target);
}

TEST_MAIN(two_writers_make_one_checkpoint, a_writer_that_fails_is_the_reason_of_the_one_that_leads,
          a_writer_that_is_gone_leaves_the_checkpoint_before)
