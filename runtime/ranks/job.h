/* ranks/job.h - which process of which job this is: what the launcher says. */
#ifndef GP_RANKS_JOB_H
#define GP_RANKS_JOB_H

#include "base/status.h"
#include "gpipe/ranks.h"

enum { GP_RANKS_MOST = 4096 };

typedef struct gp_rank_job {
  gp_rank_info info;
  char folder[80]; /* where the ranks' sockets are; "" without a job */
  char key[64];    /* of the job: a connection that does not know it gets no further */
} gp_rank_job;

/* Read the environment. Errors: as gp_ranks_info. */
gp_status gp_rank_job_read(gp_rank_job *job);
/* Make the folder, if the launcher has not, and check that no other user can write to it. Errors:
 * GP_EIO, GP_ESTATE. */
gp_status gp_rank_job_open_folder(const gp_rank_job *job);

#endif
