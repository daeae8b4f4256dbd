/* bindings/cli/launch.c - gpipe-lua --ranks N: starts N processes of a job and watches over them.
 *
 * Every process runs the same command line without --ranks; the environment says which rank it is,
 * where the sockets are and what the job's key is. With --node K/M they are the ranks of one host
 * of M, each of which runs this command; they meet at --master, and know the key by GPIPE_JOB_KEY.
 * Rank 0 has this terminal. The output of the others is read here (relay.c). When one fails, the
 * others have some seconds to end by themselves, then they are stopped; and if this process dies,
 * the kernel kills them. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "relay.h"
#include "said.h"

#include "gpipe.h"

enum { GRACE_MS = 5000, KILL_MS = 3000, TICK_MS = 100 };

typedef struct process {
  pid_t id;
  bool over, stopped;
  bool goes_on; /* it has said that the job can, from a checkpoint */
  int code;     /* exit code, or 128 + signal */
  int64_t ended_at;
  gp_relay relay;
} process;

typedef struct job {
  process *ranks;
  int count, left;
  int first, total;              /* the first one's number in the job, and how many that has */
  int first_failed;              /* rank; -1: none */
  int signals;                   /* signalfd */
  int notes[2];                  /* sockets: what ranks write to the second one is read here */
  int64_t failed_at, stopped_at; /* milliseconds; 0: not yet */
  char folder[64], key[33];
  bool shows;
  bool prompts; /* there is no script */
  bool stops;   /* a signal was passed on, which ends the ranks */
  int said;     /* said.h */
} job;

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- starting -------------------------------------------------------------------------------- */

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
static bool open_job(job *j, const gp_options *options) {
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

static void close_job(const job *j) {
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

/* Rank 0 of the job has this terminal. */
static bool has_relay(const job *j, int r) { return j->first + r > 0; }

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

static void tell_rank(const job *j, int r) {
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
static _Noreturn void run_rank(const job *j, int r, pid_t launcher, char **argv) {
  sigset_t none;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(GP_EXIT_ERROR); /* it died before the line above */
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (has_relay(j, r))
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

static bool start_rank(job *j, int r, char **argv) {
  const pid_t launcher = getpid();
  process *p = &j->ranks[r];
  if (has_relay(j, r) && !gp_relay_open(&p->relay, j->first + r, j->shows)) return false;
  fflush(NULL);
  p->id = fork();
  if (p->id == 0) run_rank(j, r, launcher, argv);
  if (has_relay(j, r)) gp_relay_started(&p->relay);
  if (p->id < 0) fprintf(stderr, GP_PROGRAM ": --ranks: no process: %s\n", strerror(errno));
  p->over = p->id < 0;
  j->left += !p->over;
  return !p->over;
}

/* ---- watching -------------------------------------------------------------------------------- */

static void send_all(const job *j, int signal) {
  for (int r = 0; r < j->count; r++)
    if (!j->ranks[r].over && j->ranks[r].id > 0) kill(j->ranks[r].id, signal);
}

/* Those that wait for the rank to join the job look for this. After the first failure ranks end
 * because of it. */
static void tell_end(const job *j, int r) {
  const int code = j->ranks[r].code;
  char how[96];
  if (code > 128)
    snprintf(how, sizeof how, "was ended by signal %d (%s)", code - 128, strsignal(code - 128));
  else
    snprintf(how, sizeof how, "has ended with exit code %d", code);
  if (*j->folder && j->first_failed < 0) (void)gp_ranks_note_end(j->folder, r, how);
}

static void note_end(job *j, int r, int status) {
  process *p = &j->ranks[r];
  p->over = true;
  p->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  p->ended_at = now_ms();
  j->left--;
  tell_end(j, r);
  if (!p->code || j->first_failed >= 0) return;
  j->first_failed = r;
  j->failed_at = now_ms();
}

/* Note the ranks that have ended, and those that were stopped or continued. */
static void collect(job *j) {
  int status;
  for (int r = 0; r < j->count; r++) {
    process *p = &j->ranks[r];
    if (p->over || waitpid(p->id, &status, WNOHANG | WUNTRACED | WCONTINUED) != p->id) continue;
    p->stopped = WIFSTOPPED(status) || (p->stopped && !WIFCONTINUED(status));
    if (WIFEXITED(status) || WIFSIGNALED(status)) note_end(j, r, status);
  }
}

/* Pass a signal on. Ctrl-C reaches all processes of the terminal: the kernel has sent it. */
static void take_signals(job *j) {
  struct signalfd_siginfo info;
  while (read(j->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (info.ssi_code != SI_KERNEL) send_all(j, (int)info.ssi_signo);
    j->stops = j->stops || info.ssi_signo != SIGUSR1;
  }
}

/* Hear which ranks can go on from a checkpoint. */
static void take_notes(job *j) {
  gp_rank_note note;
  while (recv(j->notes[0], &note, sizeof note, 0) == (ssize_t)sizeof note)
    if (note.rank >= j->first && note.rank < j->first + j->count)
      j->ranks[note.rank - j->first].goes_on = note.goes_on != 0;
}

/* Stop what goes on after a rank has failed: first it is asked, then it is killed. */
static void press(job *j) {
  if (!j->failed_at || !j->left) return;
  const int64_t now = now_ms();
  for (int r = 0; r < j->count; r++) /* one that is stopped cannot end by itself */
    if (j->ranks[r].stopped && !j->ranks[r].over) kill(j->ranks[r].id, SIGKILL);
  if (!j->stopped_at && now - j->failed_at > GRACE_MS) {
    send_all(j, SIGTERM);
    j->stopped_at = now;
  }
  if (j->stopped_at && now - j->stopped_at > KILL_MS) send_all(j, SIGKILL);
}

static void watch(job *j) {
  struct pollfd *fds = calloc((size_t)(2 * j->count + 1), sizeof *fds);
  while (fds && j->left) {
    nfds_t count = 0;
    fds[count++] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    for (int r = 0; r < j->count; r++) count += gp_relay_list(&j->ranks[r].relay, fds + count);
    poll(fds, count, TICK_MS);
    take_signals(j);
    for (int r = 0; r < j->count; r++) gp_relay_read(&j->ranks[r].relay);
    collect(j);
    take_notes(j);
    press(j);
  }
  for (int r = 0; r < j->count; r++) gp_relay_read(&j->ranks[r].relay);
  free(fds);
}

/* ---- the whole ------------------------------------------------------------------------------- */

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
static int code_of(const job *j, int failed) {
  const bool lost = j->ranks[failed].code > 128;
  for (int r = 0; r < j->count; r++)
    if (j->ranks[r].code == GP_EXIT_AGAIN || (lost && j->ranks[r].goes_on)) return GP_EXIT_AGAIN;
  return j->ranks[failed].code;
}

/* The rank that failed first; -1: none. One that was killed comes before those that have ended at
 * the same time because of it, which the kernel may have told of before. */
static int find_failed(const job *j) {
  for (int r = 0; r < j->count; r++)
    if (j->ranks[r].code > 128 && !j->ranks[r].stopped &&
        j->ranks[r].ended_at - j->failed_at < 2 * TICK_MS)
      return r;
  return j->first_failed;
}

/* Has rank 0 said the same? Then it has ended with the same error, or its run was stopped, too, or
 * it has found the same fault in the command line. */
static bool is_said(const job *j, int r) {
  const gp_relay *relay = &j->ranks[r].relay;
  const int code = j->ranks[r].code;
  if (j->first) return false;
  if (code == GP_EXIT_AGAIN || code == GP_EXIT_USAGE) return j->ranks[0].code == code;
  return gp_said_is_in(j->said, relay->kept, relay->kept_length);
}

/* Say which rank failed first, unless it was rank 0, which has said so itself, or a signal ended
 * all. */
static int report(const job *j) {
  const int r = find_failed(j);
  if (r < 0) return GP_EXIT_OK;
  const process *p = &j->ranks[r];
  if (j->stops) return p->code;
  if (has_relay(j, r) && !is_said(j, r)) gp_relay_show_errors(&p->relay);
  if (p->code > 128)
    fprintf(stderr, GP_PROGRAM ": rank %d was ended by signal %d (%s)\n", j->first + r,
            p->code - 128, strsignal(p->code - 128));
  return code_of(j, r);
}

/* Run the job once. stops: was it told to stop? */
static int run_job(char **argv, const gp_options *options, int signals, bool *stops) {
  const int hosts = options->nodes ? options->nodes : 1;
  job j = {.count = options->ranks,
           .first = options->ranks * options->node,
           .total = options->ranks * hosts,
           .first_failed = -1,
           .signals = signals,
           .said = gp_said_open(),
           .shows = options->log_ranks,
           .prompts = !argv[options->script] && !options->execute && !options->interactive};
  j.ranks = calloc((size_t)j.count, sizeof *j.ranks);
  if (!j.ranks || !open_job(&j, options)) return GP_EXIT_ERROR;
  bool good = true;
  for (int r = 0; good && r < j.count; r++) good = start_rank(&j, r, argv);
  if (!good) send_all(&j, SIGKILL);
  watch(&j);
  const int code = good ? report(&j) : GP_EXIT_ERROR;
  for (int r = 0; r < j.count; r++) gp_relay_close(&j.ranks[r].relay);
  close_job(&j);
  if (j.said >= 0) close(j.said);
  free(j.ranks);
  *stops = j.stops;
  return code;
}

/* A job that can go on from a checkpoint, because a rank was lost and not because it was told to
 * stop, is started again as often as was asked for. */
int gp_launch(char **argv, const gp_options *options) {
  const int signals = catch_signals();
  if (signals < 0) return GP_EXIT_ERROR;
  for (int again = 1;; again++) {
    bool stops = false;
    const int code = run_job(argv, options, signals, &stops);
    if (code != GP_EXIT_AGAIN || stops || again > options->restarts) return code;
    fprintf(stderr, GP_PROGRAM ": starting the job again (%d of %d)\n", again, options->restarts);
  }
}
