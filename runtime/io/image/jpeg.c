/* io/image/jpeg.c - decodes JPEG with libjpeg.
 *
 * libjpeg's errors jump back here. Damage that it would only warn about and fill with grey
 * (truncated data, invalid codes) is an error too.
 *
 * Files with four components are CMYK or YCCK, which the library converts to CMYK. Like Pillow, we
 * take all of them as inverted, as Adobe's programs write them. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <string.h>

/* clang-format off: jerror.h needs what comes before */
#include <jpeglib.h>
#include <jerror.h>
/* clang-format on */

#include "io/image/picture.h"

/* Every scan of a progressive file passes over all pixels; real files have about ten. */
enum { SCANS_MOST = 500, SCANS_OF_LARGEST = 16 };

typedef struct decoder {
  struct jpeg_decompress_struct jpeg; /* first, because the library passes its address back */
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf back;
  char text[JMSG_LENGTH_MAX];
  const gp_picture_file *file;
  gp_picture *picture;
  gp_status status; /* of our own functions */
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

/* How many scans a picture may have, so that scans times pixels stay within the limit that the
 * largest picture gets. */
static int scans_most(const gp_picture *picture) {
  int64_t pixels = (int64_t)picture->width * picture->height;
  int64_t most = (int64_t)SCANS_OF_LARGEST * GP_PICTURE_PIXELS / pixels;
  return most < SCANS_MOST ? (int)most : SCANS_MOST;
}

static void on_progress(j_common_ptr jpeg) {
  decoder *d = (decoder *)jpeg;
  int most = scans_most(d->picture);
  if (d->jpeg.input_scan_number <= most) return;
  snprintf(d->text, sizeof d->text, "more than %d scans of %d x %d pixels", most, d->picture->width,
           d->picture->height);
  longjmp(d->back, 1);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static int over_255(int product) {
  int rounded = product + 128;
  return (rounded + (rounded >> 8)) >> 8;
}

/* Convert a row of inverted CMYK, in which 255 means no ink: 3 bytes for every 4. Source: Pillow's
 * cmyk2rgb. */
static void to_rgb(const unsigned char *cmyk, size_t width, unsigned char *rgb) {
  for (size_t i = 0; i < width; i++, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; c++)
      rgb[c] = (unsigned char)(cmyk[3] - over_255((255 - cmyk[c]) * cmyk[3]));
}

/* Can the components become red, green and blue? */
static bool choose_colours(decoder *d) {
  int components = d->jpeg.num_components;
  if (components != 1 && components != 3 && components != 4) {
    d->status = gp_fail(GP_EFORMAT, "%s: a JPEG of %d components, expected grey, colour or CMYK",
                        d->file->path, components);
    return false;
  }
  d->jpeg.out_color_space = components == 4 ? JCS_CMYK : JCS_RGB;
  return true;
}

static void read_rows(decoder *d) {
  struct jpeg_decompress_struct *jpeg = &d->jpeg;
  size_t width = jpeg->output_width;
  bool cmyk = jpeg->out_color_space == JCS_CMYK;
  JSAMPARRAY four = NULL; /* memory of the library, freed with it */
  if (cmyk)
    four = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, (JDIMENSION)(4 * width), 1);
  while (jpeg->output_scanline < jpeg->output_height) {
    JSAMPROW row = d->picture->rgb + jpeg->output_scanline * width * 3;
    jpeg_read_scanlines(jpeg, cmyk ? four : &row, 1);
    if (cmyk) to_rgb(four[0], width, row);
  }
}

static void read_pixels(decoder *d) {
  struct jpeg_decompress_struct *jpeg = &d->jpeg;
  jpeg_mem_src(jpeg, d->file->data, (unsigned long)d->file->bytes);
  jpeg_read_header(jpeg, TRUE);
  if (!choose_colours(d)) return;
  d->status = gp_picture_room(d->file, jpeg->image_width, jpeg->image_height, d->picture);
  if (d->status) return;
  jpeg->progress = &d->progress; /* now the size is known */
  jpeg->dct_method = JDCT_ISLOW;
  jpeg_start_decompress(jpeg);
  read_rows(d);
  jpeg_finish_decompress(jpeg);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Is the file a valid JPEG of a kind that the library cannot read? */
static bool is_unsupported(int code) {
  return code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED ||
         code == JERR_CONVERSION_NOTIMPL;
}

gp_status gp_jpeg_decode(const gp_picture_file *file, gp_picture *picture) {
  decoder d = {.file = file, .picture = picture};
  d.jpeg.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = give_up;
  d.errors.emit_message = on_message;
  d.progress.progress_monitor = on_progress;
  if (setjmp(d.back)) { /* the library's position tells where the damage is */
    size_t left = d.jpeg.src ? d.jpeg.src->bytes_in_buffer : file->bytes;
    bool damaged = !is_unsupported(d.errors.msg_code);
    jpeg_destroy_decompress(&d.jpeg);
    return gp_fail(GP_EFORMAT, "%s: byte %zu: %s JPEG: %s", file->path,
                   left < file->bytes ? file->bytes - left : 0,
                   damaged ? "damaged" : "another kind of", d.text);
  }
  jpeg_create_decompress(&d.jpeg);
  read_pixels(&d);
  jpeg_destroy_decompress(&d.jpeg);
  return d.status;
}
