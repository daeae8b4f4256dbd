/* ranks/job/job.h - which process of which job this is, and how its ranks find each other.
 *
 *   job.c        what is read from the environment, whatever the launcher
 *   launcher.c   the launchers, and their variables
 *   nodelist.c   SLURM's lists of hosts
 *   folder.c     the folder of a job on one host
 *   ended.c      the launcher's notes there: which ranks have ended */
#ifndef GP_RANKS_JOB_H
#define GP_RANKS_JOB_H

#include "base/status.h"
#include "gpipe/ranks.h"

enum { GP_RANKS_MOST = 4096, GP_RANK_NAME = 256 };

/* How the ranks are connected; ANY: the job decides. */
typedef enum gp_rank_way { GP_RANKS_ANY, GP_RANKS_UNIX, GP_RANKS_TCP, GP_RANKS_MPI } gp_rank_way;

typedef struct gp_rank_job {
  gp_rank_info info;
  gp_rank_way way;           /* asked for by GPIPE_TRANSPORT */
  bool has_mpi;              /* started by a launcher of MPI */
  char folder[80];           /* where the sockets of a job on one host are; "" if it has no name */
  char key[128];             /* of the job: a connection that does not know it gets no further */
  char master[GP_RANK_NAME]; /* the host at which the ranks meet; "": not known */
  int port;                  /* there; 0: not known */
} gp_rank_job;

/* Read the environment. Errors: as gp_ranks_info. */
gp_status gp_rank_job_read(gp_rank_job *job);
/* The seconds for which a variable asks, or a default. Errors: GP_EINVAL. */
gp_status gp_rank_job_seconds(const char *name, double otherwise, double *seconds);
/* For how long the ranks wait for each other at the beginning. Errors: GP_EINVAL. */
gp_status gp_rank_job_join_seconds(double *seconds);
/* The word by which GPIPE_TRANSPORT names a way. */
const char *gp_rank_way_name(gp_rank_way way);

/* launcher.c: what the launcher says. Errors: GP_EINVAL. */
gp_status gp_rank_launcher_read(gp_rank_job *job);
/* Is it the name or a number of the loopback address? */
bool gp_rank_is_loopback(const char *host);
/* Read a number from 0 to most - 1; *found tells whether the variable is set. */
gp_status gp_rank_number(const char *name, long most, int *number, bool *found);

/* nodelist.c: the first host of a list such as node[003-010,12],login1, which is the value of a
 * variable. Errors: GP_EINVAL. */
gp_status gp_rank_first_host(const char *variable, const char *list, char host[GP_RANK_NAME]);

/* folder.c: make the folder, if the launcher has not, and check that no other user can write to it.
 * Errors: GP_EIO, GP_ESTATE. */
gp_status gp_rank_job_open_folder(const gp_rank_job *job);

/* ended.c: has the launcher noted that a rank has ended? Then how[] receives how: "has ended with
 * exit code 3". */
bool gp_rank_job_find_end(const gp_rank_job *job, int32_t rank, char how[GP_RANK_NAME]);

#endif
