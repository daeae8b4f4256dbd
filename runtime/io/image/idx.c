/* io/image/idx.c - reads MNIST's files: a header of big-endian sizes, then bytes; often gzipped.
 *
 * Nothing is allocated for what a header claims before the file is known to be large enough: a
 * plain file must have exactly that size, and a packed one at least a thousandth of it, which is
 * the most that deflate can compress. */
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/items.h"
#include "io/file/reader.h"
#include "io/safetensors/foreign.h"

enum {
  PIECE = 65536,
  RATIO = 1032,         /* most bytes that a byte of deflate can stand for */
  GZIP = 16 + MAX_WBITS /* for zlib: gzip's header and checksum */
};

/* A file's bytes in order, unpacked if they are packed. */
typedef struct source {
  gp_reader file;
  bool packed, open, ended; /* ended: the checksum was correct */
  uint64_t at;              /* bytes read from the file */
  z_stream z;
  unsigned char *piece; /* [PIECE], owned */
} source;

static gp_status broken(const source *s, const char *what) {
  return gp_fail(GP_EFORMAT, "%s: byte %llu: %s", s->file.path,
                 (unsigned long long)(s->at - s->z.avail_in), what);
}

static gp_status refill(source *s) {
  uint64_t left = s->file.size - s->at;
  if (!left) return broken(s, "the packed data ends too early");
  size_t bytes = left < PIECE ? (size_t)left : PIECE;
  GP_TRY(gp_reader_get(&s->file, s->at, s->piece, bytes));
  s->at += bytes;
  s->z.next_in = s->piece;
  s->z.avail_in = (uInt)bytes;
  return GP_OK;
}

static gp_status unpack(source *s, unsigned char *data, size_t bytes) {
  while (bytes) {
    if (!s->z.avail_in) GP_TRY(refill(s));
    uInt most = bytes < PIECE ? (uInt)bytes : PIECE;
    s->z.next_out = data;
    s->z.avail_out = most;
    int result = inflate(&s->z, Z_NO_FLUSH);
    uInt got = most - s->z.avail_out;
    data += got;
    bytes -= got;
    s->ended = result == Z_STREAM_END;
    if (s->ended && bytes) return broken(s, "the packed data ends too early");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return broken(s, s->z.msg ? s->z.msg : "the packed data is damaged");
  }
  return GP_OK;
}

static gp_status get(source *s, void *data, size_t bytes) {
  if (s->packed) return unpack(s, data, bytes);
  GP_TRY(gp_reader_get(&s->file, s->at, data, bytes));
  s->at += bytes;
  return GP_OK;
}

/* Check the checksum that ends packed data; nothing may follow. */
static gp_status finish(source *s) {
  if (!s->packed) return GP_OK;
  unsigned char rest;
  while (!s->ended) {
    if (!s->z.avail_in) GP_TRY(refill(s));
    s->z.next_out = &rest;
    s->z.avail_out = 1;
    int result = inflate(&s->z, Z_NO_FLUSH);
    s->ended = result == Z_STREAM_END;
    if (!s->z.avail_out) return broken(s, "there is more data than the header says");
    if (result != Z_OK && result != Z_STREAM_END)
      return broken(s, s->z.msg ? s->z.msg : "the packed data is damaged");
  }
  if (s->z.avail_in || s->at < s->file.size) return broken(s, "something follows the packed data");
  return GP_OK;
}

static gp_status open_source(const char *path, source *s) {
  unsigned char first[GP_FOREIGN_BYTES];
  GP_TRY(gp_reader_open(&s->file, path));
  size_t bytes = s->file.size < sizeof first ? (size_t)s->file.size : sizeof first;
  GP_TRY(gp_reader_get(&s->file, 0, first, bytes));
  s->packed = bytes >= 2 && first[0] == 0x1f && first[1] == 0x8b;
  const char *name = s->packed ? NULL : gp_foreign_name(first, bytes);
  if (name) return gp_fail(GP_EFORMAT, "%s: byte 0: it is %s, expected an IDX file", path, name);
  if (!s->packed) return GP_OK;
  void *piece = NULL;
  GP_TRY(gp_alloc(PIECE, &piece));
  s->piece = piece;
  s->open = inflateInit2(&s->z, GZIP) == Z_OK;
  return s->open ? GP_OK : gp_fail(GP_ENOMEM, "%s: no memory to unpack it", path);
}

static void close_source(source *s) {
  if (s->open) inflateEnd(&s->z);
  gp_free(s->piece);
  gp_reader_close(&s->file);
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Can the file hold as many bytes as the header says? */
static gp_status check_size(const source *s, const gp_shape *shape, size_t header) {
  int64_t count;
  uint64_t most = s->packed ? s->file.size * RATIO : s->file.size - header;
  gp_status status = gp_shape_numel(shape, &count);
  if (!status && (s->packed ? (uint64_t)count <= most : (uint64_t)count == most)) return GP_OK;
  char text[96];
  return gp_fail(GP_EFORMAT, "%s: byte 4: the header says %s bytes, the file has %s%llu",
                 s->file.path, gp_shape_print(shape, text, sizeof text),
                 s->packed ? "room for at most " : "", (unsigned long long)most);
}

static gp_status read_header(source *s, int rank, gp_shape *shape) {
  unsigned char magic[4], size[4];
  if (!s->packed && s->file.size < 4 + 4 * (uint64_t)rank)
    return gp_fail(GP_EFORMAT, "%s: byte %llu: the file ends within its header", s->file.path,
                   (unsigned long long)s->file.size);
  GP_TRY(get(s, magic, sizeof magic));
  if (magic[0] || magic[1] || magic[2] != 8 || magic[3] != rank)
    return gp_fail(GP_EFORMAT,
                   "%s: byte 0: it begins with %02x %02x %02x %02x, expected 00 00 08 %02x (IDX, "
                   "bytes, %d dimension%s)",
                   s->file.path, magic[0], magic[1], magic[2], magic[3], rank, rank,
                   rank == 1 ? "" : "s");
  *shape = (gp_shape){.rank = rank};
  for (int d = 0; d < rank; d++) {
    GP_TRY(get(s, size, sizeof size));
    shape->dim[d] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
  }
  return check_size(s, shape, 4 + 4 * (size_t)rank);
}

gp_status gp_idx_read(const char *path, int rank, gp_tensor **values) {
  source s = {.file = {.fd = -1, .path = path}};
  gp_shape shape;
  gp_tensor *made = NULL;
  gp_status status = open_source(path, &s);
  if (!status) status = read_header(&s, rank, &shape);
  if (!status) status = gp_tensor_new(GP_U8, &shape, &made);
  if (!status) status = get(&s, gp_tensor_data(made), (size_t)gp_tensor_numel(made));
  if (!status) status = finish(&s);
  close_source(&s);
  if (status)
    gp_tensor_free(made);
  else
    *values = made;
  return status;
}
