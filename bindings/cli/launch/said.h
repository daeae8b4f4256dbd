/* bindings/cli/launch/said.h - the error that ended rank 0, for the launcher of its job.
 *
 * Rank 0 writes to the terminal by itself. Another rank that fails first with the same error, as a
 * mistake in the script makes all ranks fail, would show it a second time. */
#ifndef GP_BINDINGS_SAID_H
#define GP_BINDINGS_SAID_H

#include <stdbool.h>
#include <stddef.h>

/* In the launcher: a file in memory for the text; -1: there is none. */
int gp_said_open(void);
void gp_said_pass(int file); /* in rank 0, before it becomes the program */
/* In the program, when it begins: take what the launcher has passed. */
void gp_said_take(void);
void gp_said_note(const char *text); /* an error that ends it */
/* In the launcher: does a rank's output have the text that rank 0 has ended with? */
bool gp_said_is_in(int file, const char *output, size_t length);
/* Does that text tell another rank's error, "rank 1: ..."? */
bool gp_said_tells_of(int file, int rank);

#endif
