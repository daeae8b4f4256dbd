/* io/image/picture.c - recognises image files by their first bytes, and keeps the limits they
 * share. */
#include "io/image/picture.h"

#include <string.h>

#include "base/memory.h"
#include "io/file/reader.h"
#include "io/safetensors/foreign.h"

enum { FILE_MOST = 1 << 28 }; /* bytes of an image file */

gp_status gp_picture_room(const gp_picture_file *file, int64_t width, int64_t height,
                          gp_picture *picture) {
  if (width < 1 || height < 1 || width > GP_PICTURE_SIDE || height > GP_PICTURE_SIDE ||
      width * height > GP_PICTURE_PIXELS ||
      (uint64_t)(width * height) / GP_PICTURE_RATIO > file->bytes)
    return gp_fail(GP_EFORMAT, "%s: its header says %lld x %lld pixels, a file of %zu bytes cannot",
                   file->path, (long long)width, (long long)height, file->bytes);
  void *rgb = NULL;
  GP_TRY(gp_alloc_array((size_t)(width * height), 3, &rgb));
  picture->rgb = rgb;
  picture->width = (int)width, picture->height = (int)height;
  return GP_OK;
}

static gp_status decode(const gp_picture_file *file, gp_picture *picture) {
  if (file->bytes >= 8 && !memcmp(file->data, "\x89PNG\r\n\x1a\n", 8))
    return gp_png_decode(file, picture);
  if (file->bytes >= 3 && !memcmp(file->data, "\xff\xd8\xff", 3))
    return gp_jpeg_decode(file, picture);
  const char *name = gp_foreign_name(file->data, file->bytes);
  return gp_fail(GP_EFORMAT, "%s: byte 0: it is %s, expected a PNG or JPEG image", file->path,
                 name ? name : "neither PNG nor JPEG");
}

static gp_status read_file(const gp_reader *reader, gp_picture *picture) {
  if (reader->size == 0 || reader->size > FILE_MOST)
    return gp_fail(GP_EFORMAT, "%s: %llu bytes, expected an image of 1 to %d", reader->path,
                   (unsigned long long)reader->size, FILE_MOST);
  gp_picture_file file = {.path = reader->path, .bytes = (size_t)reader->size};
  void *data = NULL;
  GP_TRY(gp_alloc(file.bytes, &data));
  file.data = data;
  gp_status status = gp_reader_get(reader, 0, data, file.bytes);
  if (!status) status = decode(&file, picture);
  gp_free(data);
  return status;
}

gp_status gp_picture_read(const char *path, gp_picture *picture) {
  *picture = (gp_picture){.path = path};
  gp_reader reader;
  gp_status status = gp_reader_open(&reader, path);
  if (!status) status = read_file(&reader, picture);
  gp_reader_close(&reader);
  if (status) gp_picture_free(picture);
  return status;
}

void gp_picture_free(gp_picture *picture) {
  gp_free(picture->rgb);
  picture->rgb = NULL;
}
