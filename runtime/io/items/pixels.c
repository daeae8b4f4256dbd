/* io/items/pixels.c - images of bytes in memory as f32, with a table lookup for each value.
 *
 * The bytes stay as they are in the file, a quarter of the floats. Random crops and flips are drawn
 * by (key, position), so a batch has the same bits whichever thread makes it. */
#include "base/tensor.h"
#include "gpipe/gather.h"
#include "io/items/items.h"

enum { LEVELS = 256 };

typedef struct pixels {
  gp_items items;
  gp_tensor *x, *y;
  int64_t channels, height, width;
  gp_image_rule rule;
  float table[GP_IMAGE_CHANNELS][LEVELS]; /* the f32 of each byte, per channel */
} pixels;

/* The result's corner in the image; it may lie in the padding (negative, or beyond the image). */
typedef struct place {
  int64_t top, left;
  bool mirrored;
} place;

static place draw_place(const pixels *p, gp_items_key key, int64_t position) {
  place where = {0};
  if (!p->rule.crop && !p->rule.flip) return where;
  uint32_t word[3];
  gp_items_words(key, position, 3, word);
  uint64_t choices = 2 * (uint64_t)p->rule.crop + 1;
  where.top = (int64_t)(word[0] * choices >> 32) - p->rule.crop;
  where.left = (int64_t)(word[1] * choices >> 32) - p->rule.crop;
  where.mirrored = p->rule.flip && word[2] >> 31;
  return where;
}

/* Fill one row of a channel; `from` NULL: a row of the padding. */
static void fill_row(const float *table, const unsigned char *from, const place *where,
                     int64_t width, float *to) {
  for (int64_t j = 0; j < width; j++) {
    int64_t column = (where->mirrored ? width - 1 - j : j) + where->left;
    bool inside = from && column >= 0 && column < width;
    to[j] = table[inside ? from[column] : 0];
  }
}

static void fill_image(const pixels *p, const unsigned char *from, const place *where, float *to) {
  bool plain = !where->top && !where->left && !where->mirrored;
  int64_t area = p->height * p->width;
  for (int64_t c = 0; c < p->channels; c++, from += area, to += area) {
    const float *table = p->table[c];
    if (plain)
      for (int64_t i = 0; i < area; i++) to[i] = table[from[i]];
    for (int64_t i = 0; i < p->height && !plain; i++) {
      int64_t row = i + where->top;
      bool inside = row >= 0 && row < p->height;
      fill_row(table, inside ? from + row * p->width : NULL, where, p->width, to + i * p->width);
    }
  }
}

static gp_status make(const gp_items *items, const gp_items_call *call, gp_tensor **x,
                      gp_tensor **y) {
  const pixels *p = (const pixels *)items;
  gp_shape shape = {.rank = 4, .dim = {call->n, p->channels, p->height, p->width}};
  gp_tensor *images = NULL;
  GP_TRY(gp_tensor_new(GP_F32, &shape, &images));
  const unsigned char *from = gp_tensor_data(p->x);
  float *to = gp_tensor_data(images);
  int64_t bytes = p->channels * p->height * p->width;
  for (int64_t i = 0; i < call->n; i++) {
    place where = draw_place(p, call->key, call->at[i]);
    fill_image(p, from + call->at[i] * bytes, &where, to + i * bytes);
  }
  gp_status status = gp_data_rows(p->y, call->positions, y);
  if (status)
    gp_tensor_free(images);
  else
    *x = images;
  return status;
}

static void release(gp_items *items) {
  pixels *p = (pixels *)items;
  gp_tensor_free(p->x);
  gp_tensor_free(p->y);
}

static const gp_items_ops ops = {.make = make, .release = release};

static gp_status check(const gp_tensor *x, const gp_tensor *y) {
  const gp_meta *a = gp_tensor_meta(x), *b = gp_tensor_meta(y);
  if (a->dtype != GP_U8 || a->shape.rank != 4 || !gp_tensor_is_contiguous(x))
    return gp_fail(GP_ESHAPE, "images: x is not a contiguous u8 tensor [N, C, H, W]");
  if (a->shape.dim[1] > GP_IMAGE_CHANNELS)
    return gp_fail(GP_ESHAPE, "images: %lld channels, expected at most %d",
                   (long long)a->shape.dim[1], GP_IMAGE_CHANNELS);
  if (!b->shape.rank || b->shape.dim[0] != a->shape.dim[0])
    return gp_fail(GP_ESHAPE, "images: x and y do not have the same number of rows");
  return GP_OK;
}

gp_status gp_items_pixels(gp_tensor *x, gp_tensor *y, const gp_image_rule *rule, gp_items **items) {
  GP_TRY(check(x, y));
  const gp_shape *shape = &gp_tensor_meta(x)->shape;
  GP_TRY(gp_items_new(&ops, sizeof(pixels), shape->dim[0], items));
  pixels *p = (pixels *)*items;
  p->x = gp_tensor_retain(x);
  p->y = gp_tensor_retain(y);
  p->channels = shape->dim[1], p->height = shape->dim[2], p->width = shape->dim[3];
  p->rule = *rule;
  for (int c = 0; c < GP_IMAGE_CHANNELS; c++)
    for (int v = 0; v < LEVELS; v++)
      p->table[c][v] = ((float)v / 255.0f - rule->mean[c]) / rule->deviation[c];
  return GP_OK;
}
