/* io/safetensors/load.c - loads a safetensors file as an archive. The file is not trusted.
 *
 * Everything is checked before the first tensor is made: the header against the file, each tensor's
 * bytes against its shape, and that the tensors cover the data exactly, without hole, overlap or
 * trailer. So no more memory is allocated than the file is long. Order of the checks: length, text,
 * header, layout, data. Source: safetensors format description and the rules of its reference
 * reader (tensor.rs). */
#include <inttypes.h>
#include <stdlib.h> /* qsort, bsearch */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "io/safetensors/archive.h"
#include "io/safetensors/foreign.h"
#include "io/text/json.h"
#include "io/text/utf8.h"
#include "io/file/reader.h"

/* What the header says about one tensor. */
typedef struct entry {
  const char *name; /* in the header's text */
  gp_dtype dtype;
  gp_shape shape;
  uint64_t begin, end; /* bytes from the start of the data */
} entry;

typedef struct loader {
  gp_reader file;
  gp_json header;
  uint64_t data;                   /* where the tensors' bytes begin in the file */
  entry *entry;                    /* in the header's order */
  size_t count, capacity, without; /* entries; entries without bytes */
  gp_archive *archive;
  gp_tensor *empty[GP_DTYPE_COUNT]; /* all tensors without bytes share its storage */
  const char *const *wanted;        /* names[wanted_count], ascending; NULL: all are wanted */
  size_t wanted_count;
} loader;

/* ---- the header's text --------------------------------------------------------------------- */

/* Fail because no header has such a length; say what the file is, if that is known. */
static gp_status not_a_header(const loader *l, uint64_t size) {
  char first[GP_FOREIGN_BYTES];
  size_t bytes = l->file.size < sizeof first ? (size_t)l->file.size : sizeof first;
  GP_TRY(gp_reader_get(&l->file, 0, first, bytes));
  const char *name = gp_foreign_name(first, bytes);
  if (name) return gp_fail(GP_EFORMAT, "it is %s, expected a safetensors file", name);
  return gp_fail(GP_EFORMAT,
                 "the header is said to have %" PRIu64 " bytes, the file has %" PRIu64
                 " and a header at most %d",
                 size, l->file.size, GP_ARCHIVE_MAX_HEADER);
}

/* Read the header. Its length is compared with the rest of the file before memory is allocated. */
static gp_status read_header(loader *l) {
  uint64_t size = 0;
  if (l->file.size < GP_ARCHIVE_PREFIX)
    return gp_fail(GP_EFORMAT, "the file has %" PRIu64 " bytes, a safetensors file at least %d",
                   l->file.size, GP_ARCHIVE_PREFIX);
  GP_TRY(gp_reader_get(&l->file, 0, &size, GP_ARCHIVE_PREFIX));
  if (size > GP_ARCHIVE_MAX_HEADER || size > l->file.size - GP_ARCHIVE_PREFIX)
    return not_a_header(l, size);
  void *text = NULL;
  GP_TRY(gp_alloc_array((size_t)size + 1, 1, &text));
  l->header = (gp_json){.text = text, .size = (size_t)size};
  l->data = GP_ARCHIVE_PREFIX + size;
  GP_TRY(gp_reader_get(&l->file, GP_ARCHIVE_PREFIX, text, (size_t)size));
  if (!gp_utf8_valid(text, (size_t)size))
    return gp_fail(GP_EFORMAT, "the header is not valid UTF-8");
  return GP_OK;
}

/* ---- one tensor of the header -------------------------------------------------------------- */

/* Parse a dtype. The format's other dtypes (F8_E4M3, I16, ..) are an error, not a guess. */
static gp_status parse_dtype(loader *l, entry *e) {
  const char *name;
  GP_TRY(gp_json_string(&l->header, &name));
  if (gp_archive_dtype_parse(name, &e->dtype)) return GP_OK;
  return gp_fail(
      GP_EFORMAT,
      "tensor '%.100s' has dtype '%.100s', expected F32, F64, BF16, F16, I64, I32, U8 or BOOL",
      e->name, name);
}

/* Parse a list of at most `limit` numbers. */
static gp_status parse_list(loader *l, const entry *e, uint64_t *values, int limit, int *count) {
  GP_TRY(gp_json_expect(&l->header, '['));
  bool more;
  for (*count = 0;; ++*count) {
    GP_TRY(gp_json_more(&l->header, *count == 0, ']', &more));
    if (!more) return GP_OK;
    if (*count == limit)
      return gp_fail(GP_EFORMAT, "tensor '%.100s' has a list of more than %d numbers", e->name,
                     limit);
    GP_TRY(gp_json_uint(&l->header, &values[*count]));
  }
}

