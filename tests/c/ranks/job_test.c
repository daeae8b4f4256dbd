/* tests/c/ranks/job_test.c - what is understood of a launcher's environment. */
#include "ranks/job/job.h"

#include <stdlib.h>
#include <string.h>

#include "ranks/socket/socket.h"
#include "test.h"

static const char *const names[] = {"RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_RANK",
                                    "LOCAL_WORLD_SIZE",
                                    "MASTER_ADDR",
                                    "MASTER_PORT",
                                    "TORCHELASTIC_RUN_ID",
                                    "TORCHELASTIC_USE_AGENT_STORE",
                                    "GPIPE_RANKS_FOLDER",
                                    "GPIPE_RANKS_KEY",
                                    "GPIPE_RANKS_LABELLED",
                                    "GPIPE_JOB_KEY",
                                    "GPIPE_TRANSPORT",
                                    "SLURM_PROCID",
                                    "SLURM_NTASKS",
                                    "SLURM_LOCALID",
                                    "SLURM_STEP_ID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_STEP_NUM_NODES",
                                    "SLURM_STEP_NODELIST",
                                    "SLURM_JOB_NODELIST",
                                    "SLURM_JOB_ID",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "PMIX_NAMESPACE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "MPI_LOCALRANKID",
                                    "MPI_LOCALNRANKS"};

/* Read the job that these variables describe: NAME, VALUE, ..., NULL. */
static gp_status read_job(gp_rank_job *job, const char *const *pairs) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  for (; *pairs; pairs += 2) setenv(pairs[0], pairs[1], 1);
  return gp_rank_job_read(job);
}
#define READ(job, ...) read_job(job, (const char *const[]){__VA_ARGS__, NULL})

static const char *first_of(const char *list) {
  static char host[GP_RANK_NAME];
  return gp_rank_first_host("HOSTS", list, host) ? gp_error_text() : host;
}

TEST(the_first_host_of_a_list_is_found) {
  CHECK(!strcmp(first_of("login1"), "login1"));
  CHECK(!strcmp(first_of("node7,node9"), "node7"));
  CHECK(!strcmp(first_of("node[003-010,12]"), "node003"));
  CHECK(!strcmp(first_of("node[12,3-4],login1"), "node12"));
  CHECK(!strcmp(first_of("rack[2-3]n[07-08].cluster,x"), "rack2n07.cluster"));
  CHECK_TEXT(first_of("node[003"),
             "HOSTS is 'node[003', expected a list of hosts like node[003-010]");
  CHECK_TEXT(first_of("node[]"), "expected a list of hosts");
  CHECK_TEXT(first_of(""), "expected a list of hosts");
  CHECK_TEXT(first_of("[,]"), "expected a list of hosts");
}

TEST(torchrun_is_understood) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "RANK", "3", "WORLD_SIZE", "4", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE",
                    "2", "MASTER_ADDR", "node01", "MASTER_PORT", "29500", "TORCHELASTIC_RUN_ID",
                    "abc"),
               GP_OK);
  CHECK(job.info.rank == 3 && job.info.count == 4 && job.info.local == 1 && !job.info.one_host);
  CHECK(!strcmp(job.master, "node01") && job.port == 29500 && !job.has_mpi);
  CHECK_TEXT(job.key, "abc");
}

TEST(ranks_that_meet_at_the_loopback_address_are_on_one_host) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT",
                    "29500"),
               GP_OK);
  CHECK(job.info.one_host && *job.folder);
  CHECK_STATUS(READ(&job, "RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT",
                    "29500", "LOCAL_WORLD_SIZE", "1"),
               GP_OK);
  CHECK(!job.info.one_host);
}

TEST(slurm_is_understood) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "SLURM_PROCID", "5", "SLURM_NTASKS", "8", "SLURM_LOCALID", "1",
                    "SLURM_STEP_ID", "2", "SLURM_JOB_ID", "4711", "SLURM_STEP_NUM_NODES", "2",
                    "SLURM_JOB_NODELIST", "node[003-004]"),
               GP_OK);
  CHECK(job.info.rank == 5 && job.info.count == 8 && job.info.local == 1 && !job.info.one_host);
  CHECK(!strcmp(job.master, "node003") && job.port >= 20000 && job.port < 30000);
  CHECK_TEXT(job.key, "4711.2");
}

/* torchrun's own agent listens at MASTER_PORT. */
TEST(ranks_of_torchrun_meet_beside_its_agent) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "RANK", "0", "WORLD_SIZE", "2", "LOCAL_WORLD_SIZE", "1", "MASTER_ADDR",
                    "node01", "MASTER_PORT", "29500", "TORCHELASTIC_USE_AGENT_STORE", "True"),
               GP_OK);
  CHECK(job.port == 29501);
}

