/* ops/convolution/walk/conv_direct.c - blocks of a convolution's result that read the source in
 * place; see conv_walk.h.
 *
 * A block is so many tiles (conv_tiles.h). Its result is summed in passes over parts of the depth
 * (taps times channels), each small enough that its panel of the weight stays in the second-level
 * cache while all tiles of the block go over it. What lies behind that cache is far away on some
 * processors (100 to 350 turns on a Xeon), so the tiles ask for the panel that comes next, each for
 * a part of it. */
#include <string.h>

#include "device/cpu/scattered.h"
#include "ops/convolution/walk/conv_tiles.h"
#include "ops/convolution/walk/conv_walk.h"

enum { DEPTH = 576 }; /* taps times channels of a pass, at most: 144 KiB of a panel */

bool gp_conv_is_direct(const gp_conv_job *job) {
  return job->dtype == GP_F32 && gp_conv_read(job) > 0 && gp_scattered_fits(gp_conv_made(job));
}

int64_t gp_conv_direct_blocks(const gp_conv *c, bool transposed) {
  return (gp_conv_count_tiles(c, transposed) + GP_CONV_TILES - 1) / GP_CONV_TILES;
}

/* ---- passes --------------------------------------------------------------------------------- */

/* Taps [tap, tap + taps) of the kernel, channels [channel, channel + depth) of each. */
typedef struct pass {
  int64_t tap, taps, channel, depth;
} pass;

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* Equal parts: a short pass loads and stores the result for little. Of several lattices each meets
 * other taps, so that many times as many make a pass as long. Not where the channels of a tap take
 * several passes: the order of the sums would be another one. */
static int64_t taps_together(const gp_conv_job *job) {
  const int64_t all = job->c.h.kernel * job->c.w.kernel, k = gp_conv_read(job);
  const int64_t each = k <= DEPTH ? DEPTH / k * gp_conv_lattices(&job->c, job->transposed) : 1;
  const int64_t fit = at_most(each, GP_SCATTERED_TAPS);
  const int64_t passes = (all + fit - 1) / fit;
  return (all + passes - 1) / passes;
}

static pass first_pass(const gp_conv_job *job) {
  const int64_t all = job->c.h.kernel * job->c.w.kernel;
  return (pass){.taps = at_most(all, taps_together(job)),
                .depth = at_most(gp_conv_read(job), DEPTH)};
}

/* The pass behind it; false behind the last one, and *p is the first one again. */
static bool next_pass(const gp_conv_job *job, pass *p) {
  const int64_t all = job->c.h.kernel * job->c.w.kernel, k = gp_conv_read(job);
  p->channel += p->depth;
  if (p->channel < k) {
    p->depth = at_most(k - p->channel, DEPTH);
    return true;
  }
  const int64_t tap = p->tap + p->taps;
  const pass first = first_pass(job);
  *p = first;
  if (tap >= all) return false;
  p->tap = tap, p->taps = at_most(all - tap, first.taps);
  return true;
}

/* Which of the pass's taps the positions of a region meet, in the order of the kernel. */
static gp_scattered_taps taps_of(const gp_conv_job *job, const gp_conv_lattice *region,
                                 const pass *p) {
  const int64_t depth = gp_conv_read(job) * job->c.groups;
  gp_scattered_taps taps = {0};
  for (int64_t i = 0; i < region->h.taps; i++) {
    const int64_t row = (region->h.tap + i * region->h.tap_step) * job->c.w.kernel;
    if (row + job->c.w.kernel <= p->tap || row >= p->tap + p->taps) continue;
    for (int64_t j = 0; j < region->w.taps; j++) {
      const int64_t number = row + region->w.tap + j * region->w.tap_step - p->tap;
      if (number < 0 || number >= p->taps) continue;
      taps.weight[taps.count] = number;
      taps.offset[taps.count++] =
          (i * region->h.apart * region->w.source + j * region->w.apart) * depth;
    }
  }
  return taps;
}

/* ---- blocks --------------------------------------------------------------------------------- */

typedef struct block {
  const gp_conv_job *job;
  int64_t group;
  gp_conv_tiles tiles;
  gp_scattered_taps taps[GP_CONV_TILES]; /* of each region, in the pass */
  bool begun[GP_CONV_TILES];             /* whether the result of a region's tiles is a sum yet */
} block;

/* Where the weight of the pass's taps begins; returns what all parts have in common. */
static gp_conv_weight_part weights_at(const block *b, const pass *p, int64_t column,
                                      const float **weight) {
  gp_conv_weight_part part = {0};
  for (int64_t i = 0; i < p->taps; i++) {
    part = gp_conv_weight_at(b->job, b->group, p->tap + i, p->channel, column);
    weight[i] = part.data;
  }
  return part;
}

/* The panel that is read after this one: of the same pass, or the first one of the next. */
static void look_ahead(const block *b, const pass *p, int64_t column, gp_scattered *s) {
  pass next = *p;
  for (int64_t i = 0; i < p->taps; i++) s->ahead[i] = s->weight[i];
  if (column == gp_conv_made(b->job)) next_pass(b->job, &next), column = 0;
  next.taps = at_most(next.taps, p->taps);
  weights_at(b, &next, column, s->ahead);
  s->ahead_step = (s->width + b->tiles.count - 1) / b->tiles.count;
}

/* The tiles of one panel. A region that meets none of the pass's taps waits, until the last pass
 * makes the bias alone. */
static void run_panel(const block *b, gp_scattered *s, bool last) {
  for (int64_t t = 0; t < b->tiles.count; t++) {
    const int64_t region = b->tiles.region_of[t];
    s->add = b->begun[region];
    if (b->taps[region].count > 0 || (last && !s->add))
      gp_scattered_multiply(s, &b->taps[region], t, &b->tiles.tile[t]);
  }
}

static void run_pass(block *b, const pass *p, gp_scattered *s, bool last) {
  const int64_t n = gp_conv_made(b->job);
  for (int64_t r = 0; r < b->tiles.regions; r++)
    b->taps[r] = taps_of(b->job, &b->tiles.region[r], p);
  s->at = b->group * gp_conv_read(b->job) + p->channel, s->depth = p->depth;
  for (int64_t column = 0; column < n; column += s->columns) {
    const gp_conv_weight_part w = weights_at(b, p, column, s->weight);
    s->width = w.ld, s->columns = w.columns, s->column = b->group * n + column;
    look_ahead(b, p, column + w.columns, s);
    run_panel(b, s, last);
  }
  for (int64_t r = 0; r < b->tiles.regions; r++) b->begun[r] = b->begun[r] || b->taps[r].count > 0;
}

static void run_group(block *b) {
  gp_scattered s = {.bias = b->job->bias};
  pass p = first_pass(b->job);
  memset(b->begun, 0, sizeof b->begun);
  for (bool more = true; more;) {
    pass next = p;
    more = next_pass(b->job, &next);
    run_pass(b, &p, &s, !more);
    p = next;
  }
}

void gp_conv_run_direct(const gp_conv_job *job, int64_t number) {
  const int64_t tiles = gp_conv_count_tiles(&job->c, job->transposed);
  const int64_t blocks = gp_conv_direct_blocks(&job->c, job->transposed);
  block b = {.job = job};
  /* equal blocks: the weight is read as often for a small one as for a large one */
  gp_conv_find_tiles(job, number * tiles / blocks, (number + 1) * tiles / blocks, &b.tiles);
  for (b.group = 0; b.group < job->c.groups; b.group++) run_group(&b);
}
