/* io/image/picture.h - an image file as red, green and blue bytes, and a part of it at another
 * size. */
#ifndef GP_IO_IMAGE_PICTURE_H
#define GP_IO_IMAGE_PICTURE_H

#include "base/status.h"
#include "gpipe/items.h"

enum {
  GP_PICTURE_SIDE = 65500,     /* most pixels of a side: JPEG's own limit */
  GP_PICTURE_PIXELS = 1 << 26, /* most pixels: 192 MiB, more than training uses */
  GP_PICTURE_RATIO = 8 * 1032, /* most pixels per byte of a file: bits, deflated at best */
};

typedef struct gp_picture {
  const char *path;   /* borrowed, for messages */
  unsigned char *rgb; /* [height, width, 3], owned */
  int width, height;
} gp_picture;

/* A file in memory. */
typedef struct gp_picture_file {
  const char *path;
  const unsigned char *data;
  size_t bytes;
} gp_picture_file;

/* Read a PNG or JPEG file. Grey becomes three equal channels, 16 bits become their high byte, CMYK
 * becomes RGB; transparency is ignored. Errors: GP_EIO; GP_EFORMAT, also if the file is truncated.
 * Source: Pillow's convert("RGB"). */
gp_status gp_picture_read(const char *path, gp_picture *picture);
void gp_picture_free(gp_picture *picture);

/* The two formats. */
gp_status gp_png_decode(const gp_picture_file *file, gp_picture *picture);
gp_status gp_jpeg_decode(const gp_picture_file *file, gp_picture *picture);
/* Check the size and allocate the pixels. Errors: GP_EFORMAT for sizes beyond the limits, or too
 * large for a file of this length. */
gp_status gp_picture_room(const gp_picture_file *file, int64_t width, int64_t height,
                          gp_picture *picture);

/* A part of a picture, in pixels; its edges need not be whole numbers. */
typedef struct gp_picture_box {
  double left, top, width, height;
} gp_picture_box;

/* Write the part at size x size as f32 [3, size, size], (value / 255 - mean) / deviation; mirrored
 * swaps left and right. The filter is a triangle as wide as the reduction (bilinear with
 * antialias); nothing is rounded in between. Source: Pillow's resampling. */
gp_status gp_picture_resize(const gp_picture *picture, const gp_picture_box *box,
                            const gp_image_rule *rule, bool mirrored, float *to);

#endif
