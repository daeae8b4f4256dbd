/* io/image/jpeg.c - JPEG by libjpeg. Its errors jump back here; what it would only warn of and fill
 * with grey (data that is cut off, codes that are none) is an error too. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <string.h>

/* clang-format off: jerror.h needs what comes before */
#include <jpeglib.h>
#include <jerror.h>
/* clang-format on */

#include "io/image/picture.h"

enum { SCANS_MOST = 500 }; /* of a progressive file: more only cost time */

typedef struct decoder {
  struct jpeg_decompress_struct jpeg; /* first: the library hands its address back */
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf back;
  char text[JMSG_LENGTH_MAX];
  const gp_picture_file *file;
  gp_picture *picture;
  gp_status status; /* of our own calls */
} decoder;

static void give_up(j_common_ptr jpeg) {
  decoder *d = (decoder *)jpeg;
  jpeg->err->format_message(jpeg, d->text);
  longjmp(d->back, 1);
}

static void on_message(j_common_ptr jpeg, int level) {
  int code = jpeg->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
    give_up(jpeg);
}

static void on_progress(j_common_ptr jpeg) {
  decoder *d = (decoder *)jpeg;
  if (d->jpeg.input_scan_number <= SCANS_MOST) return;
  snprintf(d->text, sizeof d->text, "more than %d scans", SCANS_MOST);
  longjmp(d->back, 1);
}

static void read_pixels(decoder *d) {
  struct jpeg_decompress_struct *jpeg = &d->jpeg;
  jpeg_mem_src(jpeg, d->file->data, (unsigned long)d->file->bytes);
  jpeg_read_header(jpeg, TRUE);
  d->status = gp_picture_room(d->file, jpeg->image_width, jpeg->image_height, d->picture);
  if (d->status) return;
  jpeg->out_color_space = JCS_RGB;
  jpeg->dct_method = JDCT_ISLOW;
  jpeg_start_decompress(jpeg);
  while (jpeg->output_scanline < jpeg->output_height) {
    JSAMPROW row = d->picture->rgb + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
    jpeg_read_scanlines(jpeg, &row, 1);
  }
  jpeg_finish_decompress(jpeg);
}

gp_status gp_jpeg_decode(const gp_picture_file *file, gp_picture *picture) {
  decoder d = {.file = file, .picture = picture};
  d.jpeg.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = give_up;
  d.errors.emit_message = on_message;
  d.progress.progress_monitor = on_progress;
  if (setjmp(d.back)) { /* how far the library has read tells where the damage is */
    size_t left = d.jpeg.src ? d.jpeg.src->bytes_in_buffer : file->bytes;
    jpeg_destroy_decompress(&d.jpeg);
    return gp_fail(GP_EFORMAT, "%s: byte %zu: damaged JPEG: %s", file->path,
                   left < file->bytes ? file->bytes - left : 0, d.text);
  }
  jpeg_create_decompress(&d.jpeg);
  d.jpeg.progress = &d.progress;
  read_pixels(&d);
  jpeg_destroy_decompress(&d.jpeg);
  return d.status;
}
