/* tests/cuda/block.cpp - which thread of a block runs, and on which stack.
 *
 * A thread runs until it waits for others. One that never waits costs a call and no switch: the
 * stack it ran on takes the next thread. One that waits keeps its stack, and another stack goes on.
 * Who is ready goes first, so that a warp that talks to itself needs 32 stacks, not 1024. */
#include "block.h"

#include <cstdlib>

/* ---- stacks -------------------------------------------------------------------------------- */

static void enter_work() { gp_host_fibers->work(); }

void Fibers::go(gp_context *to) {
  gp_context *self = running;
  if (self == to) return;
  running = to;
  gp_context_switch(self, to);
}

/* A stack that nobody uses; NULL where there is no memory. */
gp_context *Fibers::idle_stack() {
  if (idle.empty()) {
    std::unique_ptr<gp_context> stack(new gp_context);
    if (gp_context_new(stack.get(), enter_work) != 0) return NULL;
    idle.push_back(stack.get());
    stacks.push_back(std::move(stack));
  }
  gp_context *stack = idle.back();
  idle.pop_back();
  return stack;
}

/* Where to go on when the running thread cannot. */
gp_context *Fibers::next_stack() {
  if (ready.count > 0) return ready.pop()->on;
  gp_context *stack = fresh < count ? idle_stack() : NULL;
  return stack ? stack : &space;
}

/* What every stack does: run threads that have not begun, then let others go on. */
void Fibers::work() {
  gp_context *self = running;
  while (!over) {
    while (Thread *thread = next_fresh()) {
      show(thread);
      kernel->run(kernel->arguments);
      end(thread);
    }
    idle.push_back(self);
    go(ready.count > 0 ? ready.pop()->on : &space);
  }
}

/* Stacks end one by one, so that sanitizers can forget them. */
Fibers::~Fibers() {
  over = true;
  for (gp_context *stack : idle) {
    running = stack;
    gp_context_switch(&space, stack);
  }
  for (auto &stack : stacks) gp_context_free(stack.get());
  gp_context_free(&space);
}

/* ---- threads ------------------------------------------------------------------------------- */

Thread *Fibers::next_fresh() {
  if (ready.count > 0 || fresh == count) return NULL;
  Thread *thread = &threads[reverse ? count - 1 - fresh : fresh];
  fresh++;
  return thread;
}

/* Make it the running one: threadIdx and so on are its. */
void Fibers::show(Thread *thread) {
  const unsigned rank = (unsigned)thread->rank, x = view.block_size.x, y = view.block_size.y;
  current = thread;
  thread->state = GOES;
  view.thread = uint3{rank % x, rank / x % y, rank / x / y};
  view.lane = thread->rank % WARP;
}

void Fibers::end(Thread *thread) {
  thread->state = ENDED;
  warps[thread->rank / WARP].alive &= ~(1u << thread->rank % WARP);
  ended++;
}

void Fibers::wait(Thread *thread, State why, int line) {
  thread->on = running;
  thread->state = why;
  thread->line = line;
  go(next_stack());
  show(thread);
}

void Fibers::wake(Thread *thread) {
  thread->state = GOES;
  ready.push(thread);
}

/* The launch fails; the thread never goes on. */
void Fibers::fail() {
  failed = true;
  go(&space);
  abort(); /* nobody comes back to a block that was given up */
}
