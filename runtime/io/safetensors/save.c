/* io/safetensors/save.c - saves an archive as a safetensors file: u64 length of the header, JSON
 * header padded with spaces to 8 bytes, the tensors' bytes without a gap.
 *
 * The data is in descending order of element size, as the reference writer has it, so that every
 * tensor is aligned to its elements for readers that map the file; the header keeps the archive's
 * order. Source: safetensors format description. */

#include "base/memory.h"
#include "base/tensor.h"
#include "io/safetensors/archive.h"
#include "io/text/text.h"
#include "io/file/writer.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

static const gp_meta *meta_of(const gp_archive *archive, size_t index) {
  return gp_tensor_meta(gp_archive_tensor(archive, index));
}

/* ---- layout -------------------------------------------------------------------------------- */

/* offset[i] receives the place of tensor i; tensors with larger elements come first. */
static gp_status lay_out(const gp_archive *archive, uint64_t *offset) {
  size_t end = 0;
  for (size_t size = 8; size; size /= 2)
    for (size_t i = 0; i < gp_archive_count(archive); i++) {
      const gp_meta *meta = meta_of(archive, i);
      if (gp_dtype_size(meta->dtype) != size) continue;
      offset[i] = end;
      GP_TRY(gp_size_add(end, gp_meta_bytes(meta), &end));
    }
  return GP_OK;
}

/* ---- header -------------------------------------------------------------------------------- */

/* [a,b,c] */
static gp_status add_list(gp_text *header, const uint64_t *values, int count) {
  GP_TRY(gp_text_string(header, "["));
  for (int i = 0; i < count; i++) {
    if (i) GP_TRY(gp_text_string(header, ","));
    GP_TRY(gp_text_uint(header, values[i]));
  }
  return gp_text_string(header, "]");
}

/* "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]} */
static gp_status add_tensor(gp_text *header, const char *name, const gp_meta *meta,
                            uint64_t offset) {
  uint64_t dims[GP_MAX_RANK];
  for (int d = 0; d < meta->shape.rank; d++) dims[d] = (uint64_t)meta->shape.dim[d];
  GP_TRY(gp_text_quote(header, name));
  GP_TRY(gp_text_string(header, ":{\"dtype\":\""));
  GP_TRY(gp_text_string(header, gp_archive_dtype_name(meta->dtype)));
  GP_TRY(gp_text_string(header, "\",\"shape\":"));
  GP_TRY(add_list(header, dims, meta->shape.rank));
  GP_TRY(gp_text_string(header, ",\"data_offsets\":"));
  GP_TRY(add_list(header, (uint64_t[]){offset, offset + gp_meta_bytes(meta)}, 2));
  return gp_text_string(header, "}");
}

static gp_status add_metadata(gp_text *header, const gp_archive *archive) {
  GP_TRY(gp_text_string(header, "\"" GP_ARCHIVE_METADATA "\":{"));
  for (size_t i = 0; i < gp_archive_text_count(archive); i++) {
    if (i) GP_TRY(gp_text_string(header, ","));
    GP_TRY(gp_text_quote(header, gp_archive_text_key(archive, i)));
    GP_TRY(gp_text_string(header, ":"));
    GP_TRY(gp_text_quote(header, gp_archive_text_value(archive, i)));
  }
  return gp_text_string(header, "}");
}

static gp_status write_header(gp_text *header, const gp_archive *archive, const uint64_t *offset) {
  bool metadata = gp_archive_text_count(archive) > 0;
  GP_TRY(gp_text_string(header, "{"));
  if (metadata) GP_TRY(add_metadata(header, archive));
  for (size_t i = 0; i < gp_archive_count(archive); i++) {
    if (i || metadata) GP_TRY(gp_text_string(header, ","));
    GP_TRY(add_tensor(header, gp_archive_name(archive, i), meta_of(archive, i), offset[i]));
  }
  GP_TRY(gp_text_string(header, "}"));
  while (header->size % 8) GP_TRY(gp_text_string(header, " "));
  if (header->size > GP_ARCHIVE_MAX_HEADER)
    return gp_fail(GP_EINVAL,
                   "archive: names and metadata need a header of %zu bytes, the format "
                   "has at most %d",
                   header->size, GP_ARCHIVE_MAX_HEADER);
  return GP_OK;
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Write a tensor. A view with gaps, or a tensor on a GPU, goes through a contiguous copy, one
 * tensor at a time. */
static gp_status write_tensor(gp_writer *writer, gp_tensor *tensor) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  size_t bytes = gp_meta_bytes(meta);
  if (gp_tensor_is_contiguous(tensor) && !gp_tensor_space(tensor))
    return gp_writer_put(writer, gp_tensor_data(tensor), bytes);
  gp_tensor *copy;
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &copy));
  gp_status status = gp_tensor_copy(copy, tensor);
  if (!status) status = gp_writer_put(writer, gp_tensor_data(copy), bytes);
  gp_tensor_free(copy);
  return status;
}

/* Write the data with the same two loops as lay_out, so that offsets and bytes agree. */
static gp_status write_data(gp_writer *writer, const gp_archive *archive) {
  for (size_t size = 8; size; size /= 2)
    for (size_t i = 0; i < gp_archive_count(archive); i++)
      if (gp_dtype_size(meta_of(archive, i)->dtype) == size)
        GP_TRY(write_tensor(writer, gp_archive_tensor(archive, i)));
  return GP_OK;
}

static gp_status write_file(gp_writer *writer, const gp_archive *archive, const gp_text *header) {
  uint64_t size = header->size;
  GP_TRY(gp_writer_put(writer, &size, GP_ARCHIVE_PREFIX));
  GP_TRY(gp_writer_put(writer, header->data, header->size));
  return write_data(writer, archive);
}

/* Everything that can fail without writing comes first. */
gp_status gp_archive_put(const gp_archive *archive, gp_writer *writer) {
  void *offset = NULL;
  gp_text header = {0};
  GP_TRY(gp_alloc_array(gp_archive_count(archive) + 1, sizeof(uint64_t), &offset));
  gp_status status = lay_out(archive, offset);
  if (!status) status = write_header(&header, archive, offset);
  if (!status) status = write_file(writer, archive, &header);
  gp_text_clear(&header);
  gp_free(offset);
  return status;
}

gp_status gp_archive_save(const gp_archive *archive, const char *path) {
  gp_writer writer;
  gp_status status = gp_writer_open(&writer, path);
  if (!status) status = gp_archive_put(archive, &writer);
  if (!status) status = gp_writer_commit(&writer);
  gp_writer_close(&writer);
  return status;
}
