/* ops/convolution/walk/conv_walk.c - lattices and gathers; see conv_walk.h. */
#include "ops/convolution/walk/conv_walk.h"

#include <string.h>

/* ---- lattices ------------------------------------------------------------------------------- */

static gp_conv_line map_line(const gp_conv_axis *a) {
  return (gp_conv_line){.step = 1,
                        .count = a->map,
                        .source = a->image,
                        .pace = a->stride,
                        .at = -a->before,
                        .apart = a->dilation,
                        .tap_step = 1,
                        .taps = a->kernel};
}

gp_conv_lattice gp_conv_map_lattice(const gp_conv *c) {
  return (gp_conv_lattice){map_line(&c->h), map_line(&c->w)};
}

/* Return which remainder by the stride the positions of the image have that meet tap k. */
static int64_t remainder_of(const gp_conv_axis *a, int64_t k) {
  int64_t rest = (k * a->dilation - a->before) % a->stride;
  return rest < 0 ? rest + a->stride : rest;
}

/* Taps of one remainder are equally far apart: the first two tell how far. */
static gp_conv_line image_line(const gp_conv_axis *a, int64_t phase) {
  gp_conv_line l = {.first = phase, .step = a->stride, .source = a->map, .pace = 1, .tap_step = 1};
  l.count = phase < a->image ? (a->image - phase + a->stride - 1) / a->stride : 0;
  for (int64_t k = 0; k < a->kernel; k++) {
    if (remainder_of(a, k) != phase) continue;
    if (l.taps == 0) l.tap = k;
    if (l.taps == 1) l.tap_step = k - l.tap;
    l.taps++;
  }
  l.at = (phase + a->before - l.tap * a->dilation) / a->stride;
  l.apart = -l.tap_step * a->dilation / a->stride;
  return l;
}

int64_t gp_conv_phases(const gp_conv *c) { return c->h.stride * c->w.stride; }

gp_conv_lattice gp_conv_image_lattice(const gp_conv *c, int64_t number) {
  return (gp_conv_lattice){image_line(&c->h, number / c->w.stride),
                           image_line(&c->w, number % c->w.stride)};
}

int64_t gp_conv_lattices(const gp_conv *c, bool transposed) {
  return transposed ? gp_conv_phases(c) : 1;
}

gp_conv_lattice gp_conv_lattice_at(const gp_conv *c, bool transposed, int64_t number) {
  return transposed ? gp_conv_image_lattice(c, number) : gp_conv_map_lattice(c);
}

int64_t gp_conv_place(const gp_conv_lattice *l, int64_t p, int64_t height, int64_t width) {
  int64_t i = p / l->w.count % l->h.count, row = p / l->w.count / l->h.count;
  return (row * height + l->h.first + i * l->h.step) * width + l->w.first +
         p % l->w.count * l->w.step;
}

/* ---- gathers -------------------------------------------------------------------------------- */

static bool is_same(const gp_conv_line *l) {
  return l->taps == 1 && l->pace == 1 && l->at == 0 && l->count == l->source && l->step == 1;
}

bool gp_conv_is_plain(const gp_conv_lattice *l) { return is_same(&l->h) && is_same(&l->w); }

/* A run of taps along one row of the source, for one position of the lattice. */
typedef struct run {
  const char *row; /* of the source; NULL: outside */
  int64_t j;       /* position of the lattice along the width */
  int64_t tap, taps;
} run;

/* Copy a run of taps at once: they meet neighbours of the source, with all their channels. */
static char *copy_run(const gp_conv_line *w, const gp_conv_part *part, run r, char *to) {
  const size_t pixel = (size_t)part->channels * part->item;
  const int64_t at = r.j * w->pace + w->at + r.tap;
  int64_t before = at < 0 ? -at : 0, behind = at + r.taps - w->source;
  if (!r.row || before >= r.taps || behind >= r.taps) before = r.taps, behind = 0;
  if (behind < 0) behind = 0;
  const int64_t inside = r.taps - before - behind;
  memset(to, 0, (size_t)before * pixel);
  if (inside > 0)
    memcpy(to + (size_t)before * pixel, r.row + (size_t)(at + before) * pixel,
           (size_t)inside * pixel);
  memset(to + (size_t)(before + inside) * pixel, 0, (size_t)behind * pixel);
  return to + (size_t)r.taps * pixel;
}