/* Parse a shape. The format's dimensions are unsigned 64-bit numbers; ours are signed. */
static gp_status parse_shape(loader *l, entry *e) {
  uint64_t dims[GP_MAX_RANK];
  GP_TRY(parse_list(l, e, dims, GP_MAX_RANK, &e->shape.rank));
  for (int d = 0; d < e->shape.rank; d++) {
    if (dims[d] > INT64_MAX)
      return gp_fail(GP_EFORMAT, "tensor '%.100s' has a dimension of %" PRIu64, e->name, dims[d]);
    e->shape.dim[d] = (int64_t)dims[d];
  }
  return GP_OK;
}

/* Parse begin and end, from the start of the data; check_size and check_places check them. */
static gp_status parse_offsets(loader *l, entry *e) {
  uint64_t offsets[2];
  int count;
  GP_TRY(parse_list(l, e, offsets, 2, &count));
  if (count != 2)
    return gp_fail(GP_EFORMAT, "tensor '%.100s' has %d data_offsets, expected 2", e->name, count);
  e->begin = offsets[0];
  e->end = offsets[1];
  return GP_OK;
}

/* The three keys of a tensor, found by name because their order is free. */
static const struct field {
  const char *key;
  gp_status (*parse)(loader *, entry *);
} fields[] = {{"dtype", parse_dtype}, {"shape", parse_shape}, {"data_offsets", parse_offsets}};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Parse one key. A repeated key is refused: two readers could see two different tensors. */
static gp_status parse_field(loader *l, entry *e, const char *key, unsigned *seen) {
  for (unsigned i = 0; i < FIELDS; i++) {
    if (strcmp(key, fields[i].key)) continue;
    if (*seen & 1u << i) return gp_fail(GP_EFORMAT, "tensor '%.100s' has %s twice", e->name, key);
    *seen |= 1u << i;
    return fields[i].parse(l, e);
  }
  return gp_fail(GP_EFORMAT, "tensor '%.100s' has an unknown key '%.100s'", e->name, key);
}

/* Parse a tensor, which must have all three keys once. */
static gp_status parse_entry(loader *l, entry *e) {
  unsigned seen = 0;
  bool more;
  GP_TRY(gp_json_expect(&l->header, '{'));
  for (bool first = true;; first = false) {
    GP_TRY(gp_json_more(&l->header, first, '}', &more));
    if (!more) break;
    const char *key;
    GP_TRY(gp_json_key(&l->header, &key));
    GP_TRY(parse_field(l, e, key, &seen));
  }
  for (unsigned i = 0; i < FIELDS; i++)
    if (!(seen & 1u << i))
      return gp_fail(GP_EFORMAT, "tensor '%.100s' has no %s", e->name, fields[i].key);
  return GP_OK;
}

/* ---- the whole header ---------------------------------------------------------------------- */

/* Parse the metadata. Only texts are accepted, so nesting needs no limit. */
static gp_status parse_metadata(loader *l) {
  bool more;
  GP_TRY(gp_json_expect(&l->header, '{'));
  for (bool first = true;; first = false) {
    GP_TRY(gp_json_more(&l->header, first, '}', &more));
    if (!more) return GP_OK;
    const char *key, *value;
    GP_TRY(gp_json_key(&l->header, &key));
    GP_TRY(gp_json_string(&l->header, &value));
    gp_status status = gp_archive_add_text(l->archive, key, value);
    if (status) return status == GP_EINVAL ? gp_fail_prefix(GP_EFORMAT, "header") : status;
  }
}

/* Append an entry. Its name points into the header, which lives as long as the loader. */
static gp_status append_entry(loader *l, const char *name) {
  if (l->count >= GP_ARCHIVE_MAX_TENSORS)
    return gp_fail(GP_EFORMAT, "the header has more than %d tensors", GP_ARCHIVE_MAX_TENSORS);
  if (strlen(name) > GP_ARCHIVE_MAX_NAME)
    return gp_fail(GP_EFORMAT, "a tensor's name has %zu bytes, at most %d are possible",
                   strlen(name), GP_ARCHIVE_MAX_NAME);
  void *array = l->entry;
  GP_TRY(gp_grow_array(l->count, &l->capacity, sizeof *l->entry, &array));
  l->entry = array;
  entry *e = &l->entry[l->count++];
  *e = (entry){.name = name};
  GP_TRY(parse_entry(l, e));
  l->without += e->begin == e->end;
  if (l->without <= GP_ARCHIVE_MAX_EMPTY) return GP_OK;
  return gp_fail(GP_EFORMAT, "the header has more than %d tensors without elements",
                 GP_ARCHIVE_MAX_EMPTY);
}

