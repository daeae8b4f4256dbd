/* device/cpu/bf16/trial.c - see trial.h. */
#include "device/cpu/bf16/trial.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 70, ROWS = 37 }; /* neither divides into tiles */

/* Filled before the child is forked, so that the child allocates nothing. */
static struct {
  uint16_t a[ROWS][DEPTH], panel[DEPTH / 2][GP_BF16_COLUMNS][2];
  float got[GP_BF16_ROWS][GP_BF16_COLUMNS], want[GP_BF16_ROWS][GP_BF16_COLUMNS];
} trial;

/* 1, 2 and -1 in bf16: every sum is exact, so all paths agree. */
static uint16_t sample(int i) { return (const uint16_t[]){0x3f80, 0x4000, 0xbf80}[i * i % 7 % 3]; }

static void fill(void) {
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < DEPTH; k++) trial.a[i][k] = sample(3 * i + k);
  for (int p = 0; p < DEPTH / 2; p++)
    for (int j = 0; j < 2 * GP_BF16_COLUMNS; j++) trial.panel[p][j / 2][j % 2] = sample(p + 5 * j);
  memset(trial.got, 0, sizeof trial.got);
  memset(trial.want, 0, sizeof trial.want);
}

static gp_bf16_rows rows(void) {
  return (gp_bf16_rows){trial.a, ROWS, sizeof trial.a[0], 2 * sizeof(uint16_t)};
}

/* Run the tiles in the child: without a core file, and without the host's signal handlers. */
static _Noreturn void run(gp_bf16_tiles *tiles) {
  const gp_bf16_rows a = rows();
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  signal(SIGILL, SIG_DFL);
  signal(SIGSEGV, SIG_DFL);
  tiles(&a, DEPTH, trial.panel, trial.got);
  _exit(memcmp(trial.got, trial.want, sizeof trial.got) == 0 ? 0 : 1);
}

bool gp_bf16_try(gp_bf16_tiles *tiles) {
  fill();
  const gp_bf16_rows a = rows();
  gp_bf16_emulated(&a, DEPTH, trial.panel, trial.want);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) run(tiles);
  int status = -1;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
