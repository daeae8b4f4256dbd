/* ranks/job/job.c - see job.h: what is read from the environment, whatever the launcher. */
#include "ranks/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const ways[] = {
    [GP_RANKS_UNIX] = "unix", [GP_RANKS_TCP] = "tcp", [GP_RANKS_MPI] = "mpi"};

const char *gp_rank_way_name(gp_rank_way way) { return ways[way]; }

static gp_status read_way(gp_rank_job *job) {
  const char *asked = getenv("GPIPE_TRANSPORT");
  if (!asked || !*asked) return GP_OK;
  for (int way = GP_RANKS_UNIX; way <= GP_RANKS_MPI; way++)
    if (!strcmp(asked, ways[way])) job->way = (gp_rank_way)way;
  if (job->way != GP_RANKS_ANY) return GP_OK;
  return gp_fail(GP_EINVAL, "ranks: GPIPE_TRANSPORT is '%s', expected unix, tcp or mpi", asked);
}

/* The user's key, or that of --ranks, comes before the one that follows from the job's name. */
static gp_status read_key(gp_rank_job *job) {
  static const char *const names[] = {"GPIPE_JOB_KEY", "GPIPE_RANKS_KEY"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *key = getenv(names[i]);
    if (!key || !*key) continue;
    if (strlen(key) >= sizeof job->key)
      return gp_fail(GP_EINVAL, "ranks: %s has %zu characters, expected fewer than %zu", names[i],
                     strlen(key), sizeof job->key);
    snprintf(job->key, sizeof job->key, "%s", key);
    return GP_OK;
  }
  return GP_OK;
}

/* A launcher may start what is no job: commands, and the trials of a sweep. Other values are
 * ignored, as lua/gpipe/environment.lua says of them. */
static bool is_alone(void) {
  const char *wish = getenv("GPIPE_ALONE");
  return wish && !strcmp(wish, "1");
}

gp_status gp_rank_job_read(gp_rank_job *job) {
  *job = (gp_rank_job){.info = {.count = 1, .one_host = true, .launcher = ""}};
  if (gethostname(job->info.host, sizeof job->info.host - 1)) job->info.host[0] = '\0';
  if (!is_alone()) GP_TRY(gp_rank_launcher_read(job));
  if (job->info.count == 1) return GP_OK;
  GP_TRY(read_way(job));
  return read_key(job);
}

gp_status gp_rank_job_seconds(const char *name, double otherwise, double *seconds) {
  const char *text = getenv(name);
  char *end;
  *seconds = otherwise;
  if (!text || !*text) return GP_OK;
  *seconds = strtod(text, &end);
  if (!*end && *seconds >= 0 && *seconds <= 1e6) return GP_OK;
  return gp_fail(GP_EINVAL, "ranks: %s is '%s', expected seconds from 0 to 1e6", name, text);
}

gp_status gp_rank_job_join_seconds(double *seconds) {
  return gp_rank_job_seconds("GPIPE_JOIN_SECONDS", 60, seconds);
}

gp_status gp_ranks_info(gp_rank_info *info) {
  gp_rank_job job;
  GP_TRY(gp_rank_job_read(&job));
  *info = job.info;
  return GP_OK;
}
