/* io/image/png.c - decodes PNG with libpng.
 *
 * Values are read as Pillow reads them: the high byte of 16 bits, no correction by gamma or a
 * colour profile, and the colour under transparency. So an image has the same values in whichever
 * form it is written. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h> /* snprintf */
#include <string.h>

#include "io/image/picture.h"

typedef struct decoder {
  png_structp png;
  png_infop info;
  jmp_buf back;
  char text[128];
  const gp_picture_file *file;
  gp_picture *picture;
  size_t at;        /* bytes that the library has read: shows where damage is */
  gp_status status; /* of our own functions */
} decoder;

static void give_up(png_structp png, png_const_charp text) {
  decoder *d = png_get_error_ptr(png);
  snprintf(d->text, sizeof d->text, "%s", text);
  longjmp(d->back, 1);
}

static void ignore(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes) {
  decoder *d = png_get_io_ptr(png);
  if (bytes > d->file->bytes - d->at) png_error(png, "it ends too early");
  memcpy(to, d->file->data + d->at, bytes);
  d->at += bytes;
}

/* Convert all forms to red, green and blue bytes. */
static void convert(png_structp png) {
  png_set_expand(png); /* palettes, and grey of less than 8 bits */
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
}

static void read_pixels(decoder *d) {
  png_set_read_fn(d->png, d, read_bytes);
  png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* texts, profiles */
  png_read_info(d->png, d->info);
  png_uint_32 width = png_get_image_width(d->png, d->info);
  png_uint_32 height = png_get_image_height(d->png, d->info);
  d->status = gp_picture_room(d->file, width, height, d->picture);
  if (d->status) return;
  convert(d->png);
  int passes = png_set_interlace_handling(d->png);
  png_read_update_info(d->png, d->info);
  for (int pass = 0; pass < passes; pass++)
    for (png_uint_32 y = 0; y < height; y++)
      png_read_row(d->png, d->picture->rgb + (size_t)y * width * 3, NULL);
}

static gp_status decode(decoder *d) {
  d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, give_up, ignore);
  if (d->png) d->info = png_create_info_struct(d->png);
  if (!d->info) return gp_fail(GP_ENOMEM, "%s: no memory to read it", d->file->path);
  png_set_user_limits(d->png, GP_PICTURE_SIDE, GP_PICTURE_SIDE);
  read_pixels(d);
  return d->status;
}

/* Decode a PNG. The library stops at the last row, so the end mark is looked for here. */
gp_status gp_png_decode(const gp_picture_file *file, gp_picture *picture) {
  if (!memmem(file->data, file->bytes, "IEND\xae\x42\x60\x82", 8))
    return gp_fail(GP_EFORMAT, "%s: byte %zu: the PNG ends too early", file->path, file->bytes);
  decoder d = {.file = file, .picture = picture};
  gp_status status;
  if (setjmp(d.back))
    status = gp_fail(GP_EFORMAT, "%s: byte %zu: damaged PNG: %s", file->path, d.at, d.text);
  else
    status = decode(&d);
  png_destroy_read_struct(&d.png, &d.info, NULL);
  return status;
}
