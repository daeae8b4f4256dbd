/* gpipe/items.h - items that are made in C, batches of them, and threads that make those ahead. See
 * gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_ITEMS_H
#define GP_PUBLIC_ITEMS_H

#include "gpipe/tensor.h"

/* ---- files ----------------------------------------------------------------------------------- */

/* Read an IDX file of bytes, also one packed by gzip. Shapes: values u8 of the file's shape, whose
 * rank must be `rank`. Errors: GP_EIO; GP_EFORMAT with the byte. Cost: memory for the values.
 * Source: LeCun's description of MNIST's files. */
gp_status gp_idx_read(const char *path, int rank, gp_tensor **values);
/* Read binary files of CIFAR, one after the other. fine: CIFAR-100, whose records have a coarse
 * and a fine label. Shapes: images u8 [N, 3, 32, 32], labels i64 [N]. Errors: GP_EIO; GP_EFORMAT
 * with the byte. Source: Krizhevsky's description of the files. */
gp_status gp_cifar_read(const char *const *paths, size_t count, bool fine, gp_tensor **images,
                        gp_tensor **labels);

/* ---- items ----------------------------------------------------------------------------------- */

/* Items, addressed by position; reference-counted. They never change, so any thread may make
 * batches of them. */
typedef struct gp_items gp_items;

enum {
  GP_IMAGE_CHANNELS = 4, /* most channels of an image */
  GP_IMAGE_SIDE = 4096   /* most pixels of a side of a decoded one */
};

/* How an image of bytes becomes f32: random crop after padding with zeros and random flip where the
 * image is drawn with a key, then (value / 255 - mean) / deviation. */
typedef struct gp_image_rule {
  int size;                           /* of decoded images: height and width of the result */
  int crop;                           /* pixels of padding before a random crop; 0: none */
  bool flip;                          /* left and right change places in one of two images */
  bool random_crop;                   /* of decoded images: a random area, else the centre */
  float mean[GP_IMAGE_CHANNELS];      /* of values in [0, 1], per channel */
  float deviation[GP_IMAGE_CHANNELS]; /* > 0 */
} gp_image_rule;

/* Random numbers of an item are a function of this key and of the item's position. */
typedef struct gp_items_key {
  uint64_t seed, stream;
} gp_items_key;

/* Make items of the rows of two contiguous tensors (retained) that have equally many rows.
 * Errors: GP_ESHAPE. */
gp_status gp_items_rows(gp_tensor *x, gp_tensor *y, gp_items **items);
/* Make items of images of bytes, as f32. Shapes: x u8 [N, C, H, W] (retained), y [N, ..]
 * (retained); batches are f32 [n, C, H, W]. Errors: GP_ESHAPE; GP_EDTYPE. */
gp_status gp_items_pixels(gp_tensor *x, gp_tensor *y, const gp_image_rule *rule, gp_items **items);
/* Windows of context + 1 ids, every `stride` ids, of bytes (retained); see gp_data_windows. path:
 * the file that the bytes are mapped from, checked before each batch; NULL for none. Errors:
 * GP_ERANGE. */
typedef struct gp_windows {
  gp_tensor *bytes;
  int width;
  int64_t context, stride, count;
  const char *path; /* copied */
} gp_windows;
gp_status gp_items_windows(const gp_windows *windows, gp_items **items);

/* Make items of image files, PNG or JPEG, read for each batch. Shapes: y i64 [N] (retained), as
 * many paths (copied); batches are f32 [n, 3, size, size]. Errors: GP_ESHAPE for the rule's
 * size. */
gp_status gp_items_files(const char *const *paths, gp_tensor *y, const gp_image_rule *rule,
                         gp_items **items);

/* A selection of other items: `count` of them from `base` on, or those at base + order - 1. */
typedef struct gp_items_part {
  gp_items *items;  /* retained */
  gp_tensor *order; /* retained, optional: i64 [>= count], from 1 */
  int64_t base, count;
} gp_items_part;
/* Items of several parts, one after the other. `new` makes them empty; all parts are added before
 * the first batch is made. The parts give batches of one shape and dtype, else making a batch fails
 * with GP_ESHAPE. Errors: GP_EINVAL for a part without items, or whose order does not fit. */
gp_status gp_items_joined_new(gp_items **items);
gp_status gp_items_joined_add(gp_items *items, const gp_items_part *part);

void gp_items_free(gp_items *items); /* gives one reference back; NULL is fine */
int64_t gp_items_count(const gp_items *items);
/* Make a batch of items. Shapes: positions i64 [n] (0-based); x and y [n, ..]. The values are a
 * function of the items, the positions and the key. Errors: GP_ERANGE; those of files. Threads:
 * any. */
gp_status gp_items_batch(const gp_items *items, const gp_tensor *positions, gp_items_key key,
                         gp_tensor **x, gp_tensor **y);

/* ---- loaders --------------------------------------------------------------------------------- */

/* Threads that make the batches of a walk ahead of time. */
typedef struct gp_loader gp_loader;

typedef struct gp_loader_options {
  int workers;   /* threads, >= 1 */
  int prefetch;  /* batches that are ready or being made at most, >= 1 */
  int64_t size;  /* items of a batch; the last one may have fewer */
  int64_t first; /* item of the walk to begin with */
  gp_items_key key;
} gp_loader_options;

/* Start making batches of the items (retained) at `positions` (retained), i64 [n], 0-based. */
gp_status gp_loader_new(gp_items *items, gp_tensor *positions, const gp_loader_options *options,
                        gp_loader **loader);
/* Wait for the next batch; x and y stay NULL at the end. Errors: the first failure in the order of
 * the batches; GP_EINTERRUPT. */
gp_status gp_loader_next(gp_loader *loader, gp_tensor **x, gp_tensor **y);
/* Stop the threads, wait for them, free what was made. NULL is fine. */
void gp_loader_free(gp_loader *loader);

#endif
