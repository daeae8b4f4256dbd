/* bindings/cli/launch/said.c - see said.h. */
#include "cli/launch/said.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/launch/relay.h"

static const char VARIABLE[] = "GPIPE_RANKS_SAID";

static int taken = -1;

int gp_said_open(void) { return memfd_create("gpipe said", MFD_CLOEXEC); }

void gp_said_pass(int file) {
  char number[16];
  if (file < 0 || fcntl(file, F_SETFD, 0)) return;
  snprintf(number, sizeof number, "%d", file);
  setenv(VARIABLE, number, 1);
}

/* Programs that the script starts get neither the file nor the word of it. */
void gp_said_take(void) {
  const char *number = getenv(VARIABLE);
  if (!number) return;
  taken = (int)strtol(number, NULL, 10);
  if (fcntl(taken, F_SETFD, FD_CLOEXEC)) taken = -1;
  unsetenv(VARIABLE);
}

/* The last error counts. */
void gp_said_note(const char *text) {
  if (taken < 0 || ftruncate(taken, 0) || lseek(taken, 0, SEEK_SET) < 0) return;
  dprintf(taken, GP_PROGRAM ": %s\n", text);
}

/* Returns its length; longer ones than relays keep are cut. */
static size_t read_text(int file, char text[GP_RELAY_KEPT]) {
  const ssize_t n = file < 0 ? -1 : pread(file, text, GP_RELAY_KEPT, 0);
  return n > 0 ? (size_t)n : 0;
}

bool gp_said_is_in(int file, const char *output, size_t length) {
  char text[GP_RELAY_KEPT];
  const size_t n = read_text(file, text);
  return n > 0 && memmem(output, length, text, n);
}

bool gp_said_tells_of(int file, int rank) {
  char text[GP_RELAY_KEPT], words[32];
  const size_t n = read_text(file, text);
  snprintf(words, sizeof words, "rank %d: ", rank);
  return n > 0 && memmem(text, n, words, strlen(words));
}
