/* schedule/access/moments.c - what a device's stages hold at once, at the moments that matter.
 *
 * What a stage holds of a micro-batch takes as many bytes as its layers say, so how full a device
 * is depends on the cut; how many of each it holds, and when, depends on the schedule alone. A
 * moment is a row of such numbers. One that has no number above those of another is never worse, so
 * few are left: one where I and W are one action and the device holds one stage. */
#include <string.h>

#include "base/memory.h"
#include "schedule/access/held.h"
#include "schedule/access/tally.h"

/* More moments than these are not told apart: of what is left out others hold as much in all. */
enum { MOST = 16 };

typedef struct moments {
  gp_held_moments *out;
  int32_t *now;
  bool risen; /* since something died */
} moments;

static int32_t sum_of(const moments *m, const int32_t *row) {
  int32_t sum = 0;
  for (int32_t i = 0; i < m->out->width; i++) sum += row[i];
  return sum;
}

/* Is no number of one row above the other's? */
static bool is_within(const moments *m, const int32_t *row, const int32_t *other) {
  for (int32_t i = 0; i < m->out->width; i++)
    if (row[i] > other[i]) return false;
  return true;
}

static int32_t *row_at(const moments *m, int32_t r) {
  return &m->out->rows[(size_t)r * (size_t)m->out->width];
}

static void put(const moments *m, int32_t r, const int32_t *row) {
  memcpy(row_at(m, r), row, (size_t)m->out->width * sizeof *row);
}

/* Leave out the row that holds least in all. */
static void drop_least(const moments *m) {
  int32_t least = 0;
  for (int32_t r = 1; r < m->out->count; r++)
    if (sum_of(m, row_at(m, r)) < sum_of(m, row_at(m, least))) least = r;
  m->out->count--;
  if (least < m->out->count) put(m, least, row_at(m, m->out->count));
}

/* Keep this moment, and of the others those that are not within it. */
static void keep(moments *m) {
  int32_t kept = 0;
  if (!m->risen) return;
  m->risen = false;
  for (int32_t r = 0; r < m->out->count; r++)
    if (is_within(m, m->now, row_at(m, r))) return;
  for (int32_t r = 0; r < m->out->count; r++)
    if (!is_within(m, row_at(m, r), m->now)) {
      if (kept < r) put(m, kept, row_at(m, r));
      kept++;
    }
  m->out->count = kept;
  put(m, m->out->count++, m->now);
  if (m->out->count > MOST) drop_least(m);
}

/* ---- what is here -------------------------------------------------------------------------- */

/* A stage has four numbers, in this order. */
enum { CLASSES = 4 };
static const uint8_t classes[CLASSES] = {GP_TALLY_INPUT, GP_TALLY_ACTIVATION, GP_TALLY_HEAD,
                                         GP_TALLY_CARRIED};

static void count(const moments *m, gp_tally_lives lives, int32_t by) {
  int32_t *now = &m->now[CLASSES * lives.place];
  for (int k = 0; k < CLASSES; k++)
    if (lives.classes & classes[k]) now[k] += by;
}

static void begin(void *context, gp_tally_lives lives) {
  moments *m = context;
  count(m, lives, 1);
  m->risen = true;
}

static void end(void *context, gp_tally_lives lives) {
  keep(context);
  count(context, lives, -1);
}

static gp_status walk_here(const gp_schedule *s, int32_t device, moments *m) {
  const uint8_t all = GP_TALLY_INPUT | GP_TALLY_KEPT | GP_TALLY_CARRIED;
  return gp_schedule_tally(s, device, &(gp_tally_watch){m, all, begin, end});
}

/* ---- what is here while the rest is away --------------------------------------------------- */

static gp_status born(void *context, const gp_lifetime *life) {
  moments *m = context;
  m->now[life->buffer]++;
  m->risen = true;
  return GP_OK;
}

static void dead(void *context, const gp_lifetime *life) {
  moments *m = context;
  keep(m);
  m->now[life->buffer]--;
}

/* Buffers are numbered stage after stage, class after class. */
static gp_status walk_away(const gp_schedule *s, int32_t device, moments *m) {
  const unsigned asked = 1u << GP_BUFFER_INPUT | 1u << GP_BUFFER_AWAY | 1u << GP_BUFFER_AWAY_HEAD |
                         1u << GP_BUFFER_CARRIED;
  gp_access_list list;
  return gp_schedule_watch(s, device, asked, &list, &(gp_lifetime_watch){m, born, dead});
}

/* ---- the call ------------------------------------------------------------------------------ */

static gp_status walk(const gp_schedule *s, int32_t device, bool away, moments *m) {
  const size_t width = CLASSES * (size_t)gp_schedule_stages(s, device).count;
  m->out->width = (int32_t)width;
  GP_TRY(gp_alloc_array((MOST + 2) * width + 1, sizeof *m->out->rows, (void **)&m->out->rows));
  m->now = m->out->rows + (MOST + 1) * width;
  return away ? walk_away(s, device, m) : walk_here(s, device, m);
}

gp_status gp_schedule_moments(const gp_schedule *schedule, int device, bool away,
                              gp_held_moments *held) {
  moments m = {.out = held};
  *held = (gp_held_moments){0};
  return walk(schedule, device, away, &m);
}

void gp_held_moments_free(gp_held_moments *held) { gp_free(held->rows); }
