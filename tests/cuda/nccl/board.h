/* tests/cuda/nccl/board.h - what all processes of a job have given the fake NCCL, in memory that
 * they share, and who waits for whom.
 *
 * NCCL may block a send until its receive is posted, so the board is judged without any room: an
 * operation is over when it and its counterpart are both the first of their streams. Operations
 * that can never be over wait for each other in a cycle, whether this run has hung or not. */
#ifndef GP_TESTS_NCCL_BOARD_H
#define GP_TESTS_NCCL_BOARD_H

#include <stdbool.h>
#include <stddef.h>

enum { BOARD_TEXT = 1000 };

typedef struct board_item board_item;

/* Note that this process has a rank of a communicator. Without FAKE_NCCL_REPORT there is no board,
 * and nothing is noted. */
void board_join(const char *comm, int rank);
/* Note an operation, in the order of its stream. number: how many the communicator had before.
 * NULL: the board is full, or there is none. */
board_item *board_post(const void *stream, const char *comm, int rank, int number, bool sends);
/* The operation runs, or is over; item: optional. */
void board_begin(board_item *item);
void board_end(board_item *item);

/* Find operations that wait for each other; text receives the cycle, once in a job, and then "".
 * hangs: this process has waited for long, so that an operation which another process has not
 * posted counts as waiting for the one in which that process is. */
bool board_find_cycle(bool hangs, char text[BOARD_TEXT]);

#endif
