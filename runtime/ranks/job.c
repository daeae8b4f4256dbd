/* ranks/job.c - see job.h.
 *
 * gpipe-lua --ranks makes a folder for the sockets and a random key. Other launchers make none:
 * then the folder is named after the user and the job; its owner and mode are the protection. */
#include "ranks/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- numbers and words ----------------------------------------------------------------------- */

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

/* ---- launchers ------------------------------------------------------------------------------- */

/* The variables by which a launcher tells a process about its job. */
typedef struct launcher {
  const char *rank, *count, *local;
  const char *local_count; /* ranks of this host */
  const char *job;         /* tells the job from others of this user */
  const char *host;        /* the host of rank 0; NULL: it does not say */
} launcher;

/* The one whose `job` and `rank` are set is asked; ours is the first. */
static const launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "WORLD_SIZE", "GPIPE_RANKS_FOLDER", NULL},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", NULL},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR"}};

static const launcher *find_launcher(void) {
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
    if (getenv(launchers[i].job) && getenv(launchers[i].count)) return &launchers[i];
  return NULL;
}

/* Copy a text of the environment that has to fit. */
static gp_status copy_text(const char *name, char *to, size_t size) {
  const char *text = or_empty(getenv(name));
  if (strlen(text) >= size)
    return gp_fail(GP_EINVAL, "ranks: %s has %zu characters, expected fewer than %zu", name,
                   strlen(text), size);
  memcpy(to, text, strlen(text) + 1);
  return GP_OK;
}

/* Refuse a job over several hosts: its ranks could not meet at a Unix socket. */
static gp_status check_host(const gp_rank_job *job, const launcher *l) {
  const char *address = l->host ? getenv(l->host) : NULL;
  int local = job->info.count;
  bool found;
  GP_TRY(read_number(l->local_count, GP_RANKS_MOST + 1, &local, &found));
  if (address && !is_this_host(address, job->info.host))
    return gp_fail(GP_EUNSUPPORTED,
                   "ranks: %s is '%s', expected this host (%s): jobs over several "
                   "hosts cannot run yet",
                   l->host, address, job->info.host);
  if (local == job->info.count) return GP_OK;
  return gp_fail(
      GP_EUNSUPPORTED,
      "ranks: %d of %d ranks are on %s, expected all: jobs over several hosts cannot run "
      "yet",
      local, job->info.count, job->info.host);
}

/* Name the folder for a launcher that makes none, after the user and the job. */
static gp_status name_folder(gp_rank_job *job, const launcher *l) {
  const char *temporary = getenv("TMPDIR"), *name = getenv(l->job);
  int length = snprintf(job->folder, sizeof job->folder, "%s/gpipe-ranks-%ld-%s",
                        temporary && *temporary ? temporary : "/tmp", (long)getuid(), name);
  if (length >= (int)sizeof job->folder)
    return gp_fail(GP_EINVAL,
                   "ranks: '%s' is too long for the names of sockets, expected a shorter "
                   "TMPDIR",
                   job->folder);
  for (char *c = job->folder + length - strlen(name); *c; c++)
    if (*c == '/') *c = '-';
  return copy_text("TORCHELASTIC_RUN_ID", job->key, sizeof job->key);
}

gp_status gp_rank_job_read(gp_rank_job *job) {
  bool has_rank, has_count, has_local;
  const launcher *l = find_launcher();
  *job = (gp_rank_job){.info = {.count = 1}};
  if (gethostname(job->info.host, sizeof job->info.host - 1)) job->info.host[0] = '\0';
  if (!l) return GP_OK;
  GP_TRY(read_number(l->count, GP_RANKS_MOST + 1, &job->info.count, &has_count));
  if (!has_count || job->info.count == 0) job->info.count = 1;
  if (job->info.count == 1) return GP_OK;
  GP_TRY(read_number(l->rank, job->info.count, &job->info.rank, &has_rank));
  if (!has_rank)
    return gp_fail(GP_EINVAL, "ranks: %s is %d and %s is not set, expected both", l->count,
                   job->info.count, l->rank);
  job->info.local = job->info.rank;
  GP_TRY(read_number(l->local, job->info.count, &job->info.local, &has_local));
  if (l != &launchers[0]) {
    GP_TRY(check_host(job, l));
    return name_folder(job, l);
  }
  GP_TRY(copy_text(l->job, job->folder, sizeof job->folder));
  return copy_text("GPIPE_RANKS_KEY", job->key, sizeof job->key);
}

gp_status gp_ranks_info(gp_rank_info *info) {
  gp_rank_job job;
  GP_TRY(gp_rank_job_read(&job));
  *info = job.info;
  return GP_OK;
}

/* ---- the folder ------------------------------------------------------------------------------ */

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
