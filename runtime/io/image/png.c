/* io/image/png.c - PNG by libpng's simplified interface, which catches its own jumps and leaves the
 * text of an error in the object. */
#include <png.h>
#include <stdio.h> /* fmemopen */
#include <string.h>

#include "io/image/picture.h"

/* How far the library has read tells where the damage is. */
static gp_status refuse(const gp_picture_file *file, FILE *stream, const png_image *image) {
  return gp_fail(GP_EFORMAT, "%s: byte %ld: damaged PNG: %s", file->path, ftell(stream),
                 *image->message ? image->message : "it cannot be read");
}

static gp_status read_pixels(const gp_picture_file *file, FILE *stream, png_image *image,
                             gp_picture *picture) {
  GP_TRY(gp_picture_room(file, image->width, image->height, picture));
  image->format = PNG_FORMAT_RGB;
  if (!png_image_finish_read(image, NULL, picture->rgb, 0, NULL))
    return refuse(file, stream, image);
  return GP_OK;
}

static gp_status decode(const gp_picture_file *file, FILE *stream, gp_picture *picture) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_stdio(&image, stream)) return refuse(file, stream, &image);
  gp_status status = read_pixels(file, stream, &image, picture);
  png_image_free(&image);
  return status;
}

/* The library stops at the last row: the mark of the end is looked for here. */
gp_status gp_png_decode(const gp_picture_file *file, gp_picture *picture) {
  if (!memmem(file->data, file->bytes, "IEND\xae\x42\x60\x82", 8))
    return gp_fail(GP_EFORMAT, "%s: byte %zu: the PNG ends too early", file->path, file->bytes);
  FILE *stream = fmemopen((void *)file->data, file->bytes, "rb");
  if (!stream) return gp_fail(GP_ENOMEM, "%s: no memory to read it", file->path);
  setvbuf(stream, NULL, _IONBF, 0); /* the bytes are in memory, and its position is to be theirs */
  gp_status status = decode(file, stream, picture);
  fclose(stream);
  return status;
}
