/* tests/cuda/block.h - the block that a thread of the host runs: its threads, warps and stacks.
 *
 *   fibers.cpp  grids, block by block; what kernels and launches call
 *   block.cpp   which thread runs on which stack
 *   meet.cpp    barriers and exchanges within warps
 */
#ifndef GP_TESTS_CUDA_BLOCK_H
#define GP_TESTS_CUDA_BLOCK_H

#include <memory>
#include <vector>

#include "context.h"
#include "fibers.h"

const int WARP = 32, MOST_THREADS = 1024;

enum State { FRESH, GOES, AT_BARRIER, IN_WARP, ENDED };

struct Thread {
  gp_context *on; /* its stack while it waits */
  State state;
  int rank, line; /* line: where the thread waits */
  gp_host_exchange what;
  unsigned mask;
  uint64_t value; /* what the thread gives, then what it receives */
  int source;
};

struct Warp {
  unsigned alive, waiting; /* one bit per lane */
};

/* A queue, first in, first out, in which every thread stands at most once. */
struct Queue {
  Thread *list[MOST_THREADS];
  int first, count;

  void clear() { first = count = 0; }
  void push(Thread *thread) { list[(first + count++) % MOST_THREADS] = thread; }
  Thread *pop() {
    Thread *thread = list[first];
    first = (first + 1) % MOST_THREADS, count--;
    return thread;
  }
};

/* All that one host thread needs to run blocks. */
struct Fibers {
  gp_context space; /* the stack of the launching thread */
  std::vector<std::unique_ptr<gp_context>> stacks;
  std::vector<gp_context *> idle;
  gp_context *running;
  bool over; /* tells the stacks to end */

  const gp_host_kernel *kernel;
  gp_host_view view;
  bool reverse, failed;
  int count, fresh, ended, arrived,
      holding; /* threads: all, started, ended, at the barrier, and with `holds` */
  Thread threads[MOST_THREADS];
  Warp warps[MOST_THREADS / WARP];
  Queue ready;
  Thread *current;

  Fibers() : running(&space), over(false) { gp_context_here(&space); }
  ~Fibers();

  cudaError_t run_grid(const gp_host_kernel &of, const gp_host_geometry &geometry);
  bool run_block();
  void begin_block();
  void describe_deadlock();
  void give_up();
  [[noreturn]] void fail();

  void work();
  Thread *next_fresh();
  gp_context *idle_stack();
  gp_context *next_stack();
  void go(gp_context *to);
  void show(Thread *thread);
  void wait(Thread *thread, State why, int line);
  void wake(Thread *thread);
  void end(Thread *thread);

  int barrier(bool holds, int line);
  void open_barrier(int line);
  uint64_t meet(Thread *self, Warp *warp);
  void trade(const Warp *warp, const Thread *self);
};

/* The calling thread's fibers, made by its first launch. */
extern thread_local std::unique_ptr<Fibers> gp_host_fibers;

/* Sets the text of the calling thread. */
void gp_host_write_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
