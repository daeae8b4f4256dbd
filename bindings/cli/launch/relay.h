/* bindings/cli/launch/relay.h - the output of a rank other than 0, which has no terminal.
 *
 * It is shown line by line behind the rank's number, or dropped but for the end of its errors,
 * which is shown if the rank fails first. */
#ifndef GP_BINDINGS_RELAY_H
#define GP_BINDINGS_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum { GP_RELAY_LINE = 4096, GP_RELAY_KEPT = 16384 };

/* One of the two streams. */
typedef struct gp_relay_stream {
  int from, to; /* ends of a pipe; -1: closed */
  char line[GP_RELAY_LINE];
  size_t length;
} gp_relay_stream;

typedef struct gp_relay {
  int rank;
  bool shows;
  gp_relay_stream streams[2]; /* output, errors */
  char *kept;                 /* the end of the errors */
  size_t kept_length;
} gp_relay;

bool gp_relay_open(gp_relay *relay, int rank, bool shows);
void gp_relay_close(gp_relay *relay);
void gp_relay_attach(const gp_relay *relay); /* in the rank: write to the pipes from now on */
void gp_relay_started(gp_relay *relay);      /* in the launcher: only the rank writes */
/* Add what can be read to a list for poll; returns how many. */
nfds_t gp_relay_list(const gp_relay *relay, struct pollfd *fds);
void gp_relay_read(gp_relay *relay);
void gp_relay_show_errors(const gp_relay *relay);

#endif