static char *copy_taps(const gp_conv_line *w, const gp_conv_part *part, run r, char *to) {
  const size_t bytes = (size_t)part->channels * part->item;
  for (int64_t t = r.tap; t < r.tap + r.taps; t++, to += bytes) {
    const int64_t at = r.j * w->pace + w->at + t * w->apart;
    if (r.row && at >= 0 && at < w->source)
      memcpy(to, r.row + (size_t)(at * part->depth + part->channel) * part->item, bytes);
    else
      memset(to, 0, bytes);
  }
  return to;
}

static char *gather_position(const gp_conv_lattice *l, const gp_conv_part *part, const void *source,
                             int64_t p, char *to) {
  const bool whole = part->channels == part->depth && l->w.apart == 1;
  const int64_t i = p / l->w.count % l->h.count, row = p / l->w.count / l->h.count;
  for (int64_t t = part->tap; t < part->tap + part->taps;) {
    const int64_t y = i * l->h.pace + l->h.at + t / l->w.taps * l->h.apart, x = t % l->w.taps;
    run r = {NULL, p % l->w.count, x, l->w.taps - x};
    if (r.taps > part->tap + part->taps - t) r.taps = part->tap + part->taps - t;
    if (y >= 0 && y < l->h.source)
      r.row = (const char *)source +
              (size_t)((row * l->h.source + y) * l->w.source * part->depth) * part->item;
    to = whole ? copy_run(&l->w, part, r, to) : copy_taps(&l->w, part, r, to);
    t += r.taps;
  }
  return to;
}

void gp_conv_gather(const gp_conv_lattice *l, gp_conv_part part, const void *source, void *to) {
  char *at = to;
  if (part.channels == 0) return;
  for (int64_t p = part.first; p < part.last; p++) at = gather_position(l, &part, source, p, at);
}

/* Find the positions of one line that a tap meets inside of the source: the neighbours
 * [first, last). */
static void inside_of(const gp_conv_line *w, int64_t x0, int64_t *first, int64_t *last) {
  const int64_t room = w->source - x0; /* j * pace < room */
  *first = x0 < 0 ? (w->pace - 1 - x0) / w->pace : 0;
  *last = room > 0 ? (room + w->pace - 1) / w->pace : 0;
}

void gp_conv_point(const gp_conv_lattice *l, const gp_conv_part *part, const void *source,
                   const float *outside, const float **to) {
  const int64_t y0 = l->h.at + part->tap / l->w.taps * l->h.apart,
                x0 = l->w.at + part->tap % l->w.taps * l->w.apart;
  int64_t j = part->first % l->w.count, i = part->first / l->w.count % l->h.count;
  int64_t row = part->first / l->w.count / l->h.count, first, last;
  inside_of(&l->w, x0, &first, &last);
  for (int64_t p = part->first; p < part->last; j = 0) {
    const int64_t y = i * l->h.pace + y0, end = j + part->last - p;
    const int64_t count = end < l->w.count ? end : l->w.count;
    const bool beside = y < 0 || y >= l->h.source;
    const int64_t line = ((row * l->h.source + y) * l->w.source + x0) * part->depth + part->channel;
    p += count - j;
    for (; j < count && (beside || j < first); j++) *to++ = outside;
    for (; j < count && j < last; j++)
      *to++ = (const float *)source + line + j * l->w.pace * part->depth;
    for (; j < count; j++) *to++ = outside;
    if (++i == l->h.count) i = 0, row++;
  }
}
