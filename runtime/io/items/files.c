/* io/items/files.c - image files as items: decoded, cropped and resized when a batch is made.
 *
 * For training, a random area of 8 to 100 % with sides of 3:4 to 4:3 is cut out, and every second
 * image on average is mirrored. Otherwise the centre is used, 224/256 of the shorter side. Source:
 * torchvision's RandomResizedCrop, and the usual evaluation of ImageNet. */
#include <math.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/gather.h"
#include "io/image/picture.h"
#include "io/items/items.h"

enum { TRIES = 10, WORDS = 4 * TRIES + 1 };

typedef struct files {
  gp_items items;
  char **path; /* [count], owned */
  gp_tensor *y;
  gp_image_rule rule;
} files;

static double unit(uint32_t word) { return (word >> 8) * 0x1p-24; } /* in [0, 1) */

static gp_picture_box centre(const gp_picture *p, double part) {
  double side = (p->width < p->height ? p->width : p->height) * part;
  return (gp_picture_box){(p->width - side) / 2, (p->height - side) / 2, side, side};
}

/* Draw an area; one that does not fit is drawn again, and after ten tries the centre is used. */
static gp_picture_box draw_box(const gp_picture *p, const uint32_t *word) {
  for (int i = 0; i < TRIES; i++, word += 4) {
    double area = (0.08 + 0.92 * unit(word[0])) * p->width * p->height;
    double ratio = exp((2 * unit(word[1]) - 1) * log(4.0 / 3.0));
    double w = round(sqrt(area * ratio)), h = round(sqrt(area / ratio));
    if (w < 1 || h < 1 || w > p->width || h > p->height) continue;
    return (gp_picture_box){floor(unit(word[2]) * (p->width - w + 1)),
                            floor(unit(word[3]) * (p->height - h + 1)), w, h};
  }
  return centre(p, 1);
}

static gp_status fill(const files *f, gp_items_key key, int64_t at, float *to) {
  gp_picture picture;
  uint32_t word[WORDS];
  GP_TRY(gp_picture_read(f->path[at], &picture));
  gp_picture_box box = centre(&picture, 224.0 / 256.0);
  if (f->rule.random_crop || f->rule.flip) gp_items_words(key, at, WORDS, word);
  if (f->rule.random_crop) box = draw_box(&picture, word + 1);
  bool mirrored = f->rule.flip && word[0] >> 31;
  gp_status status = gp_picture_resize(&picture, &box, &f->rule, mirrored, to);
  gp_picture_free(&picture);
  return status;
}

static gp_status make(const gp_items *items, const gp_items_call *call, gp_tensor **x,
                      gp_tensor **y) {
  const files *f = (const files *)items;
  int64_t size = f->rule.size;
  gp_tensor *images = NULL, *labels = NULL;
  GP_TRY(gp_tensor_new(GP_F32, &(gp_shape){.rank = 4, .dim = {call->n, 3, size, size}}, &images));
  float *to = gp_tensor_data(images);
  gp_status status = GP_OK;
  for (int64_t i = 0; i < call->n && !status; i++)
    status = fill(f, call->key, call->at[i], to + i * 3 * size * size);
  if (!status) status = gp_data_rows(f->y, call->positions, &labels);
  if (status) {
    gp_tensor_free(images);
    return status;
  }
  *x = images;
  *y = labels;
  return GP_OK;
}

static void release(gp_items *items) {
  files *f = (files *)items;
  for (int64_t i = 0; f->path && i < f->items.count; i++) gp_free(f->path[i]);
  gp_free(f->path);
  gp_tensor_free(f->y);
}

static const gp_items_ops ops = {.make = make, .release = release};

static gp_status copy_paths(files *f, const char *const *paths) {
  void *list = NULL;
  GP_TRY(gp_alloc_array((size_t)f->items.count, sizeof *f->path, &list));
  f->path = list;
  for (int64_t i = 0; i < f->items.count; i++) GP_TRY(gp_copy_string(paths[i], &f->path[i]));
  return GP_OK;
}

gp_status gp_items_files(const char *const *paths, gp_tensor *y, const gp_image_rule *rule,
                         gp_items **items) {
  const gp_shape *shape = &gp_tensor_meta(y)->shape;
  if (shape->rank != 1 || rule->size < 1 || rule->size > GP_IMAGE_SIDE)
    return gp_fail(GP_ESHAPE, "images: size is %d, expected 1 to %d", rule->size, GP_IMAGE_SIDE);
  gp_items *made = NULL;
  GP_TRY(gp_items_new(&ops, sizeof(files), shape->dim[0], &made));
  files *f = (files *)made;
  f->y = gp_tensor_retain(y);
  f->rule = *rule;
  gp_status status = copy_paths(f, paths);
  if (status)
    gp_items_free(made);
  else
    *items = made;
  return status;
}
