/* ranks/job/folder.c - the folder of a job on one host, where its sockets are.
 *
 * gpipe-lua --ranks makes one. Other launchers make none: then the folder is named after the user
 * and the job; its owner and mode are the protection. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks/job/job.h"

gp_status gp_rank_job_open_folder(const gp_rank_job *job) {
  struct stat found;
  if (!*job->folder)
    return gp_fail(GP_ESTATE,
                   "ranks: %s gives the job no name (or TMPDIR is too long) for a folder of "
                   "sockets, expected MASTER_ADDR and MASTER_PORT, or gpipe-lua --ranks",
                   job->info.launcher);
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
