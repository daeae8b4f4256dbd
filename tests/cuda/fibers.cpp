/* tests/cuda/fibers.cpp - the threads of a block as fibers of one thread of the host.
 *
 * A thread of a kernel runs until it waits for others. One that never waits costs a call and no switch: the
 * stack it ran on takes the next thread. One that waits keeps its stack, and another stack goes on. Who is
 * ready goes first, so that a warp that talks to itself needs 32 stacks, not 1024. When nobody can go on and
 * not all have ended, the barrier was divergent: the block is given up and the launch fails. */
#include "fibers.h"

#include "context.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

thread_local gp_host_view *gp_host_now;

namespace {

const int WARP = 32, MOST_THREADS = 1024;
const size_t MOST_SHARED = 227 << 10; /* of sm_90; sm_80 has 163 KiB */

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

thread_local char fault_text[512];

void write_fault(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(fault_text, sizeof fault_text, format, list);
  va_end(list);
}

/* All that one thread of the host needs to run blocks. */
struct Fibers {
  gp_context home; /* the stack of whoever launches */
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

  Fibers() : running(&home), over(false) { gp_context_here(&home); }
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

thread_local std::unique_ptr<Fibers> mine;

/* ---- stacks -------------------------------------------------------------------------------- */

void enter_work() { mine->work(); }

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
  return stack ? stack : &home;
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
    go(ready.count > 0 ? ready.pop()->on : &home);
  }
}

/* Stacks end one by one, so that sanitizers can forget them. */
Fibers::~Fibers() {
  over = true;
  for (gp_context *stack : idle) {
    running = stack;
    gp_context_switch(&home, stack);
  }
  for (auto &stack : stacks) gp_context_free(stack.get());
  gp_context_free(&home);
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
  go(&home);
  abort(); /* nobody comes back to a block that was given up */
}

/* ---- blocks -------------------------------------------------------------------------------- */

void Fibers::begin_block() {
  fresh = ended = arrived = holding = 0;
  failed = false;
  ready.clear();
  for (int i = 0; i < count; i++) threads[i] = Thread{};
  for (int i = 0; i < count; i++) threads[i].rank = i;
  for (int first = 0; first < count; first += WARP) {
    const int lanes = count - first < WARP ? count - first : WARP;
    warps[first / WARP] = {lanes == WARP ? ~0u : (1u << lanes) - 1, 0};
  }
}

/* Who waits where, as far as it differs. */
void Fibers::describe_deadlock() {
  char text[256];
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < count; i++) {
    const Thread *t = &threads[i];
    bool told = t->state == ENDED;
    int alike = 0;
    for (int k = 0; k < count; k++) {
      const bool same = threads[k].state == t->state && threads[k].line == t->line;
      told = told || (same && k < i);
      alike += same;
    }
    if (told || used >= sizeof text) continue;
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%d wait at %s of line %d, ", alike,
                         t->state == AT_BARRIER ? "the barrier" : "the warp operation", t->line);
  }
  write_fault("kernel %s, block (%u, %u, %u): of %d threads %s%d have ended: not all of them meet",
              kernel->name, view.block.x, view.block.y, view.block.z, count, text, ended);
}

/* Stacks of threads that will never end begin anew. */
void Fibers::give_up() {
  idle.clear();
  for (auto &stack : stacks) {
    gp_context_restart(stack.get());
    idle.push_back(stack.get());
  }
}

bool Fibers::run_block() {
  begin_block();
  gp_context *stack = idle_stack();
  if (stack) go(stack);
  if (ended == count) return true;
  if (!stack) {
    write_fault("kernel %s: no memory for a stack", kernel->name);
  } else if (!failed) {
    describe_deadlock();
  }
  give_up();
  return false;
}

uint3 block_at(uint64_t number, dim3 grid) {
  const uint64_t x = grid.x, y = grid.y;
  return uint3{(unsigned)(number % x), (unsigned)(number / x % y), (unsigned)(number / x / y)};
}

cudaError_t Fibers::run_grid(const gp_host_kernel &of, const gp_host_geometry &geometry) {
  const dim3 grid = geometry.grid, block = geometry.block;
  const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
  const char *order = getenv("GPIPE_TEST_REVERSE");
  reverse = order && strcmp(order, "1") == 0;
  kernel = &of;
  count = (int)(block.x * block.y * block.z);
  view = gp_host_view{{}, {}, block, grid, 0, NULL};
  /* Not rounded up: address sanitizer finds the first byte too far. */
  if (geometry.shared > 0 && posix_memalign(&view.shared, 16, geometry.shared) != 0) {
    return cudaErrorMemoryAllocation;
  }
  gp_host_now = &view;
  cudaError_t error = cudaSuccess;
  for (uint64_t i = 0; i < blocks && error == cudaSuccess; i++) {
    view.block = block_at(reverse ? blocks - 1 - i : i, grid);
    if (view.shared) memset(view.shared, 255, geometry.shared);
    if (!run_block()) error = cudaErrorUnknown;
  }
  gp_host_now = NULL;
  free(view.shared);
  return error;
}

