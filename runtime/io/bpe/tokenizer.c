/* io/bpe/tokenizer.c - loads a tokenizer, encodes into tensors, decodes, looks tokens up. */
#include "io/bpe/tokenizer.h"

#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "io/bpe/read/draft.h"
#include "io/text/text.h"

/* ---- loading ------------------------------------------------------------------------------- */

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_there(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

/* Prefer a folder's tokenizer.json: it holds more than vocab.json and merges.txt. */
static gp_status read(gp_draft *draft, const char *path, const gp_tokenizer_options *options) {
  if (!is_folder(path)) return gp_draft_read_tokenizer(draft, path);
  gp_text file = {0};
  gp_status status = gp_text_string(&file, path);
  if (!status) status = gp_text_bytes(&file, "/tokenizer.json", sizeof "/tokenizer.json");
  if (!status)
    status = is_there(file.data) ? gp_draft_read_tokenizer(draft, file.data)
                                 : gp_draft_read_folder(draft, path, options);
  gp_text_clear(&file);
  return status;
}

gp_status gp_tokenizer_load(const char *path, const gp_tokenizer_options *options,
                            gp_tokenizer **tokenizer) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **tokenizer, &memory));
  gp_draft draft = {.tokenizer = memory};
  draft.tokenizer->references = 1;
  pthread_mutex_init(&draft.tokenizer->lock, NULL);
  gp_status status = read(&draft, path, options);
  gp_tokenizer *made = draft.tokenizer;
  gp_draft_clear(&draft);
  if (status) {
    gp_tokenizer_free(made);
    return status;
  }
  *tokenizer = made;
  return GP_OK;
}

gp_tokenizer *gp_tokenizer_retain(gp_tokenizer *t) {
  atomic_fetch_add(&t->references, 1);
  return t;
}

void gp_tokenizer_free(gp_tokenizer *t) {
  if (!t || atomic_fetch_sub(&t->references, 1) != 1) return;
  gp_encoder_free_all(t);
  pthread_mutex_destroy(&t->lock);
  gp_vocabulary_close(&t->vocabulary);
  gp_merges_close(&t->merges);
  for (size_t i = 0; i < t->splits; i++) gp_split_close(&t->split[i]);
  gp_added_list_close(&t->first);
  gp_added_list_close(&t->second);
  gp_free(t->added);
  gp_free(t->added_text);
  gp_free(t->before);
  gp_free(t);
}

/* ---- encoding ------------------------------------------------------------------------------ */

typedef struct ids {
  uint32_t *id;
  size_t count, room;
} ids;

static gp_status append(void *context, const uint32_t *id, size_t count) {
  ids *all = context;
  if (count > all->room - all->count) {
    size_t room = all->room + all->room / 2 + count + 64;
    void *array = all->id;
    GP_TRY(gp_resize_array(all->room, room, sizeof *all->id, &array));
    all->id = array;
    all->room = room;
  }
  memcpy(all->id + all->count, id, count * sizeof *id);
  all->count += count;
  return GP_OK;
}

static gp_status to_tensor(const ids *all, gp_tensor **tensor) {
  gp_shape shape = {.rank = 1, .dim = {(int64_t)all->count}};
  GP_TRY(gp_tensor_new(GP_I64, &shape, tensor));
  int64_t *to = gp_tensor_data(*tensor);
  for (size_t i = 0; i < all->count; i++) to[i] = all->id[i];
  return GP_OK;
}

gp_status gp_tokenizer_encode(gp_tokenizer *t, const char *text, size_t size,
                              const gp_encode_options *options, gp_tensor **tensor) {
  ids all = {0};
  gp_status status = gp_tokenizer_run(t, text, size, options, append, &all);
  if (!status) status = to_tensor(&all, tensor);
  gp_free(all.id);
  return status;
}

/* ---- tokens -------------------------------------------------------------------------------- */

size_t gp_tokenizer_count(const gp_tokenizer *t) { return t->vocabulary.count; }

bool gp_tokenizer_token(const gp_tokenizer *t, int64_t id, const char **bytes, size_t *size) {
  if (id < 0 || (uint64_t)id >= t->vocabulary.count) return false;
  const gp_token *token = &t->vocabulary.token[id];
  if (token->kind == GP_TOKEN_NONE) return false;
  *bytes = t->vocabulary.bytes + token->at;
  *size = token->size;
  return true;
}

bool gp_tokenizer_find(const gp_tokenizer *t, const char *bytes, size_t size, int64_t *id) {
  uint32_t found = gp_vocabulary_find(&t->vocabulary, GP_TOKEN_BYTES, bytes, size);
  if (found == GP_NO_TOKEN)
    found = gp_vocabulary_find(&t->vocabulary, GP_TOKEN_STRING, bytes, size);
  *id = found;
  return found != GP_NO_TOKEN;
}

bool gp_tokenizer_added(const gp_tokenizer *t, size_t i, const char **text, int64_t *id,
                        bool *special) {
  if (i >= t->addeds) return false;
  *text = t->added[i].text;
  *id = t->added[i].id;
  *special = t->added[i].special;
  return true;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static bool is_special(const gp_tokenizer *t, int64_t id) {
  for (size_t i = 0; i < t->addeds; i++)
    if (t->added[i].id == id && t->added[i].special) return true;
  return false;
}

static gp_status decode(const gp_tokenizer *t, const gp_tensor *tensor, bool skip_specials,
                        gp_text *text) {
  const int64_t *id = gp_tensor_data(tensor);
  int64_t count = gp_tensor_numel(tensor);
  for (int64_t i = 0; i < count; i++) {
    const char *bytes;
    size_t size;
    if (!gp_tokenizer_token(t, id[i], &bytes, &size))
      return gp_fail(GP_ERANGE, "decode: id %lld stands for nothing, expected 0 to %zu",
                     (long long)id[i], t->vocabulary.count - 1);
    if (skip_specials && is_special(t, id[i])) continue;
    GP_TRY(gp_text_bytes(text, bytes, size));
  }
  return GP_OK;
}

gp_status gp_tokenizer_decode(const gp_tokenizer *t, const gp_tensor *tensor, bool skip_specials,
                              char **text, size_t *size) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  if (meta->dtype != GP_I64 || meta->shape.rank != 1)
    return gp_fail(GP_EDTYPE, "decode: the ids are no i64 tensor of one dimension");
  gp_text all = {0};
  gp_status status = decode(t, tensor, skip_specials, &all);
  if (status) {
    gp_text_clear(&all);
    return status;
  }
  *text = all.data;
  *size = all.size;
  return GP_OK;
}

void gp_tokenizer_text_free(char *text) { gp_free(text); }
