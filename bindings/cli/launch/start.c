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

/* A folder of this user alone, and a key that no other process can guess. Several hosts have
 * neither in common. */
bool gp_launch_open(gp_launch_job *j, const gp_options *options) {
  unsigned char bytes[16];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, j->notes)) {
    fprintf(stderr, GP_PROGRAM ": --ranks: no sockets: %s\n", strerror(errno));
    return false;
  }
  if (options->nodes > 1) return meet_at(options->master), true;
  meet_at_loopback();
  snprintf(j->folder, sizeof j->folder, "/tmp/gpipe-ranks-XXXXXX");
  if (!mkdtemp(j->folder)) {
    fprintf(stderr, GP_PROGRAM ": --ranks: no folder for sockets in /tmp: %s\n", strerror(errno));
    return false;
  }
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return false;
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(j->key + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

void gp_launch_close(const gp_launch_job *j) {
  char path[96];
  close(j->notes[0]);
  close(j->notes[1]);
  if (!*j->folder) return;
  for (int r = 0; r < j->count; r++) {
    snprintf(path, sizeof path, "%s/%d", j->folder, r);
    unlink(path);
    gp_ranks_forget_end(j->folder, r);
  }
  rmdir(j->folder);
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

bool gp_launch_start(gp_launch_job *j, int r, char **argv) {
  const pid_t launcher = getpid();
  gp_launch_rank *p = &j->ranks[r];
  if (gp_launch_has_relay(j, r) && !gp_relay_open(&p->relay, j->first + r, j->shows)) return false;
  fflush(NULL);
  p->id = fork();
  if (p->id == 0) run_rank(j, r, launcher, argv);
  if (gp_launch_has_relay(j, r)) gp_relay_started(&p->relay);
  if (p->id < 0) fprintf(stderr, GP_PROGRAM ": --ranks: no process: %s\n", strerror(errno));
  p->over = p->id < 0;
  j->left += !p->over;
  return !p->over;
}