/* ---- meeting ------------------------------------------------------------------------------- */

/* All are there: give each the count and let it go on. */
void Fibers::open_barrier(int line) {
  const int holds = holding;
  arrived = holding = 0;
  for (int i = 0; i < count; i++) {
    Thread *thread = &threads[i];
    thread->value = (uint64_t)holds;
    if (thread == current) continue;
    if (thread->line != line) {
      write_fault(
          "kernel %s, block (%u, %u, %u): threads wait at different barriers, of lines %d and %d",
          kernel->name, view.block.x, view.block.y, view.block.z, line, thread->line);
      fail();
    }
    wake(thread);
  }
}

int Fibers::barrier(bool holds, int line) {
  Thread *self = current;
  holding += holds;
  if (++arrived < count) {
    wait(self, AT_BARRIER, line);
  } else {
    open_barrier(line);
  }
  return (int)self->value;
}

/* All lanes of the mask are there: each gets what it came for. */
void Fibers::trade(const Warp *warp, const Thread *self) {
  Thread *lanes = &threads[(warp - warps) * WARP];
  uint64_t values[WARP] = {}, votes = 0;
  for (int i = 0; i < WARP; i++) {
    if (!(self->mask >> i & 1)) continue;
    const Thread *lane = &lanes[i];
    values[i] = lane->value;
    votes |= (uint64_t)(lane->value != 0) << i;
    const bool reads_none = lane->what == GP_HOST_SHUFFLE && !(self->mask >> lane->source & 1);
    if (lane->mask == self->mask && lane->what == self->what && !reads_none) continue;
    write_fault("kernel %s, line %d: lane %d %s", kernel->name, lane->line, i,
                reads_none ? "reads a lane that its mask does not name"
                           : "and others that it meets have other masks or operations");
    fail();
  }
  for (int i = 0; i < WARP; i++) {
    if (!(self->mask >> i & 1)) continue;
    lanes[i].value = self->what == GP_HOST_SHUFFLE ? values[lanes[i].source] : votes;
    if (&lanes[i] != self) wake(&lanes[i]);
  }
}

uint64_t Fibers::meet(Thread *self, Warp *warp) {
  const unsigned bit = 1u << self->rank % WARP;
  if (!(self->mask & bit) || (self->mask & ~warp->alive)) {
    write_fault("kernel %s, line %d: the mask %08x %s", kernel->name, self->line, self->mask,
                self->mask & bit ? "names lanes that have ended or do not exist"
                                 : "does not name the lane that gives it");
    fail();
  }
  warp->waiting |= bit;
  if ((warp->waiting & self->mask) == self->mask) {
    trade(warp, self);
    warp->waiting &= ~self->mask;
  } else {
    wait(self, IN_WARP, self->line);
  }
  return self->value;
}

/* ---- geometry ------------------------------------------------------------------------------ */

/* As CUDA's programming guide says for compute capability 9.0. */
bool is_possible(const gp_host_geometry &g) {
  const dim3 grid = g.grid, block = g.block;
  const bool some = grid.x && grid.y && grid.z && block.x && block.y && block.z;
  const bool grid_fits = grid.x <= INT32_MAX && grid.y <= 65535 && grid.z <= 65535;
  const bool block_fits = block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
                          (uint64_t)block.x * block.y * block.z <= MOST_THREADS;
  return some && grid_fits && block_fits && g.shared <= MOST_SHARED;
}

} // namespace

/* ---- what others call ---------------------------------------------------------------------- */

const char *gp_host_fault(void) { return fault_text; }

cudaError_t gp_host_run(const gp_host_kernel &kernel, const gp_host_geometry &geometry) {
  if (!is_possible(geometry) || gp_host_now) {
    const dim3 g = geometry.grid, b = geometry.block;
    write_fault("kernel %s: a grid of %ux%ux%u blocks of %ux%ux%u threads with %zu bytes cannot be "
                "launched%s",
                kernel.name, g.x, g.y, g.z, b.x, b.y, b.z, geometry.shared,
                gp_host_now ? " by a kernel" : "");
    return cudaErrorInvalidConfiguration;
  }
  if (!mine) mine.reset(new Fibers);
  return mine->run_grid(kernel, geometry);
}

int gp_host_barrier(bool holds, int line) { return mine->barrier(holds, line); }

uint64_t gp_host_meet(gp_host_exchange what, unsigned mask, uint64_t value, int source, int line) {
  Fibers *fibers = mine.get();
  Thread *self = fibers->current;
  self->what = what, self->mask = mask, self->value = value, self->source = source,
  self->line = line;
  return fibers->meet(self, &fibers->warps[self->rank / WARP]);
}
