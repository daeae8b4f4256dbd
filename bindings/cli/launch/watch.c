/* bindings/cli/launch/watch.c - watches over the ranks of a job until all have ended.
 *
 * When one fails, the others have some seconds to end by themselves, then they are stopped. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/launch/job.h"

#include "gpipe.h"

/* Ranks take two signals within AGAIN_MS for one (bindings/stop.c). */
enum { GRACE_MS = 5000, KILL_MS = 3000, AGAIN_MS = 50 };

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void gp_launch_send(const gp_launch_job *j, int signal) {
  for (int r = 0; r < j->count; r++)
    if (j->ranks[r].runs) kill(j->ranks[r].id, signal);
}

/* Those that wait for the rank to join the job look for this. After the first failure ranks end
 * because of it. */
static void tell_end(const gp_launch_job *j, int r) {
  const int code = j->ranks[r].code;
  char how[96];
  if (j->ranks[r].given_up)
    snprintf(how, sizeof how, "was stopped, and then killed");
  else if (code > 128)
    snprintf(how, sizeof how, "was ended by signal %d (%s)", code - 128, strsignal(code - 128));
  else
    snprintf(how, sizeof how, "has ended with exit code %d", code);
  if (*j->folder && j->first_failed < 0) (void)gp_ranks_note_end(j->folder, r, how);
}

/* A rank that was given up has failed only if no other one does. */
static void note_end(gp_launch_job *j, int r, int status) {
  gp_launch_rank *p = &j->ranks[r];
  p->runs = false;
  p->code = p->given_up           ? GP_EXIT_ERROR
            : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                  : WEXITSTATUS(status);
  p->ended_at = now_ms();
  j->left--;
  tell_end(j, r);
  if (!p->code || (j->first_failed >= 0 && !j->ranks[j->first_failed].given_up)) return;
  j->first_failed = r;
  if (!j->failed_at) j->failed_at = now_ms();
}

/* Note the ranks that have ended, and those that were stopped or continued. */
static void collect(gp_launch_job *j) {
  int status;
  for (int r = 0; r < j->count; r++) {
    gp_launch_rank *p = &j->ranks[r];
    if (!p->runs || waitpid(p->id, &status, WNOHANG | WUNTRACED | WCONTINUED) != p->id) continue;
    p->stopped = WIFSTOPPED(status) || (p->stopped && !WIFCONTINUED(status));
    if (WIFEXITED(status) || WIFSIGNALED(status)) note_end(j, r, status);
  }
}

/* Count a signal that ends the ranks. */
static void note_stop(gp_launch_job *j, int signal) {
  const int64_t now = now_ms();
  if (signal == SIGUSR1 || (signal == SIGINT && j->interactive)) return;
  if (!j->stops || now - j->stopping_at > AGAIN_MS) j->stops++;
  j->stopping_at = now;
  j->stop_signal = signal;
}

/* Pass a signal on. Ctrl-C reaches all processes of the terminal: the kernel has sent it. */
static void take_signals(gp_launch_job *j) {
  struct signalfd_siginfo info;
  while (read(j->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (info.ssi_code != SI_KERNEL) gp_launch_send(j, (int)info.ssi_signo);
    note_stop(j, (int)info.ssi_signo);
  }
}

/* Hear which ranks can go on from a checkpoint. */
static void take_notes(gp_launch_job *j) {
  gp_rank_note note;
  while (recv(j->notes[0], &note, sizeof note, 0) == (ssize_t)sizeof note)
    if (note.rank >= j->first && note.rank < j->first + j->count)
      j->ranks[note.rank - j->first].goes_on = note.goes_on != 0;
}

/* ---- ranks that do not end ------------------------------------------------------------------- */

/* Note since when no rank can end by itself, although another one has ended. */
static void look_for_stuck(gp_launch_job *j, int64_t now) {
  int stopped = 0;
  for (int r = 0; r < j->count; r++) stopped += j->ranks[r].runs && j->ranks[r].stopped;
  const bool stuck = stopped == j->left && j->left < j->count;
  if (!stuck || !j->stuck_at) j->stuck_at = stuck ? now : 0;
}

/* A rank that is stopped cannot end by itself. It is given up when another one has failed, or when
 * the job was told to end at once; some seconds after the others have ended, or the job was told to
 * end, because it may be continued. */
static bool wants_stopped_to_end(const gp_launch_job *j, int64_t now) {
  if (j->failed_at || j->stops > 1) return true;
  return (j->stops && now - j->stopping_at > GRACE_MS) ||
         (j->stuck_at && now - j->stuck_at > GRACE_MS);
}

static void give_up_stopped(gp_launch_job *j) {
  for (int r = 0; r < j->count; r++)
    if (j->ranks[r].runs && j->ranks[r].stopped) {
      j->ranks[r].given_up = true;
      kill(j->ranks[r].id, SIGKILL);
    }
}

/* End what goes on after a rank has failed: first it is asked, then it is killed. */
static void press(gp_launch_job *j) {
  if (!j->left) return;
  const int64_t now = now_ms();
  look_for_stuck(j, now);
  if (wants_stopped_to_end(j, now)) give_up_stopped(j);
  if (!j->failed_at) return;
  if (!j->asked_at && now - j->failed_at > GRACE_MS) {
    gp_launch_send(j, SIGTERM);
    j->asked_at = now;
  }
  if (j->asked_at && now - j->asked_at > KILL_MS) gp_launch_send(j, SIGKILL);
}

void gp_launch_watch(gp_launch_job *j) {
  while (j->left) {
    nfds_t count = 0;
    j->fds[count++] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    for (int r = 0; r < j->count; r++) count += gp_relay_list(&j->ranks[r].relay, j->fds + count);
    poll(j->fds, count, GP_LAUNCH_TICK_MS);
    take_signals(j);
    for (int r = 0; r < j->count; r++) gp_relay_read(&j->ranks[r].relay);
    collect(j);
    take_notes(j);
    press(j);
  }
  for (int r = 0; r < j->count; r++) gp_relay_read(&j->ranks[r].relay);
}
