/* bindings/cli/launch/start.c - starts the ranks of a job: what they meet with, and what they are
 * told by their environment. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/launch/job.h"
#include "cli/launch/said.h"

#include "gpipe.h"

/* ---- where ranks meet ------------------------------------------------------------------------ */

/* A port of this host that is free just now, below those that the system gives to callers. */
static bool find_port(char text[8]) {
  enum { FIRST = 20000, PORTS = 10000, TRIES = 100 };
  for (int i = 0; i < TRIES; i++) {
    const int port = FIRST + (int)(((unsigned)getpid() * 7u + (unsigned)i * 613u) % PORTS);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_addr = {htonl(INADDR_LOOPBACK)},
                                   .sin_port = htons((uint16_t)port)};
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = made >= 0 && !bind(made, (const struct sockaddr *)&at, sizeof at);
    if (made >= 0) close(made);
    snprintf(text, 8, "%d", port % 100000);
    if (good) return true;
  }
  return false;
}

/* GPIPE_TRANSPORT=tcp on one host: for tests, and to see what TCP costs. */
static void meet_at_loopback(void) {
  const char *way = getenv("GPIPE_TRANSPORT");
  char port[8];
  if (!way || strcmp(way, "tcp") || !find_port(port)) return;
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", port, 1);
}

static void meet_at(const char *master) {
  const char *colon = strrchr(master, ':');
  const bool bracket = *master == '[';
  char host[256];
  snprintf(host, sizeof host, "%.*s", (int)(colon - master) - 2 * bracket, master + bracket);
  setenv("MASTER_ADDR", host, 1);
  setenv("MASTER_PORT", colon + 1, 1);
}

static bool refuse(const char *what) {
  fprintf(stderr, GP_PROGRAM ": --ranks: %s: %s\n", what, strerror(errno));
  return false;
}

/* A folder of this user alone, and a key that no other process can guess. Several hosts have
 * neither in common. */
bool gp_launch_open(gp_launch_job *j, const gp_options *options) {
  unsigned char bytes[16];
  j->ranks = calloc((size_t)j->count, sizeof *j->ranks);
  j->fds = calloc((size_t)(2 * j->count + 1), sizeof *j->fds);
  if (!j->ranks || !j->fds) return refuse("no memory");
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, j->notes))
    return refuse("no sockets");
  if (options->nodes > 1) return meet_at(options->master), true;
  meet_at_loopback();
  j->held = gp_launch_folder_make(j->folder);
  if (j->held < 0) return refuse("no folder for sockets in /tmp");
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return refuse("no random numbers");
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(j->key + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

void gp_launch_close(gp_launch_job *j) {
  for (int r = 0; j->ranks && r < j->count; r++) gp_relay_close(&j->ranks[r].relay);
  for (int i = 0; i < 2; i++)
    if (j->notes[i] >= 0) close(j->notes[i]);
  if (*j->folder) gp_launch_folder_remove(j->folder, j->held);
  if (j->said >= 0) close(j->said);
  free(j->ranks);
  free(j->fds);
}

/* ---- becoming a rank ------------------------------------------------------------------------- */

static void set_number(const char *name, int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  setenv(name, text, 1);
}

/* Leave the launcher's own words out: the rest is the command line of a rank. */
static void drop_switches(char **argv) {
  int to = 1, at = 1;
  for (bool options = true; argv[at];) {
    int from = at;
    const char *value;
    gp_switch kind = options ? gp_switch_next(argv, &at, &value) : GP_SWITCH_END;
    options = options && kind != GP_SWITCH_END;
    if (kind == GP_SWITCH_RANKS || kind == GP_SWITCH_NODE || kind == GP_SWITCH_MASTER ||
        kind == GP_SWITCH_RESTARTS)
      continue;
    if (at == from) at++;
    while (from < at) argv[to++] = argv[from++];
  }
  argv[to] = NULL;
}

/* Without a script all ranks run what is typed at rank 0, but only that has the terminal. The
 * launcher's words have left room. */
static void ask_for_prompt(char **argv) {
  int end = 1;
  while (argv[end]) end++;
  memmove(argv + 2, argv + 1, (size_t)end * sizeof *argv);
  argv[1] = "-i";
}

static void tell_rank(const gp_launch_job *j, int r) {
  unsetenv("GPIPE_ALONE"); /* of a sweep that has started this job */
  setenv("GPIPE_RANKS_LABELLED", "1", 1);
  fcntl(j->notes[1], F_SETFD, 0);
  set_number(GP_RANKS_NOTES, j->notes[1]);
  set_number("RANK", j->first + r);
  set_number("LOCAL_RANK", r);
  set_number("LOCAL_WORLD_SIZE", j->count);
  set_number("WORLD_SIZE", j->total);
  if (!*j->folder) {
    unsetenv("GPIPE_RANKS_FOLDER");
    return;
  }
  setenv("GPIPE_RANKS_FOLDER", j->folder, 1);
  setenv("GPIPE_RANKS_KEY", j->key, 1);
}

/* Become rank r of this host. */
static _Noreturn void run_rank(const gp_launch_job *j, int r, pid_t launcher, char **argv) {
  sigset_t none;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(GP_EXIT_ERROR); /* it died before the line above */
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (gp_launch_has_relay(j, r))
    gp_relay_attach(&j->ranks[r].relay);
  else
    gp_said_pass(j->said);
  tell_rank(j, r);
  drop_switches(argv);
  if (j->prompts) ask_for_prompt(argv);
  execv("/proc/self/exe", argv);
  fprintf(stderr, GP_PROGRAM ": --ranks: cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(GP_EXIT_ERROR);
}

/* Say what is missing for a rank. */
static bool refuse_rank(const gp_launch_job *j, int r, const char *what, const char *wanted) {
  fprintf(stderr, GP_PROGRAM ": --ranks: no %s for rank %d of %d: %s, expected %s\n", what,
          j->first + r, j->total, strerror(errno), wanted);
  return false;
}

bool gp_launch_start(gp_launch_job *j, int r, char **argv) {
  const pid_t launcher = getpid();
  gp_launch_rank *p = &j->ranks[r];
  if (gp_launch_has_relay(j, r) && !gp_relay_open(&p->relay, j->first + r, j->shows))
    return refuse_rank(j, r, "pipes", "two open files for each rank (ulimit -n), or fewer ranks");
  fflush(NULL);
  p->id = fork();
  if (p->id == 0) run_rank(j, r, launcher, argv);
  if (p->id < 0) return refuse_rank(j, r, "process", "a higher limit (ulimit -u), or fewer ranks");
  if (gp_launch_has_relay(j, r)) gp_relay_started(&p->relay);
  p->runs = true;
  j->left++;
  return true;
}
