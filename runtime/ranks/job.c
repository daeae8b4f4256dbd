/* ranks/job.c - see job.h.
 *
 * gpipe-lua --ranks makes a folder for the sockets and a random key. torchrun and its like say RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT: then the folder is named after the user and the port, and
 * its owner and mode are the protection. */
#include "ranks/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- numbers and words ------------------------------------------------------------------------ */

/* Read a number from 0 to most - 1; *found tells whether the variable is set. */
static gp_status read_number(const char *name, long most, int *number, bool *found) {
  const char *text = getenv(name);
  char *end;
  *found = text && *text;
  if (!*found) return GP_OK;
  long read = strtol(text, &end, 10);
  if (*end || read < 0 || read >= most)
    return gp_fail(GP_EINVAL, "ranks: %s is '%s', expected a number from 0 to %ld", name, text,
                   most - 1);
  *number = (int)read;
  return GP_OK;
}

static bool is_this_host(const char *address, const char *host) {
  return !strcmp(address, "localhost") || !strncmp(address, "127.", 4) || !strcmp(address, "::1") ||
         !strcmp(address, host);
}

static const char *or_empty(const char *text) { return text ? text : ""; }

/* ---- launchers -------------------------------------------------------------------------------- */

/* Copy a text of the environment that has to fit. */
static gp_status copy_text(const char *name, char *to, size_t size) {
  const char *text = or_empty(getenv(name));
  if (strlen(text) >= size)
    return gp_fail(GP_EINVAL, "ranks: %s has %zu characters, expected fewer than %zu", name,
                   strlen(text), size);
  memcpy(to, text, strlen(text) + 1);
  return GP_OK;
}

/* Name the folder for a launcher that makes none. */
static gp_status follow_torchrun(gp_rank_job *job) {
  const char *address = getenv("MASTER_ADDR");
  int port = 0, local = job->info.count;
  bool found;
  GP_TRY(read_number("MASTER_PORT", 65536, &port, &found));
  GP_TRY(read_number("LOCAL_WORLD_SIZE", GP_RANKS_MOST + 1, &local, &found));
  if (!is_this_host(address, job->info.host) || local != job->info.count)
    return gp_fail(GP_EUNSUPPORTED,
                   "ranks: the job runs on several hosts (MASTER_ADDR is '%s', %d of %d ranks are "
                   "on %s), expected all of them on one",
                   address, local, job->info.count, job->info.host);
  const char *temporary = getenv("TMPDIR");
  int length = snprintf(job->folder, sizeof job->folder, "%s/gpipe-ranks-%ld-%d",
                        temporary && *temporary ? temporary : "/tmp", (long)getuid(), port);
  if (length >= (int)sizeof job->folder)
    return gp_fail(GP_EINVAL, "ranks: TMPDIR is too long for a socket's name: '%s'", temporary);
  GP_TRY(copy_text("TORCHELASTIC_RUN_ID", job->key, sizeof job->key));
  return GP_OK;
}

gp_status gp_rank_job_read(gp_rank_job *job) {
  bool has_rank, has_count, has_local;
  *job = (gp_rank_job){.info = {.count = 1}};
  if (gethostname(job->info.host, sizeof job->info.host - 1)) job->info.host[0] = '\0';
  bool launched = getenv("GPIPE_RANKS_FOLDER") != NULL;
  if (!launched && (!getenv("MASTER_ADDR") || !getenv("MASTER_PORT"))) return GP_OK;
  GP_TRY(read_number("WORLD_SIZE", GP_RANKS_MOST + 1, &job->info.count, &has_count));
  if (!has_count || job->info.count == 0) job->info.count = 1;
  if (job->info.count == 1) return GP_OK;
  GP_TRY(read_number("RANK", job->info.count, &job->info.rank, &has_rank));
  if (!has_rank)
    return gp_fail(GP_EINVAL, "ranks: WORLD_SIZE is %d and RANK is not set, expected both",
                   job->info.count);
  job->info.local = job->info.rank;
  GP_TRY(read_number("LOCAL_RANK", job->info.count, &job->info.local, &has_local));
  if (!launched) return follow_torchrun(job);
  GP_TRY(copy_text("GPIPE_RANKS_FOLDER", job->folder, sizeof job->folder));
  return copy_text("GPIPE_RANKS_KEY", job->key, sizeof job->key);
}

gp_status gp_ranks_info(gp_rank_info *info) {
  gp_rank_job job;
  GP_TRY(gp_rank_job_read(&job));
  *info = job.info;
  return GP_OK;
}

/* ---- the folder ------------------------------------------------------------------------------- */

gp_status gp_rank_job_open_folder(const gp_rank_job *job) {
  struct stat found;
  if (mkdir(job->folder, 0700) && errno != EEXIST)
    return gp_fail(GP_EIO, "ranks: cannot make the folder %s for sockets: %s", job->folder,
                   strerror(errno));
  if (lstat(job->folder, &found))
    return gp_fail(GP_EIO, "ranks: cannot read the folder %s: %s", job->folder, strerror(errno));
  if (!S_ISDIR(found.st_mode) || found.st_uid != getuid() || (found.st_mode & 077))
    return gp_fail(
        GP_ESTATE,
        "ranks: %s is open to other users, expected a folder of this user with mode 0700",
        job->folder);
  return GP_OK;
}
