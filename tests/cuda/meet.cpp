/* tests/cuda/meet.cpp - threads that wait for each other: barriers of a block, exchanges within a
 * warp.
 *
 * The thread that comes last gives all others their values and goes on at once. */
#include "block.h"

/* ---- meeting ------------------------------------------------------------------------------- */

/* All threads are there: gives each the count and lets it go on. */
void Fibers::open_barrier(int line) {
  const int holds = holding;
  arrived = holding = 0;
  for (int i = 0; i < count; i++) {
    Thread *thread = &threads[i];
    thread->value = (uint64_t)holds;
    if (thread == current) continue;
    if (thread->line != line) {
      gp_host_write_fault(
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

/* All lanes of the mask are there: gives each its value. */
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
    gp_host_write_fault("kernel %s, line %d: lane %d %s", kernel->name, lane->line, i,
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
    gp_host_write_fault("kernel %s, line %d: the mask %08x %s", kernel->name, self->line,
                        self->mask,
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
