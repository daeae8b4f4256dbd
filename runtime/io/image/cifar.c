/* io/image/cifar.c - reads CIFAR's binary files: records of one or two labels and 3072 bytes of
 * red, green and blue.
 *
 * A record has no mark. What can be checked is that the file consists of whole records, and that
 * the labels are valid classes. */
#include <string.h>

#include "base/tensor.h"
#include "gpipe/items.h"
#include "io/file/reader.h"
#include "io/safetensors/foreign.h"

enum { SIDE = 32, IMAGE = 3 * SIDE * SIDE, RECORD_MOST = IMAGE + 2, RECORDS = 1 << 20 };

/* How many label bytes come before the image, and how many classes the last of them has. */
typedef struct form {
  size_t labels;
  int classes;
} form;

static gp_status refuse_size(const gp_reader *file, size_t record) {
  unsigned char first[GP_FOREIGN_BYTES];
  size_t bytes = file->size < sizeof first ? (size_t)file->size : sizeof first;
  GP_TRY(gp_reader_get(file, 0, first, bytes));
  const char *name = gp_foreign_name(first, bytes);
  if (name)
    return gp_fail(GP_EFORMAT, "%s: byte 0: it is %s, expected a binary file of CIFAR", file->path,
                   name);
  return gp_fail(GP_EFORMAT, "%s: byte %llu: the file ends within a record of %zu bytes",
                 file->path, (unsigned long long)(file->size - file->size % record), record);
}

static gp_status count_records(const char *path, size_t record, int64_t *count) {
  gp_reader file;
  gp_status status = gp_reader_open(&file, path);
  if (!status && (file.size % record || !file.size)) status = refuse_size(&file, record);
  if (!status) *count += (int64_t)(file.size / record);
  gp_reader_close(&file);
  if (!status && *count > RECORDS)
    status = gp_fail(GP_EFORMAT, "%s: more than %d records", path, RECORDS);
  return status;
}

/* Read records up to the end of the file, or up to `room`: the file may have grown. */
static gp_status read_records(const gp_reader *file, form f, int64_t room, unsigned char *image,
                              int64_t *label) {
  unsigned char record[RECORD_MOST];
  size_t bytes = f.labels + IMAGE;
  for (int64_t i = 0; i < room; i++) {
    uint64_t at = (uint64_t)i * bytes;
    GP_TRY(gp_reader_get(file, at, record, bytes));
    label[i] = record[f.labels - 1];
    if (label[i] >= f.classes)
      return gp_fail(GP_EFORMAT, "%s: byte %llu: the label is %lld, expected less than %d",
                     file->path, (unsigned long long)(at + f.labels - 1), (long long)label[i],
                     f.classes);
    memcpy(image + i * IMAGE, record + f.labels, IMAGE);
  }
  return GP_OK;
}

static gp_status read_all(const char *const *paths, size_t count, form f, gp_tensor *images,
                          gp_tensor *labels) {
  unsigned char *image = gp_tensor_data(images);
  int64_t *label = gp_tensor_data(labels), at = 0, room = gp_tensor_numel(labels);
  gp_status status = GP_OK;
  for (size_t i = 0; i < count && !status; i++) {
    gp_reader file;
    status = gp_reader_open(&file, paths[i]);
    int64_t n = status ? 0 : (int64_t)(file.size / (f.labels + IMAGE));
    if (n > room - at) n = room - at;
    if (!status) status = read_records(&file, f, n, image + at * IMAGE, label + at);
    gp_reader_close(&file);
    at += n;
  }
  return status;
}

gp_status gp_cifar_read(const char *const *paths, size_t count, bool fine, gp_tensor **images,
                        gp_tensor **labels) {
  form f = fine ? (form){2, 100} : (form){1, 10};
  int64_t n = 0;
  for (size_t i = 0; i < count; i++) GP_TRY(count_records(paths[i], f.labels + IMAGE, &n));
  gp_tensor *x = NULL, *y = NULL;
  gp_status status = gp_tensor_new(GP_U8, &(gp_shape){.rank = 4, .dim = {n, 3, SIDE, SIDE}}, &x);
  if (!status) status = gp_tensor_new(GP_I64, &(gp_shape){.rank = 1, .dim = {n}}, &y);
  if (!status) status = read_all(paths, count, f, x, y);
  if (status) {
    gp_tensor_free(x);
    gp_tensor_free(y);
    return status;
  }
  *images = x;
  *labels = y;
  return GP_OK;
}
