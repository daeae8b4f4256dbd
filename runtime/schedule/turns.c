/* schedule/turns.c - see turns.h. */
#include "schedule/turns.h"

#include <string.h>

#include "base/memory.h"

static size_t words_of(const gp_turns *t) { return (size_t)t->device_count / 64 + 1; }

gp_status gp_turns_new(int32_t device_count, gp_turn_rule rule, gp_turns *turns) {
  size_t devices = (size_t)device_count;
  *turns = (gp_turns){.rule = rule, .device_count = device_count};
  gp_status status = gp_alloc_array(2 * devices + 1, sizeof(int32_t), (void **)&turns->device);
  if (!status) status = gp_alloc_array(words_of(turns), sizeof(uint64_t), (void **)&turns->awake);
  if (status) return gp_turns_free(turns), status;
  turns->place = turns->device + devices;
  return GP_OK;
}

void gp_turns_free(gp_turns *turns) {
  gp_free(turns->device);
  gp_free(turns->awake);
  *turns = (gp_turns){0};
}

void gp_turns_begin(gp_turns *t, const int32_t *order) {
  memset(t->awake, 0, words_of(t) * sizeof *t->awake);
  t->count = t->at = t->sweep = 0;
  for (int32_t i = 0; i < t->device_count; i++) {
    t->device[i] = order ? order[i] : i;
    t->place[t->device[i]] = t->rule == GP_TURNS_QUEUE ? 0 : i;
  }
}

/* ---- a queue ------------------------------------------------------------------------------- */

/* A device is queued once at most, so the ring is never too small. */
static void push(gp_turns *t, int32_t device) {
  const int32_t end = t->at + t->count;
  if (t->place[device]) return;
  t->place[device] = 1;
  t->device[end < t->device_count ? end : end - t->device_count] = device;
  t->count++;
}

static int32_t pop(gp_turns *t) {
  const int32_t device = t->device[t->at];
  t->at = t->at + 1 < t->device_count ? t->at + 1 : 0;
  t->place[device] = 0;
  t->count--;
  return device;
}

/* ---- an order of devices ------------------------------------------------------------------- */

/* The first place from `at` on whose device is awake; -1: none. */
static int32_t find(const gp_turns *t) {
  uint64_t ahead = UINT64_MAX << t->at % 64;
  for (size_t w = (size_t)t->at / 64; w < words_of(t); w++, ahead = UINT64_MAX) {
    const uint64_t bits = t->awake[w] & ahead;
    if (bits) return (int32_t)(64 * w) + __builtin_ctzll(bits);
  }
  return -1;
}

void gp_turns_wake(gp_turns *t, int32_t device) {
  if (t->rule == GP_TURNS_QUEUE) {
    push(t, device);
    return;
  }
  const int32_t place = t->place[device];
  const uint64_t bit = UINT64_C(1) << place % 64;
  t->count += !(t->awake[place / 64] & bit);
  t->awake[place / 64] |= bit;
  if (t->rule == GP_TURNS_FIRST && place < t->at) t->at = place;
}

int32_t gp_turns_next(gp_turns *t) {
  if (!t->count) return -1;
  if (t->rule == GP_TURNS_QUEUE) return pop(t);
  int32_t place = find(t);
  if (place < 0) { /* those that are awake come before: the sweep is over */
    t->at = 0;
    t->sweep++;
    place = find(t);
  }
  t->at = t->rule == GP_TURNS_SWEEP ? place + 1 : place;
  t->awake[place / 64] &= ~(UINT64_C(1) << place % 64);
  t->count--;
  return t->device[place];
}
