/* ranks/job/ended.c - the launcher's notes in the folder of a job: which ranks have ended, and how.
 *
 * A rank that ends before it has connected to the others cannot tell them, and they would wait for
 * it in vain. The launcher sees it end, and leaves a note that they look for while they wait. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ranks/job/job.h"

enum { PATH = 128 };

/* Returns false where the path is too long. */
static bool path_of(const char *folder, int rank, const char *end, char path[PATH]) {
  const int length = snprintf(path, PATH, "%s/ended-%d%s", folder, rank, end);
  return length > 0 && length < PATH;
}

/* The note appears under its name when it is complete. */
gp_status gp_ranks_note_end(const char *folder, int rank, const char *how) {
  char path[PATH], half[PATH];
  if (!path_of(folder, rank, "", path) || !path_of(folder, rank, ".new", half))
    return gp_fail(GP_EINVAL, "ranks: the folder %s has a name that is too long", folder);
  FILE *file = fopen(half, "we");
  if (!file) return gp_fail(GP_EIO, "ranks: cannot write %s: %s", half, strerror(errno));
  const bool written = fputs(how, file) >= 0;
  const bool closed = !fclose(file);
  if (written && closed && !rename(half, path)) return GP_OK;
  unlink(half);
  return gp_fail(GP_EIO, "ranks: cannot write %s: %s", path, strerror(errno));
}

bool gp_rank_job_find_end(const gp_rank_job *job, int32_t rank, char how[GP_RANK_NAME]) {
  char path[PATH];
  if (!*job->folder || !path_of(job->folder, rank, "", path)) return false;
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool found = fgets(how, GP_RANK_NAME, file) != NULL;
  fclose(file);
  return found;
}
