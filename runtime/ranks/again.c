/* ranks/again.c - can the job go on from a checkpoint? What this rank knows of it, and what its
 * launcher is told.
 *
 * A rank ends with GP_RANKS_AGAIN by itself if it can. One that is killed cannot, and if that
 * happens to all ranks of a host, only the launcher is left to return the code. So each rank tells
 * it beforehand, by a socket that it has inherited. */
#include <stdlib.h>
#include <sys/socket.h>

#include "ranks/net.h"

/* A launcher that is not ours gives no socket, and one that is gone hears nothing: then the note is
 * for this rank alone. */
static void tell_launcher(bool there) {
  const char *number = getenv(GP_RANKS_NOTES);
  const gp_rank_note note = {.rank = gp_ranks_own(), .goes_on = there};
  if (!number || !*number) return;
  (void)send((int)strtol(number, NULL, 10), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void gp_ranks_note_checkpoint(bool there) {
  if (atomic_exchange(&gp_net_place()->script.goes_on, there) == there) return;
  tell_launcher(there);
}

bool gp_ranks_can_go_on(void) { return atomic_load(&gp_net_place()->script.goes_on) != 0; }

void gp_ranks_note_hang(bool hangs) { atomic_store(&gp_net_place()->script.hung, hangs); }
