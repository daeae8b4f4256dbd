/* io/safetensors/archive.c - named tensors and string metadata in memory, between a script and a
 * file.
 *
 * Invariant: every name and text is valid UTF-8 of a size that the format accepts, and no name
 * appears twice; so saving can fail only for reasons outside the archive, such as a full disk. */
#include "io/safetensors/archive.h"

#include <string.h>

#include "base/memory.h"
#include "io/text/json.h"
#include "io/text/utf8.h"
#include "io/safetensors/names.h"

struct gp_archive {
  gp_names names;
  gp_tensor **tensor; /* [names.capacity], retained */
  size_t tensors;     /* elements of tensor[] */
  size_t empty;       /* tensors without elements */
  gp_names keys;
  char **value; /* [keys.capacity], stored with the keys */
  size_t values;
};

/* ---- dtype names --------------------------------------------------------------------------- */

static const char *const dtype_names[] = {
    [GP_F32] = "F32", [GP_F64] = "F64", [GP_BF16] = "BF16", [GP_F16] = "F16",
    [GP_I64] = "I64", [GP_I32] = "I32", [GP_U8] = "U8",     [GP_BOOL] = "BOOL",
};
_Static_assert(sizeof dtype_names / sizeof *dtype_names == GP_DTYPE_COUNT, "one name per dtype");

const char *gp_archive_dtype_name(gp_dtype dtype) { return dtype_names[dtype]; }

bool gp_archive_dtype_parse(const char *name, gp_dtype *dtype) {
  for (int i = 0; i < GP_DTYPE_COUNT; i++)
    if (!strcmp(name, dtype_names[i])) {
      *dtype = (gp_dtype)i;
      return true;
    }
  return false;
}

/* ---- life ---------------------------------------------------------------------------------- */

gp_status gp_archive_new(gp_archive **archive) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **archive, &memory));
  *archive = memory;
  return GP_OK;
}

/* Free an archive, even one that failed while it was built. */
void gp_archive_free(gp_archive *archive) {
  if (!archive) return;
  for (size_t i = 0; i < archive->names.count; i++) gp_tensor_free(archive->tensor[i]);
  gp_free(archive->tensor);
  gp_free(archive->value);
  gp_names_clear(&archive->names);
  gp_names_clear(&archive->keys);
  gp_free(archive);
}

/* ---- adding -------------------------------------------------------------------------------- */

/* Refuse here what the reader would refuse, so that the error points to the script's line. */
static gp_status check_name(const char *name) {
  size_t size = strlen(name);
  if (size > GP_ARCHIVE_MAX_NAME)
    return gp_fail(GP_EINVAL, "archive: a name has %zu bytes, at most %d are possible", size,
                   GP_ARCHIVE_MAX_NAME);
  if (!gp_utf8_valid(name, size))
    return gp_fail(GP_EINVAL, "archive: the name '%.100s' is not valid UTF-8", name);
  return GP_OK;
}

/* The arrays grow first: once the name is in the set, nothing can fail any more. */
gp_status gp_archive_add(gp_archive *archive, const char *name, gp_tensor *tensor) {
  GP_TRY(check_name(name));
  if (!strcmp(name, GP_ARCHIVE_METADATA))
    return gp_fail(GP_EINVAL, "archive: the name '%.100s' belongs to the format", name);
  if (archive->names.count >= GP_ARCHIVE_MAX_TENSORS)
    return gp_fail(GP_EINVAL, "archive: more than %d tensors", GP_ARCHIVE_MAX_TENSORS);
  bool empty = gp_tensor_numel(tensor) == 0;
  if (empty && archive->empty >= GP_ARCHIVE_MAX_EMPTY)
    return gp_fail(GP_EINVAL, "archive: more than %d tensors without elements",
                   GP_ARCHIVE_MAX_EMPTY);
  void *array = archive->tensor;
  gp_status status = gp_grow_array(archive->names.count, &archive->tensors, sizeof(void *), &array);
  archive->tensor = array;
  if (status) return status;
  status = gp_names_add(&archive->names, name);
  if (status) return gp_fail_prefix(status, "archive");
  archive->tensor[archive->names.count - 1] = gp_tensor_retain(tensor);
  archive->empty += empty;
  return GP_OK;
}

gp_status gp_archive_add_text(gp_archive *archive, const char *key, const char *value) {
  GP_TRY(check_name(key));
  if (archive->keys.count >= GP_ARCHIVE_MAX_TEXTS)
    return gp_fail(GP_EINVAL, "archive: more than %d entries of metadata", GP_ARCHIVE_MAX_TEXTS);
  if (!gp_utf8_valid(value, strlen(value)))
    return gp_fail(GP_EINVAL, "archive: the metadata of '%.100s' is not valid UTF-8", key);
  void *array = archive->value;
  gp_status status = gp_grow_array(archive->keys.count, &archive->values, sizeof(void *), &array);
  archive->value = array;
  if (status) return status;
  char *copy;
  GP_TRY(gp_names_store(&archive->keys, value, &copy));
  status = gp_names_add(&archive->keys, key);
  if (status) return gp_fail_prefix(status, "archive: metadata");
  archive->value[archive->keys.count - 1] = copy;
  return GP_OK;
}

/* ---- reading it back ----------------------------------------------------------------------- */

size_t gp_archive_count(const gp_archive *archive) { return archive->names.count; }

const char *gp_archive_name(const gp_archive *archive, size_t index) {
  return archive->names.name[index];
}

gp_tensor *gp_archive_tensor(const gp_archive *archive, size_t index) {
  return archive->tensor[index];
}

size_t gp_archive_text_count(const gp_archive *archive) { return archive->keys.count; }

const char *gp_archive_text_key(const gp_archive *archive, size_t index) {
  return archive->keys.name[index];
}

const char *gp_archive_text_value(const gp_archive *archive, size_t index) {
  return archive->value[index];
}
