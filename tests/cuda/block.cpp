/* tests/cuda/block.cpp - which thread of a block runs, and on which stack.
 *
 * A thread runs until it waits for others. A thread that never waits costs a call and no switch:
 * the stack it ran on takes the next thread. A thread that waits keeps its stack, and another stack
 * goes on. Ready threads go before new ones, so that a warp whose lanes wait for each other needs
 * 32 stacks, not 1024. */
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

/* Returns a stack that is not in use; NULL where there is no memory. */
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

/* Returns the stack to go on with when the running thread must wait. */
gp_context *Fibers::next_stack() {
  if (ready.count > 0) return ready.pop()->on;
  gp_context *stack = fresh < count ? idle_stack() : NULL;
  return stack ? stack : &space;
}

/* The loop of every stack: runs threads that have not begun, then lets others go on. */
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

/* Ends the stacks one by one, so that sanitizers can forget them. */
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

/* Makes the thread the running one: threadIdx and so on are its own. */
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

/* Fails the launch; the thread never goes on. */
void Fibers::fail() {
  failed = true;
  go(&space);
  abort(); /* no thread of a block that was given up runs again */
}
