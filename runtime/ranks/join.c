/* ranks/join.c - how a process joins its job: by which transport, and how long it may take. */
#include <string.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "ranks/net.h"
#include "ranks/transport.h"

/* ---- which transport ------------------------------------------------------------------------- */

static gp_status refuse_hosts(const gp_rank_job *job) {
  return gp_fail(GP_EUNSUPPORTED,
                 "ranks: %s starts ranks on several hosts, and %s is not set, expected MASTER_ADDR "
                 "and MASTER_PORT, where rank 0 is to listen%s%s",
                 job->info.launcher, *job->master ? "MASTER_PORT" : "MASTER_ADDR",
                 job->has_mpi ? ", or MPI: " : "", job->has_mpi ? gp_error_text() : "");
}

/* What a launcher of MPI has started uses MPI if its library can be opened. Else ranks of one host
 * meet in a folder, others at an address. The choice follows from what all ranks know. */
static gp_status choose(const gp_rank_job *job, const gp_transport **chosen) {
  const bool has_master = *job->master && job->port;
  gp_rank_way way = job->way;
  if (way == GP_RANKS_MPI) return gp_transport_find_mpi(chosen);
  if (way == GP_RANKS_ANY && job->has_mpi && !gp_transport_find_mpi(chosen)) return GP_OK;
  if (way == GP_RANKS_ANY)
    way = job->info.one_host && *job->folder ? GP_RANKS_UNIX : has_master ? GP_RANKS_TCP : way;
  if (way == GP_RANKS_ANY) return refuse_hosts(job);
  if (way == GP_RANKS_UNIX && !job->info.one_host)
    return gp_fail(
        GP_EINVAL,
        "ranks: GPIPE_TRANSPORT is unix, expected tcp or mpi for ranks on several hosts");
  if (way == GP_RANKS_TCP && !has_master)
    return gp_fail(GP_EINVAL,
                   "ranks: GPIPE_TRANSPORT is tcp, expected MASTER_ADDR and MASTER_PORT as well");
  *chosen = way == GP_RANKS_TCP ? &gp_transport_tcp : &gp_transport_unix;
  return GP_OK;
}

/* ---- joining --------------------------------------------------------------------------------- */

static gp_status make_peers(gp_net *net) {
  const size_t count = (size_t)net->job.info.count;
  GP_TRY(gp_alloc_array(count, sizeof *net->peers, (void **)&net->peers));
  for (size_t r = 0; r < count; r++) {
    gp_peer *peer = &net->peers[r];
    peer->rank = (int32_t)r;
    peer->is_own = peer->rank == net->job.info.rank;
    peer->socket = -1;
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->sent, NULL);
  }
  return GP_OK;
}

static gp_status read_silence(gp_net *net) {
  double seconds;
  GP_TRY(gp_rank_job_seconds("GPIPE_HEARTBEAT", 5, &seconds));
  net->silence_most_ns = (int64_t)(seconds * 1e9);
  if (seconds == 0 || seconds >= 2) return GP_OK;
  return gp_fail(GP_EINVAL, "ranks: GPIPE_HEARTBEAT is %g, expected 2 seconds or more, or 0 (off)",
                 seconds);
}

gp_status gp_ranks_join(void) {
  gp_net *net = gp_net_place();
  if (gp_net_get()) return GP_OK;
  net->tried = true;
  GP_TRY(gp_rank_job_read(&net->job));
  if (net->job.info.count == 1)
    return gp_fail(GP_ESTATE, "ranks: there is one process, expected several");
  GP_TRY(choose(&net->job, &net->transport));
  GP_TRY(read_silence(net));
  GP_TRY(make_peers(net));
  gp_status status = gp_net_start(net);
  /* the thread may still use the peers */
  if (status == GP_EINTERRUPT || (status && !net->opened)) return status;
  if (status) gp_free(net->peers);
  if (status) net->peers = NULL;
  return status;
}

/* ---- what all ranks know --------------------------------------------------------------------- */

uint64_t gp_ranks_seed(void) {
  gp_rank_job job;
  unsigned char digest[GP_SHA256_BYTES];
  uint64_t seed;
  if (gp_rank_job_read(&job) || job.info.count == 1) return 0;
  gp_sha256 sum = gp_sha256_begin();
  gp_sha256_put(&sum, job.key, strlen(job.key));
  gp_sha256_end(&sum, digest);
  memcpy(&seed, digest, sizeof seed);
  return seed;
}
