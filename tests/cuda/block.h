/* tests/cuda/block.h - the block that a thread of the host runs: its threads, warps and stacks.
 *
 *   fibers.cpp  grids, block by block; what kernels and launches call
 *   block.cpp   who runs on which stack
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
  int rank, line; /* line: where it waits */
  gp_host_exchange what;
  unsigned mask;
  uint64_t value; /* what it brings, then what it gets */
  int source;
};

struct Warp {
  unsigned alive, waiting; /* a bit per lane */
};

/* First in, first out; every thread is in it at most once. */
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

/* All that one thread of the host needs to run blocks. */
struct Fibers {
  gp_context space; /* the stack of whoever launches */
  std::vector<std::unique_ptr<gp_context>> stacks;
  std::vector<gp_context *> idle;
  gp_context *running;
  bool over; /* stacks are to end */

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

/* Of the calling thread, made by its first launch. */
extern thread_local std::unique_ptr<Fibers> gp_host_fibers;

/* Set the calling thread's text. */
void gp_host_write_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
