/* io/checkpoint/manifest.c - writes and reads a checkpoint's list of files. */
#include "io/checkpoint/manifest.h"

#include <stdio.h> /* snprintf */
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "gpipe/data.h"
#include "io/file/reader.h"
#include "io/file/writer.h"
#include "io/text/json.h"
#include "io/text/text.h"

#define FORMAT "gpipe-lua checkpoint 1"

static const char checksum_key[] = ",\n \"crc32\": ";

enum { MOST_BYTES = 1 << 30, MOST_FILES = 1 << 20 };

static uint64_t checksum(const char *text, size_t size) {
  return crc32_z(0, (const Bytef *)text, size);
}

/* ---- making -------------------------------------------------------------------------------- */

gp_status gp_manifest_add(gp_manifest *manifest, const char *name, uint64_t bytes, uint64_t crc32) {
  if (name[0] == '.' || name[0] == '\0' || strchr(name, '/'))
    return gp_fail(GP_EINVAL, "checkpoint: a file is named '%s', expected a plain name", name);
  void *array = manifest->files;
  GP_TRY(gp_grow_array(manifest->count, &manifest->capacity, sizeof *manifest->files, &array));
  manifest->files = array;
  gp_manifest_file *file = &manifest->files[manifest->count];
  *file = (gp_manifest_file){.bytes = bytes, .crc32 = crc32};
  GP_TRY(gp_copy_string(name, &file->name));
  manifest->count++;
  return GP_OK;
}

void gp_manifest_clear(gp_manifest *manifest) {
  for (size_t i = 0; i < manifest->count; i++) gp_free(manifest->files[i].name);
  gp_free(manifest->files);
  gp_free(manifest->state);
  *manifest = (gp_manifest){0};
}

/* ---- writing ------------------------------------------------------------------------------- */

static gp_status put_file(gp_text *text, const gp_manifest_file *file, bool first) {
  GP_TRY(gp_text_string(text, first ? "\n  {\"name\": " : ",\n  {\"name\": "));
  GP_TRY(gp_text_quote(text, file->name));
  GP_TRY(gp_text_string(text, ", \"bytes\": "));
  GP_TRY(gp_text_uint(text, file->bytes));
  GP_TRY(gp_text_string(text, ", \"crc32\": "));
  GP_TRY(gp_text_uint(text, file->crc32));
  return gp_text_string(text, "}");
}

static gp_status put_all(gp_text *text, const gp_manifest *manifest) {
  GP_TRY(gp_text_string(text, "{\"format\": \"" FORMAT "\",\n \"files\": ["));
  for (size_t i = 0; i < manifest->count; i++) GP_TRY(put_file(text, &manifest->files[i], i == 0));
  GP_TRY(gp_text_string(text, "],\n \"state\": "));
  GP_TRY(gp_text_quote(text, manifest->state));
  uint64_t sum = checksum(text->data, text->size);
  GP_TRY(gp_text_string(text, checksum_key));
  GP_TRY(gp_text_uint(text, sum));
  return gp_text_string(text, "}\n");
}

static gp_status write_text(const gp_text *text, const char *path) {
  gp_writer writer;
  gp_status status = gp_writer_open(&writer, path);
  if (!status) status = gp_writer_put(&writer, text->data, text->size);
  if (!status) status = gp_writer_place(&writer);
  gp_writer_close(&writer);
  return status;
}

