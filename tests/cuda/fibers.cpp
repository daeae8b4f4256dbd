/* tests/cuda/fibers.cpp - kernels run on the host, block by block.
 *
 * When no thread of a block can go on and not all have ended, a barrier was divergent: the block is
 * abandoned and the launch fails. */
#include "fibers.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "block.h"

__thread gp_host_view *gp_host_now;
thread_local std::unique_ptr<Fibers> gp_host_fibers;

static thread_local char fault_text[512];

void gp_host_write_fault(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(fault_text, sizeof fault_text, format, list);
  va_end(list);
}

const char *gp_host_fault(void) { return fault_text; }

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

/* Describes which threads wait where, one text for all that wait alike. */
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
  gp_host_write_fault(
      "kernel %s, block (%u, %u, %u): of %d threads %s%d have ended: not all of them meet",
      kernel->name, view.block.x, view.block.y, view.block.z, count, text, ended);
}

/* Restarts the stacks of threads that will never end. */
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
    gp_host_write_fault("kernel %s: no memory for a stack", kernel->name);
  } else if (!failed) {
    describe_deadlock();
  }
  give_up();
  return false;
}

static uint3 block_at(uint64_t number, dim3 grid) {
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
  /* The size is not rounded up, so that address sanitizer finds the first byte beyond it. */
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

/* ---- geometry ------------------------------------------------------------------------------ */

static const size_t MOST_SHARED = 227 << 10; /* limit of sm_90; sm_80 has 163 KiB */

/* The limits are those of CUDA's programming guide for compute capability 9.0. */
static bool is_possible(const gp_host_geometry &g) {
  const dim3 grid = g.grid, block = g.block;
  const bool some = grid.x && grid.y && grid.z && block.x && block.y && block.z;
  const bool grid_fits = grid.x <= INT32_MAX && grid.y <= 65535 && grid.z <= 65535;
  const bool block_fits = block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
                          (uint64_t)block.x * block.y * block.z <= MOST_THREADS;
  return some && grid_fits && block_fits && g.shared <= MOST_SHARED;
}

/* ---- what other files call ----------------------------------------------------------------- */

void (*gp_host_watch)(const gp_host_kernel &kernel);

cudaError_t gp_host_run(const gp_host_kernel &kernel, const gp_host_geometry &geometry) {
  if (!is_possible(geometry) || gp_host_now) {
    const dim3 g = geometry.grid, b = geometry.block;
    gp_host_write_fault(
        "kernel %s: a grid of %ux%ux%u blocks of %ux%ux%u threads with %zu bytes cannot be "
        "launched%s",
        kernel.name, g.x, g.y, g.z, b.x, b.y, b.z, geometry.shared,
        gp_host_now ? " by a kernel" : "");
    return cudaErrorInvalidConfiguration;
  }
  if (!gp_host_fibers) gp_host_fibers.reset(new Fibers);
  if (gp_host_watch) gp_host_watch(kernel);
  return gp_host_fibers->run_grid(kernel, geometry);
}

int gp_host_barrier(bool holds, int line) { return gp_host_fibers->barrier(holds, line); }

uint64_t gp_host_meet(gp_host_exchange what, unsigned mask, uint64_t value, int source, int line) {
  Fibers *fibers = gp_host_fibers.get();
  Thread *self = fibers->current;
  self->what = what, self->mask = mask, self->value = value, self->source = source,
  self->line = line;
  return fibers->meet(self, &fibers->warps[self->rank / WARP]);
}
