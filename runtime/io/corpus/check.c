/* io/corpus/check.c - checks that a file is what the script says: text, or ids. */
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "gpipe/corpus.h"
#include "io/safetensors/foreign.h"
#include "io/text/utf8.h"

static bool ends_with(const char *path, const char *end) {
  size_t length = strlen(path), size = strlen(end);
  return length >= size && strcmp(path + length - size, end) == 0;
}

static gp_status refuse(const char *path, const char *name, const char *wanted) {
  return gp_fail(GP_EFORMAT, "%s: byte 0: it is %s, expected %s", path, name, wanted);
}

/* Check that a file is text. JSON is text, and so is an HTML page if the file's name says that it
 * is one. */
gp_status gp_text_check(const char *path, const gp_tensor *bytes) {
  const char *text = gp_tensor_data(bytes);
  size_t size = (size_t)gp_tensor_numel(bytes);
  const char *name = size ? gp_foreign_name(text, size) : NULL;
  bool page = size && text[0] == '<' && (ends_with(path, ".html") || ends_with(path, ".htm"));
  if (name && text[0] != '{' && !page) return refuse(path, name, "text");
  size_t good = size ? gp_utf8_prefix(text, size) : 0;
  if (good == size) return GP_OK;
  return gp_fail(GP_EFORMAT,
                 "%s: byte %zu (0x%02x) is no UTF-8, expected text (gp.data.bytes takes any bytes)",
                 path, good, (unsigned)(unsigned char)text[good]);
}

/* Two bytes are also one id, so a mark of two bytes counts only with further evidence: a pickle
 * ends with a full stop, gzip names its method, JSON is printable. */
static bool is_sure(const unsigned char *first, size_t size) {
  if (first[0] == 0x80) return first[size - 1] == '.';
  if (first[0] == 0x1f) return size > 2 && first[2] == 8;
  if (first[0] != '{') return true;
  for (size_t i = 0; i < size && i < GP_FOREIGN_BYTES; i++)
    if ((first[i] < ' ' && first[i] != '\n') || first[i] > '~') return false;
  return true;
}

gp_status gp_tokens_check(const char *path, const gp_tensor *bytes, int width) {
  const unsigned char *data = gp_tensor_data(bytes);
  size_t size = (size_t)gp_tensor_numel(bytes);
  const char *name = size ? gp_foreign_name(data, size) : NULL;
  if (name && is_sure(data, size)) return refuse(path, name, "ids of a fixed size");
  if (size % (size_t)width == 0) return GP_OK;
  return gp_fail(GP_EFORMAT, "%s: byte %zu: the file ends within an id of %d bytes", path,
                 size - size % (size_t)width, width);
}