gp_status gp_manifest_save(const gp_manifest *manifest, const char *path) {
  gp_text text = {0};
  gp_status status = put_all(&text, manifest);
  if (!status) status = write_text(&text, path);
  gp_text_clear(&text);
  return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Read the next key of an object, which must be `wanted`. */
static gp_status want_key(gp_json *json, bool first, const char *wanted) {
  bool more;
  const char *key = "nothing";
  GP_TRY(gp_json_more(json, first, '}', &more));
  if (more) GP_TRY(gp_json_key(json, &key));
  if (strcmp(key, wanted) == 0) return GP_OK;
  return gp_fail(GP_EFORMAT, "'%s' stands where '%s' was expected", key, wanted);
}

static gp_status want_end(gp_json *json) {
  bool more;
  GP_TRY(gp_json_more(json, false, '}', &more));
  return more ? gp_fail(GP_EFORMAT, "there is more than a checkpoint has") : GP_OK;
}

static gp_status parse_file(gp_json *json, gp_manifest *manifest) {
  const char *name;
  uint64_t bytes, sum;
  GP_TRY(gp_json_expect(json, '{'));
  GP_TRY(want_key(json, true, "name"));
  GP_TRY(gp_json_string(json, &name));
  GP_TRY(want_key(json, false, "bytes"));
  GP_TRY(gp_json_uint(json, &bytes));
  GP_TRY(want_key(json, false, "crc32"));
  GP_TRY(gp_json_uint(json, &sum));
  GP_TRY(want_end(json));
  if (manifest->count == MOST_FILES) return gp_fail(GP_EFORMAT, "it has too many files");
  gp_status status = gp_manifest_add(manifest, name, bytes, sum);
  return status == GP_EINVAL ? gp_fail_text(GP_EFORMAT, gp_error_text()) : status;
}

static gp_status parse_files(gp_json *json, gp_manifest *manifest) {
  GP_TRY(gp_json_expect(json, '['));
  for (bool first = true, more;; first = false) {
    GP_TRY(gp_json_more(json, first, ']', &more));
    if (!more) return GP_OK;
    GP_TRY(parse_file(json, manifest));
  }
}

static gp_status parse(gp_json *json, gp_manifest *manifest, uint64_t sum) {
  const char *text;
  uint64_t said;
  GP_TRY(gp_json_expect(json, '{'));
  GP_TRY(want_key(json, true, "format"));
  GP_TRY(gp_json_string(json, &text));
  if (strcmp(text, FORMAT) != 0)
    return gp_fail(GP_EFORMAT, "its format is '%.60s', expected '" FORMAT "'", text);
  GP_TRY(want_key(json, false, "files"));
  GP_TRY(parse_files(json, manifest));
  GP_TRY(want_key(json, false, "state"));
  GP_TRY(gp_json_string(json, &text));
  GP_TRY(gp_copy_string(text, &manifest->state));
  GP_TRY(want_key(json, false, "crc32"));
  GP_TRY(gp_json_uint(json, &said));
  GP_TRY(want_end(json));
  GP_TRY(gp_json_end(json));
  if (said == sum) return GP_OK;
  return gp_fail(GP_EFORMAT, "its checksum is %llu, expected %llu: it is damaged",
                 (unsigned long long)sum, (unsigned long long)said);
}

/* The number of bytes before the last key. */
static size_t before_checksum(const char *text, size_t size) {
  size_t key = sizeof checksum_key - 1;
  for (size_t at = size; at >= key; at--)
    if (memcmp(text + at - key, checksum_key, key) == 0) return at - key;
  return size;
}

/* Are the last key, its number and the end exactly as they were written? Other forms that JSON
 * allows could hide a changed bit. */
static bool ends_as_written(const char *end, size_t size, uint64_t sum) {
  char tail[40];
  int length = snprintf(tail, sizeof tail, "%s%llu}\n", checksum_key, (unsigned long long)sum);
  return (size_t)length == size && memcmp(end, tail, size) == 0;
}

/* Parse the text. The JSON reader decodes strings in place, so the checksum is computed first. */
static gp_status parse_text(char *text, size_t size, gp_manifest *manifest) {
  size_t end = before_checksum(text, size);
  uint64_t sum = checksum(text, end);
  bool whole = ends_as_written(text + end, size - end, sum);
  gp_json json = {text, size, 0};
  GP_TRY(parse(&json, manifest, sum));
  return whole ? GP_OK : gp_fail(GP_EFORMAT, "its end is not as it was written");
}

static gp_status read_text(const gp_reader *file, char **text) {
  if (file->size > MOST_BYTES)
    return gp_fail(GP_EFORMAT, "%s: it has %llu bytes, expected less than 1 GiB", file->path,
                   (unsigned long long)file->size);
  void *memory = NULL;
  GP_TRY(gp_alloc((size_t)file->size + 1, &memory));
  *text = memory;
  (*text)[file->size] = '\0';
  return gp_reader_get(file, 0, *text, (size_t)file->size);
}

gp_status gp_manifest_load(const char *path, gp_manifest *manifest) {
  gp_reader file;
  char *text = NULL;
  *manifest = (gp_manifest){0};
  gp_status status = gp_reader_open(&file, path);
  if (!status) status = read_text(&file, &text);
  if (!status) {
    status = parse_text(text, (size_t)file.size, manifest);
    if (status) status = gp_fail_prefix(status, path);
  }
  gp_reader_close(&file);
  gp_free(text);
  if (status) gp_manifest_clear(manifest);
  return status;
}