/* A script that sets the address for PyTorch too. */
TEST(slurm_takes_the_address_that_a_script_gives) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID", "0",
                    "SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "node[003-004]", "WORLD_SIZE", "2",
                    "MASTER_ADDR", "node003-ib", "MASTER_PORT", "1234"),
               GP_OK);
  CHECK(job.info.rank == 1 && !strcmp(job.master, "node003-ib") && job.port == 1234);
}

TEST(a_batch_script_outside_of_srun_is_one_process) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_JOB_ID", "1"), GP_OK);
  CHECK(job.info.count == 1);
}

/* srun or mpirun may start `gpipe-lua --ranks N --node K/M` on each host. */
TEST(ranks_of_a_node_are_no_ranks_of_what_started_their_launcher) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2",
                    "GPIPE_RANKS_LABELLED", "1", "RANK", "3", "WORLD_SIZE", "4", "LOCAL_RANK", "1",
                    "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR", "node01", "MASTER_PORT", "29500"),
               GP_OK);
  CHECK(job.info.rank == 3 && job.info.count == 4 && !job.has_mpi && job.port == 29500);
}

TEST(variables_that_contradict_each_other_are_named) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "RANK", "0", "WORLD_SIZE", "2", "LOCAL_WORLD_SIZE", "4", "MASTER_ADDR",
                    "node01", "MASTER_PORT", "1"),
               GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "LOCAL_WORLD_SIZE is 4 and WORLD_SIZE is 2");
  CHECK_STATUS(READ(&job, "RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "0"), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "MASTER_PORT is '0', expected a number from 1 to 65535");
  CHECK_STATUS(READ(&job, "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID", "0",
                    "SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "vm[1-"),
               GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "SLURM_JOB_NODELIST is 'vm[1-', expected a list of hosts");
}

TEST(launchers_of_mpi_are_understood) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4",
                    "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE", "a/b@1"),
               GP_OK);
  CHECK(job.info.rank == 1 && job.has_mpi && !job.info.one_host && !strchr(job.folder + 6, '/'));
  CHECK_STATUS(READ(&job, "PMI_RANK", "1", "PMI_SIZE", "2", "MPI_LOCALNRANKS", "2"), GP_OK);
  CHECK(job.info.rank == 1 && job.has_mpi && job.info.one_host);
}

TEST(what_contradicts_itself_is_refused) {
  gp_rank_job job;
  CHECK_STATUS(READ(&job, "WORLD_SIZE", "2", "MASTER_PORT", "1"), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "WORLD_SIZE is 2 and RANK is not set");
  CHECK_STATUS(READ(&job, "RANK", "2", "WORLD_SIZE", "2", "MASTER_PORT", "1"), GP_EINVAL);
  CHECK_STATUS(READ(&job, "RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "70000"), GP_EINVAL);
  CHECK_STATUS(
      READ(&job, "RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "1", "GPIPE_TRANSPORT", "pigeons"),
      GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "expected unix, tcp or mpi");
}

TEST(a_key_of_the_user_comes_first) {
  gp_rank_job job;
  CHECK_STATUS(
      READ(&job, "RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "1", "GPIPE_JOB_KEY", "mine"),
      GP_OK);
  CHECK(!strcmp(job.key, "mine"));
}

TEST(addresses_are_written_and_read) {
  gp_address a;
  CHECK(gp_address_parse("10.0.0.1:4711", &a) && !strcmp(a.text, "10.0.0.1:4711"));
  CHECK(gp_address_parse("[fe80::1]:80", &a) && !strcmp(a.text, "[fe80::1]:80"));
  CHECK(!gp_address_parse("10.0.0.1", &a) && !gp_address_parse("10.0.0.1:0", &a));
  CHECK(!gp_address_parse("a name:80", &a) && !gp_address_parse("", &a));
}

TEST_MAIN(the_first_host_of_a_list_is_found, torchrun_is_understood,
          ranks_that_meet_at_the_loopback_address_are_on_one_host, slurm_is_understood,
          ranks_of_torchrun_meet_beside_its_agent, slurm_takes_the_address_that_a_script_gives,
          a_batch_script_outside_of_srun_is_one_process,
          ranks_of_a_node_are_no_ranks_of_what_started_their_launcher,
          variables_that_contradict_each_other_are_named, launchers_of_mpi_are_understood,
          what_contradicts_itself_is_refused, a_key_of_the_user_comes_first,
          addresses_are_written_and_read)
