/* ranks/job/launcher.c - the launchers that are understood, and the variables by which they tell a
 * process which rank of which job it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ranks/job/job.h"

typedef struct launcher {
  const char *name;
  const char *needs[2]; /* variables that only this one sets */
  const char *rank, *count;
  const char *local;       /* rank among those of this host */
  const char *local_count; /* how many there are on this host; NULL: it does not say */
  const char *hosts;       /* how many hosts there are; NULL: it does not say */
  const char *job[2];      /* variables that tell the job from others of this user */
  bool has_mpi;
} launcher;

/* The first one whose needs are set counts. A script for SLURM may set WORLD_SIZE and the address
 * itself, as for PyTorch, but not RANK; torchrun under srun sets all. */
static const launcher launchers[] = {
    {.name = "gpipe-lua --ranks",
     .needs = {"GPIPE_RANKS_FOLDER", "WORLD_SIZE"},
     .rank = "RANK",
     .count = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .local_count = "WORLD_SIZE"},
    {.name = "gpipe-lua --ranks --node", /* which another launcher may have started on each host */
     .needs = {"GPIPE_RANKS_LABELLED", "WORLD_SIZE"},
     .rank = "RANK",
     .count = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .local_count = "LOCAL_WORLD_SIZE",
     .job = {"MASTER_PORT"}},
    {.name = "mpirun of Open MPI",
     .needs = {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
     .rank = "OMPI_COMM_WORLD_RANK",
     .count = "OMPI_COMM_WORLD_SIZE",
     .local = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_count = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     .has_mpi = true},
    {.name = "mpiexec of MPICH",
     .needs = {"PMI_RANK", "PMI_SIZE"},
     .rank = "PMI_RANK",
     .count = "PMI_SIZE",
     .local = "MPI_LOCALRANKID",
     .local_count = "MPI_LOCALNRANKS",
     .job = {"PMI_JOBID", "PMI_ID"},
     .has_mpi = true},
    {.name = "torchrun",
     .needs = {"RANK", "MASTER_PORT"},
     .rank = "RANK",
     .count = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .local_count = "LOCAL_WORLD_SIZE",
     .job = {"MASTER_PORT"}},
    {.name = "srun of SLURM",
     .needs = {"SLURM_PROCID", "SLURM_STEP_ID"}, /* a batch script's own shell has no step */
     .rank = "SLURM_PROCID",
     .count = "SLURM_STEP_NUM_TASKS",
     .local = "SLURM_LOCALID",
     .hosts = "SLURM_STEP_NUM_NODES",
     .job = {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {.name = "torchrun", /* without a rank, which is reported */
     .needs = {"WORLD_SIZE", "MASTER_PORT"},
     .rank = "RANK",
     .count = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .local_count = "LOCAL_WORLD_SIZE"},
    {.name = "torchrun", /* without a place to meet, which is reported */
     .needs = {"RANK", "WORLD_SIZE"},
     .rank = "RANK",
     .count = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .local_count = "LOCAL_WORLD_SIZE"}};

/* ---- variables ------------------------------------------------------------------------------- */

static const char *value_of(const char *name) {
  const char *text = name ? getenv(name) : NULL;
  return text && *text ? text : NULL;
}

gp_status gp_rank_number(const char *name, long most, int *number, bool *found) {
  const char *text = value_of(name);
  char *end;
  *found = text != NULL;
  if (!text) return GP_OK;
  long read = strtol(text, &end, 10);
  if (*end || read < 0 || read >= most)
    return gp_fail(GP_EINVAL, "ranks: %s is '%s', expected a number from 0 to %ld", name, text,
                   most - 1);
  *number = (int)read;
  return GP_OK;
}

static const launcher *find_launcher(void) {
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
    if (value_of(launchers[i].needs[0]) && value_of(launchers[i].needs[1])) return &launchers[i];
  return NULL;
}

/* SLURM_NTASKS is the step's number where the step does not say it otherwise. */
static const char *count_of(const launcher *l) {
  if (!value_of(l->count) && value_of("SLURM_NTASKS")) return "SLURM_NTASKS";
  return l->count;
}

/* ---- the job --------------------------------------------------------------------------------- */

static gp_status read_numbers(gp_rank_job *job, const launcher *l) {
  const char *count = count_of(l);
  bool found;
  GP_TRY(gp_rank_number(count, GP_RANKS_MOST + 1, &job->info.count, &found));
  if (!found || job->info.count == 0) job->info.count = 1;
  if (job->info.count == 1) return GP_OK;
  GP_TRY(gp_rank_number(l->rank, job->info.count, &job->info.rank, &found));
  if (!found)
    return gp_fail(GP_EINVAL, "ranks: %s is %d and %s is not set, expected both", count,
                   job->info.count, l->rank);
  job->info.local = job->info.rank;
  return gp_rank_number(l->local, job->info.count, &job->info.local, &found);
}

bool gp_rank_is_loopback(const char *address) {
  return !strcmp(address, "localhost") || !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* A launcher that does not say how many ranks are here has them all here if they are to meet at
 * the loopback address. All ranks come to the same answer. */
static gp_status read_hosts(gp_rank_job *job, const launcher *l) {
  const char *master = value_of("MASTER_ADDR");
  int local = 0, hosts = 0;
  bool has_local, has_hosts;
  GP_TRY(gp_rank_number(l->local_count, GP_RANKS_MOST + 1, &local, &has_local));
  GP_TRY(gp_rank_number(l->hosts, GP_RANKS_MOST + 1, &hosts, &has_hosts));
  if (local > job->info.count)
    return gp_fail(GP_EINVAL,
                   "ranks: %s is %d and %s is %d, expected no more ranks on this host than in all",
                   l->local_count, local, count_of(l), job->info.count);
  job->info.one_host = has_local   ? local == job->info.count
                       : has_hosts ? hosts == 1
                                   : master && gp_rank_is_loopback(master);
  return GP_OK;
}

/* Below the ports that the system gives away by itself. */
enum { FIRST_PORT = 20000, PORTS = 10000 };

/* srun names no address: the ranks meet at the step's first host, at a port made from the numbers
 * of the job and the step. */
static gp_status read_slurm(gp_rank_job *job) {
  const char *variable =
      value_of("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const char *list = value_of(variable), *id = value_of("SLURM_JOB_ID");
  const char *step = value_of("SLURM_STEP_ID");
  if (!list || !id) return GP_OK;
  if (!*job->master) GP_TRY(gp_rank_first_host(variable, list, job->master));
  if (!job->port)
    job->port = FIRST_PORT + (int)((strtoul(id, NULL, 10) * 16 + strtoul(step, NULL, 10)) % PORTS);
  return GP_OK;
}

static gp_status read_master(gp_rank_job *job, const launcher *l) {
  const char *master = value_of("MASTER_ADDR");
  bool found;
  if (master && strlen(master) >= sizeof job->master)
    return gp_fail(GP_EINVAL, "ranks: MASTER_ADDR has %zu characters, expected a host's name",
                   strlen(master));
  snprintf(job->master, sizeof job->master, "%s", master ? master : "");
  GP_TRY(gp_rank_number("MASTER_PORT", 65536, &job->port, &found));
  if (found && !job->port)
    return gp_fail(GP_EINVAL, "ranks: MASTER_PORT is '%s', expected a number from 1 to 65535",
                   value_of("MASTER_PORT"));
  /* torchrun's agent listens at this port itself: the ranks meet beside it */
  if (job->port && value_of("TORCHELASTIC_USE_AGENT_STORE"))
    job->port += job->port < 65535 ? 1 : -1;
  return !strcmp(l->rank, "SLURM_PROCID") ? read_slurm(job) : GP_OK;
}

/* Without this error each rank would run alone, as rank 0 of 1, and do the whole job. */
static gp_status check_meeting(const gp_rank_job *job, const launcher *l) {
  if (strcmp(l->name, "torchrun") || job->port) return GP_OK;
  return gp_fail(
      GP_EINVAL,
      "ranks: RANK is %d, WORLD_SIZE is %d and MASTER_PORT is not set, expected also "
      "MASTER_ADDR and MASTER_PORT, where the ranks meet (GPIPE_ALONE=1: this is no rank)",
      job->info.rank, job->info.count);
}

/* Append a variable's value and a dot, if it is set. */
static void add_name(gp_text *text, const char *variable) {
  const char *value = value_of(variable);
  if (value) gp_text_put(text, "%s%s", text->length ? "." : "", value);
}

/* Name the folder for a launcher that makes none, after the user and the job. */
static void name_folder(gp_rank_job *job, const char *name) {
  const char *temporary = value_of("TMPDIR");
  const int length = snprintf(job->folder, sizeof job->folder, "%s/gpipe-ranks-%ld-%s",
                              temporary ? temporary : "/tmp", (long)getuid(), name);
  if (length >= (int)sizeof job->folder) job->folder[0] = '\0';
  for (char *c = job->folder + (length - (int)strlen(name)); *job->folder && *c; c++)
    if (*c == '/') *c = '-';
}

/* What the launcher says about the job is its key too, unless the user gives one. It is no secret,
 * but tells jobs apart. */
static void name_job(gp_rank_job *job, const launcher *l) {
  const char *made = value_of("GPIPE_RANKS_FOLDER");
  gp_text text = gp_text_begin(job->key, sizeof job->key);
  for (int i = 0; i < 2; i++) add_name(&text, l->job[i]);
  if (l == &launchers[0] && strlen(made) < sizeof job->folder)
    snprintf(job->folder, sizeof job->folder, "%s", made);
  else if (text.length)
    name_folder(job, job->key);
  add_name(&text, "TORCHELASTIC_RUN_ID");
}

gp_status gp_rank_launcher_read(gp_rank_job *job) {
  const launcher *l = find_launcher();
  if (!l) return GP_OK;
  job->info.launcher = l->name;
  job->has_mpi = l->has_mpi;
  GP_TRY(read_numbers(job, l));
  if (job->info.count == 1) return GP_OK;
  GP_TRY(read_hosts(job, l));
  GP_TRY(read_master(job, l));
  GP_TRY(check_meeting(job, l));
  name_job(job, l);
  return GP_OK;
}
