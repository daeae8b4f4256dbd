/* bindings/cli/output.c - reports output that cannot be written.
 *
 * C buffers standard output, so a full disk often shows only at the very end, after the last check;
 * and a pipe whose reader has ended kills the process silently. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* This calls only what a signal handler may call. The process still dies from the signal, because
 * its parent may check for that. */
static void on_broken_pipe(int number) {
  static const char text[] =
      GP_PROGRAM ": stopped, because the reader of a pipe that it writes to has ended (SIGPIPE)\n";
  ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  (void)written;
  signal(number, SIG_DFL);
  raise(number); /* delivered when this handler returns */
}

/* Runs as the program's last action. If the error came earlier, its reason is lost. */
static void close_output(void) {
  errno = 0;
  bool lost = ferror(stdout) != 0, failed = fflush(stdout) != 0;
  if (!lost && !failed) return;
  fprintf(stderr, GP_PROGRAM ": not all of the output could be written: %s\n",
          failed ? strerror(errno) : "standard output failed");
  _exit(GP_EXIT_ERROR);
}

/* If the process was started with SIGPIPE ignored, its writes return an error instead. */
void gp_output_install(void) {
  struct sigaction action = {.sa_handler = on_broken_pipe}, old;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
    sigaction(SIGPIPE, &action, NULL);
  atexit(close_output);
}
