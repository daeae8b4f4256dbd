/* ops/convolution/walk/conv_tiles.c - see conv_tiles.h. */
#include "ops/convolution/walk/conv_tiles.h"

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- regions -------------------------------------------------------------------------------- */

/* How many positions further tap j still is on the same side of the source's edges, from a position
 * where it meets x. */
static int64_t stays(const gp_conv_line *l, int64_t x) {
  if (x < 0) return ceil_div(-x, l->pace);
  return x < l->source ? ceil_div(l->source - x, l->pace) : l->count;
}

/* The positions from i on that meet the same taps, as a line of its own. */
static gp_conv_line stretch_at(const gp_conv_line *l, int64_t i) {
  gp_conv_line part = *l;
  int64_t skipped = 0;
  part.first += i * l->step, part.at += i * l->pace;
  part.count = l->count - i, part.taps = 0;
  for (int64_t j = 0; j < l->taps; j++) {
    const int64_t x = part.at + j * l->apart;
    const bool inside = x >= 0 && x < l->source;
    part.count = at_most(part.count, stays(l, x));
    part.taps += inside;
    skipped += !inside && part.taps == 0;
  }
  part.at += skipped * l->apart, part.tap += skipped * l->tap_step;
  return part;
}

/* Over all regions: lattice by lattice, each row by row. Begins as zeros. */
typedef struct walk {
  int64_t lattice; /* the next one */
  gp_conv_lattice all, region;
  int64_t h, w; /* where the region begins */
} walk;

static bool next_region(const gp_conv *c, bool transposed, walk *at) {
  at->w += at->region.w.count;
  if (at->w >= at->all.w.count) at->w = 0, at->h += at->region.h.count;
  while (at->h >= at->all.h.count || at->all.w.count == 0) {
    if (at->lattice == gp_conv_lattices(c, transposed)) return false;
    at->all = gp_conv_lattice_at(c, transposed, at->lattice++);
    at->h = at->w = 0;
  }
  if (at->w == 0) at->region.h = stretch_at(&at->all.h, at->h);
  at->region.w = stretch_at(&at->all.w, at->w);
  return true;
}

static int64_t tiles_of(const gp_conv *c, const gp_conv_lattice *region) {
  return ceil_div(gp_conv_positions(c, region), GP_SCATTERED_ROWS);
}

int64_t gp_conv_count_tiles(const gp_conv *c, bool transposed) {
  walk at = {0};
  int64_t tiles = 0;
  while (next_region(c, transposed, &at)) tiles += tiles_of(c, &at.region);
  return tiles;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* A position of a region: image, row and column. */
typedef struct position {
  int64_t row, i, j;
} position;

static position position_of(const gp_conv_lattice *l, int64_t p) {
  return (position){p / l->w.count / l->h.count, p / l->w.count % l->h.count, p % l->w.count};
}

static void advance(const gp_conv_lattice *l, position *p) {
  if (++p->j < l->w.count) return;
  p->j = 0;
  if (++p->i < l->h.count) return;
  p->i = 0, p->row++;
}

static gp_scattered_tile tile_of(const gp_conv_job *job, const gp_conv_lattice *l, position *p,
                                 int64_t rows) {
  const gp_conv *c = &job->c;
  const int64_t height = job->transposed ? c->h.image : c->h.map;
  const int64_t width = job->transposed ? c->w.image : c->w.map;
  const int64_t read = gp_conv_read(job) * c->groups, made = gp_conv_made(job) * c->groups;
  gp_scattered_tile tile = {.rows = rows};
  for (int64_t r = 0; r < rows; r++, advance(l, p)) {
    const int64_t y = p->i * l->h.pace + l->h.at, x = p->j * l->w.pace + l->w.at;
    const int64_t to_y = l->h.first + p->i * l->h.step, to_x = l->w.first + p->j * l->w.step;
    const int64_t from = (p->row * l->h.source + y) * l->w.source + x;
    const int64_t to = (p->row * height + to_y) * width + to_x;
    tile.from[r] = (const float *)job->source + from * read;
    tile.to[r] = (float *)job->result + to * made;
  }
  return tile;
}

/* Tiles [first, last) of a region. */
static void add_tiles(const gp_conv_job *job, const gp_conv_lattice *region, int64_t first,
                      int64_t last, gp_conv_tiles *to) {
  const int64_t positions = gp_conv_positions(&job->c, region);
  position p = position_of(region, first * GP_SCATTERED_ROWS);
  to->region[to->regions] = *region;
  for (int64_t t = first; t < last; t++, to->count++) {
    const int64_t rows = at_most(positions - t * GP_SCATTERED_ROWS, GP_SCATTERED_ROWS);
    to->tile[to->count] = tile_of(job, region, &p, rows);
    to->region_of[to->count] = to->regions;
  }
  to->regions++;
}

void gp_conv_find_tiles(const gp_conv_job *job, int64_t first, int64_t last, gp_conv_tiles *to) {
  walk at = {0};
  to->count = to->regions = 0;
  while (last > 0 && next_region(&job->c, job->transposed, &at)) {
    const int64_t tiles = tiles_of(&job->c, &at.region);
    if (first < tiles) add_tiles(job, &at.region, first, at_most(last, tiles), to);
    first = first < tiles ? 0 : first - tiles, last -= tiles;
  }
}