/* Parse the header; the metadata may come anywhere among the tensors. */
static gp_status parse_header(loader *l) {
  bool more, metadata = false;
  GP_TRY(gp_json_expect(&l->header, '{'));
  for (bool first = true;; first = false) {
    GP_TRY(gp_json_more(&l->header, first, '}', &more));
    if (!more) return gp_json_end(&l->header);
    const char *key;
    GP_TRY(gp_json_key(&l->header, &key));
    bool is_metadata = !strcmp(key, GP_ARCHIVE_METADATA);
    if (is_metadata && metadata)
      return gp_fail(GP_EFORMAT, "the header has " GP_ARCHIVE_METADATA " twice");
    metadata = metadata || is_metadata;
    GP_TRY(is_metadata ? parse_metadata(l) : append_entry(l, key));
  }
}

/* ---- layout -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
  return strcmp((*(entry *const *)a)->name, (*(entry *const *)b)->name);
}

/* Sort by place. An empty tensor has the same offset as the next one: the shorter comes first. */
static int by_place(const void *a, const void *b) {
  const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

/* Check that the shape needs exactly the bytes of the range, without overflow. */
static gp_status check_size(const entry *e) {
  bool overflow = false;
  uint64_t bytes = gp_dtype_size(e->dtype);
  for (int d = 0; d < e->shape.rank; d++)
    overflow = __builtin_mul_overflow(bytes, (uint64_t)e->shape.dim[d], &bytes) || overflow;
  char shape[160];
  gp_shape_print(&e->shape, shape, sizeof shape);
  if (overflow || bytes > INT64_MAX)
    return gp_fail(GP_EFORMAT, "tensor '%.100s' has shape %s, more than can be addressed", e->name,
                   shape);
  if (e->end < e->begin || e->end - e->begin != bytes)
    return gp_fail(GP_EFORMAT,
                   "tensor '%.100s' lies at data bytes %" PRIu64 " to %" PRIu64
                   ", but %s %s is %" PRIu64 " bytes",
                   e->name, e->begin, e->end, gp_dtype_name(e->dtype), shape, bytes);
  return GP_OK;
}

/* Check the places: each tensor begins where the one before ended, and the last ends with the
 * file. */
static gp_status check_places(const loader *l, entry *const *order) {
  uint64_t end = 0;
  for (size_t i = 0; i < l->count; i++) {
    const entry *e = order[i];
    if (e->begin != end)
      return gp_fail(GP_EFORMAT,
                     "tensor '%.100s' begins at data byte %" PRIu64
                     ", the one before ends at %" PRIu64 ": %s",
                     e->name, e->begin, end, e->begin < end ? "they overlap" : "there is a hole");
    end = e->end;
  }
  if (end == l->file.size - l->data) return GP_OK;
  return gp_fail(GP_EFORMAT,
                 "the tensors have %" PRIu64 " bytes, the file has %" PRIu64 " after its header",
                 end, l->file.size - l->data);
}

/* Check for duplicate names: after sorting by name they are neighbours. */
static gp_status check_names(const loader *l, entry *const *order) {
  for (size_t i = 1; i < l->count; i++)
    if (!strcmp(order[i - 1]->name, order[i]->name))
      return gp_fail(GP_EFORMAT, "tensor '%.100s' is given twice", order[i]->name);
  return GP_OK;
}

/* Check the layout. The entries stay in the header's order, which is the archive's, so an array of
 * pointers is sorted instead. */
static gp_status check_layout(const loader *l) {
  void *memory = NULL;
  GP_TRY(gp_alloc_array(l->count + 1, sizeof(entry *), &memory));
  entry **order = memory;
  gp_status status = GP_OK;
  for (size_t i = 0; i < l->count; i++) order[i] = &l->entry[i];
  for (size_t i = 0; i < l->count && !status; i++) status = check_size(order[i]);
  if (!status) {
    qsort(order, l->count, sizeof *order, by_name);
    status = check_names(l, order);
  }
  if (!status) {
    qsort(order, l->count, sizeof *order, by_place);
    status = check_places(l, order);
  }
  gp_free(order);
  return status;
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Check bools: a byte other than 0 or 1 would be undefined behaviour when it is read as a bool. */
static gp_status check_bools(const entry *e, const unsigned char *bytes, size_t count) {
  for (size_t i = 0; e->dtype == GP_BOOL && i < count; i++)
    if (bytes[i] > 1)
      return gp_fail(GP_EFORMAT, "tensor '%.100s' (bool) holds byte %d, expected 0 or 1", e->name,
                     bytes[i]);
  return GP_OK;
}

/* Make a tensor without bytes. They share storage, because a file may hold very many. */
static gp_status make_empty(loader *l, const entry *e, gp_tensor **tensor) {
  gp_tensor **empty = &l->empty[e->dtype];
  gp_meta meta;
  if (!*empty) GP_TRY(gp_tensor_new(e->dtype, &(gp_shape){.rank = 1}, empty));
  GP_TRY(gp_meta_make(e->dtype, &e->shape, &meta));
  return gp_tensor_view(*empty, &meta, tensor);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_wanted(const loader *l, const entry *e) {
  return !l->wanted ||
         bsearch(&e->name, l->wanted, l->wanted_count, sizeof *l->wanted, compare_names);
}

/* Make what stands for a tensor that is not read: one element, seen everywhere. */
static gp_status make_stand_in(const entry *e, gp_tensor **tensor) {
  gp_tensor *one;
  gp_meta meta;
  GP_TRY(gp_meta_make(e->dtype, &e->shape, &meta));
  for (int d = 0; d < e->shape.rank; d++) meta.stride[d] = 0;
  GP_TRY(gp_tensor_new(e->dtype, &(gp_shape){.rank = 0}, &one));
  gp_status status = gp_tensor_view(one, &meta, tensor);
  gp_tensor_free(one);
  return status;
}

/* Read a tensor's bytes straight into its memory, so that the file is never held twice. */
static gp_status load_tensor(loader *l, const entry *e) {
  gp_tensor *tensor;
  size_t bytes = (size_t)(e->end - e->begin);
  if (bytes && !is_wanted(l, e)) {
    GP_TRY(make_stand_in(e, &tensor));
    gp_status added = gp_archive_add(l->archive, e->name, tensor);
    gp_tensor_free(tensor);
    return added;
  }
  GP_TRY(bytes ? gp_tensor_new(e->dtype, &e->shape, &tensor) : make_empty(l, e, &tensor));
  gp_status status = gp_reader_get(&l->file, l->data + e->begin, gp_tensor_data(tensor), bytes);
  if (!status) status = check_bools(e, gp_tensor_data(tensor), bytes);
  if (!status) status = gp_archive_add(l->archive, e->name, tensor);
  gp_tensor_free(tensor);
  return status;
}

static gp_status load(loader *l) {
  GP_TRY(read_header(l));
  GP_TRY(gp_archive_new(&l->archive));
  GP_TRY(parse_header(l));
  GP_TRY(check_layout(l));
  for (size_t i = 0; i < l->count; i++) GP_TRY(load_tensor(l, &l->entry[i]));
  return GP_OK;
}

/* Load an archive. The reader's errors already name the file; to all others the name is added. */
gp_status gp_archive_load_some(const char *path, const char *const *names, size_t count,
                               gp_archive **archive) {
  loader l = {.wanted = names, .wanted_count = count};
  gp_status status = gp_reader_open(&l.file, path);
  if (!status) {
    status = load(&l);
    if (status == GP_ESHAPE || status == GP_EINVAL) status = GP_EFORMAT; /* the file's fault */
    if (status && status != GP_EIO) gp_fail_prefix(status, path); /* the reader names the file */
  }
  gp_reader_close(&l.file);
  for (int i = 0; i < GP_DTYPE_COUNT; i++) gp_tensor_free(l.empty[i]);
  gp_free(l.header.text);
  gp_free(l.entry);
  if (status) {
    gp_archive_free(l.archive);
    return status;
  }
  *archive = l.archive;
  return GP_OK;
}

gp_status gp_archive_load(const char *path, gp_archive **archive) {
  return gp_archive_load_some(path, NULL, 0, archive);
}
