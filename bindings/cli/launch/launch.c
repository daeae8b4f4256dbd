/* bindings/cli/launch/launch.c - gpipe-lua --ranks N: starts N processes of a job and watches over
 * them.
 *
 * Every process runs the same command line without --ranks; the environment says which rank it is,
 * where the sockets are and what the job's key is. With --node K/M they are the ranks of one host
 * of M, each of which runs this command; they meet at --master, and know the key by GPIPE_JOB_KEY.
 * If this process dies, the kernel kills them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/launch/job.h"
#include "cli/launch/said.h"

#include "gpipe.h"

/* Returns a descriptor from which signals are read; -1: there is none. */
static int catch_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) sigaddset(&set, caught[i]);
  signal(SIGINT, SIG_DFL); /* shells let jobs in the background ignore it; gpipe-lua does not */
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* A rank that was lost leaves a code that says how it died; the others know whether the job can go
 * on from a checkpoint. If none is left to say it, what it has said before counts. */
static int code_of(const gp_launch_job *j, int failed) {
  const bool lost = j->ranks[failed].code > 128 || j->ranks[failed].given_up;
  for (int r = 0; r < j->count; r++)
    if (j->ranks[r].code == GP_EXIT_AGAIN || (lost && j->ranks[r].goes_on)) return GP_EXIT_AGAIN;
  return j->ranks[failed].code;
}

/* The rank that failed first; -1: none. One that was killed comes before those that have ended at
 * the same time because of it, which the kernel may have told of before. */
static int find_failed(const gp_launch_job *j) {
  for (int r = 0; r < j->count; r++)
    if (j->ranks[r].code > 128 && !j->ranks[r].stopped &&
        j->ranks[r].ended_at - j->failed_at < 2 * GP_LAUNCH_TICK_MS)
      return r;
  return j->first_failed;
}

/* The code after a signal. A rank that was given up has none of its own: then it is that of the
 * signal, unless the job can go on and was not told to end at once. */
static int code_of_stop(const gp_launch_job *j, int failed) {
  if (!j->ranks[failed].given_up) return j->ranks[failed].code;
  const int code = code_of(j, failed);
  return code == GP_EXIT_AGAIN && j->stops == 1 ? code : 128 + j->stop_signal;
}

/* Has rank 0 said the same? Then it has ended with the same error, or its run was stopped, too, or
 * it has found the same fault in the command line. */
static bool is_said(const gp_launch_job *j, int r) {
  const gp_relay *relay = &j->ranks[r].relay;
  const int code = j->ranks[r].code;
  if (j->first) return false;
  if (code == GP_EXIT_AGAIN || code == GP_EXIT_USAGE) return j->ranks[0].code == code;
  return gp_said_is_in(j->said, relay->kept, relay->kept_length);
}

/* A rank tells the others that it has failed before it ends, so rank 0 may have ended first. Then
 * it has told the other one's error, without the traceback. Returns that rank, else the given
 * one. */
static int find_cause(const gp_launch_job *j, int failed) {
  for (int r = 1; !j->first && !failed && r < j->count; r++)
    if (j->ranks[r].code && gp_said_tells_of(j->said, r)) return r;
  return failed;
}

/* Say which rank failed first, unless it was rank 0, which has said so itself, or a signal ended
 * all. */
static int report(const gp_launch_job *j) {
  const int r = find_failed(j);
  if (r < 0) return GP_EXIT_OK;
  const gp_launch_rank *p = &j->ranks[r];
  if (j->stops) return code_of_stop(j, r);
  const int cause = find_cause(j, r);
  if (gp_launch_has_relay(j, cause) && !is_said(j, cause))
    gp_relay_show_errors(&j->ranks[cause].relay);
  if (p->code > 128)
    fprintf(stderr, GP_PROGRAM ": rank %d was ended by signal %d (%s)\n", j->first + r,
            p->code - 128, strsignal(p->code - 128));
  if (p->given_up)
    fprintf(stderr, GP_PROGRAM ": rank %d was stopped while the others ended, and was killed\n",
            j->first + r);
  return code_of(j, r);
}

/* Run the job once. stops: was it told to stop? */
static int run_job(char **argv, const gp_options *options, int signals, bool *stops) {
  const int hosts = options->nodes ? options->nodes : 1;
  gp_launch_job j = {.count = options->ranks,
                     .first = options->ranks * options->node,
                     .total = options->ranks * hosts,
                     .first_failed = -1,
                     .signals = signals,
                     .notes = {-1, -1},
                     .said = gp_said_open(),
                     .shows = options->log_ranks,
                     .prompts =
                         !argv[options->script] && !options->execute && !options->interactive};
  j.interactive = j.prompts || options->interactive;
  int code = GP_EXIT_ERROR;
  if (gp_launch_open(&j, options)) {
    bool good = true;
    for (int r = 0; good && r < j.count; r++) good = gp_launch_start(&j, r, argv);
    if (!good) gp_launch_send(&j, SIGKILL);
    gp_launch_watch(&j);
    if (good) code = report(&j);
  }
  gp_launch_close(&j);
  *stops = j.stops;
  return code;
}

/* Has another launcher started this process as one of several? Each would start a whole job, where
 * it is not said that it starts the ranks of one host. What it says wrongly is no such word: a
 * script for SLURM may set WORLD_SIZE alone. */
static bool is_one_of_several(const gp_options *options) {
  gp_rank_info info;
  if (options->nodes > 1 || gp_ranks_info(&info) || info.count == 1) return false;
  fprintf(stderr,
          GP_PROGRAM ": --ranks: %s has started this process as rank %d of %d, expected the same "
                     "command without --ranks; or --node K/M, for the ranks of host K "
                     "(GPIPE_ALONE=1: this is no rank)\n",
          info.launcher, info.rank, info.count);
  return true;
}

/* A job that can go on from a checkpoint, because a rank was lost and not because it was told to
 * stop, is started again as often as was asked for. */
int gp_launch(char **argv, const gp_options *options) {
  if (is_one_of_several(options)) return GP_EXIT_USAGE;
  const int signals = catch_signals();
  if (signals < 0) {
    fprintf(stderr, GP_PROGRAM ": --ranks: cannot read signals: %s\n", strerror(errno));
    return GP_EXIT_ERROR;
  }
  for (int again = 1;; again++) {
    bool stops = false;
    const int code = run_job(argv, options, signals, &stops);
    if (code != GP_EXIT_AGAIN || stops || again > options->restarts) return code;
    fprintf(stderr, GP_PROGRAM ": starting the job again (%d of %d)\n", again, options->restarts);
  }
}
