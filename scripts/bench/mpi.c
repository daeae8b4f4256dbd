/* scripts/bench/mpi.c - what MPI itself takes between two processes: one way of 8 bytes, and 1 MiB
 * with 16 messages under way, as osu_latency and osu_bw measure. Prints "mpi us GB/s". */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { SMALL = 8, LARGE = 1 << 20, WINDOW = 16, WARM = 1000, PINGS = 200000, ROUNDS = 200 };

static char incoming[LARGE], outgoing[LARGE];
static int own, other;

static double ping(int times) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < times; i++) {
    if (!own) MPI_Send(outgoing, SMALL, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    MPI_Recv(incoming, SMALL, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (own) MPI_Send(outgoing, SMALL, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  }
  return 1e6 * (MPI_Wtime() - begin) / times / 2;
}

static double flood(int rounds) {
  MPI_Request requests[WINDOW];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < rounds; i++) {
    for (int k = 0; k < WINDOW; k++)
      if (own)
        MPI_Irecv(incoming, LARGE, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[k]);
      else
        MPI_Isend(outgoing, LARGE, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[k]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (own) MPI_Send(outgoing, SMALL, MPI_BYTE, other, 3, MPI_COMM_WORLD);
    if (!own) MPI_Recv(incoming, SMALL, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return 1e-9 * rounds * WINDOW * LARGE / (MPI_Wtime() - begin);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  other = 1 - own;
  memset(incoming, 1, sizeof incoming); /* pages of its own */
  memset(outgoing, 2, sizeof outgoing);
  ping(WARM);
  const double latency = ping(PINGS);
  flood(8);
  const double rate = flood(ROUNDS);
  if (!own) printf("mpi %.2f %.3f\n", latency, rate);
  MPI_Finalize();
  return 0;
}
