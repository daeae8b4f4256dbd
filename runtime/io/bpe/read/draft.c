/* io/bpe/read/draft.c - grows a draft.
 *
 * Numbers from the file (ids above all) are compared with its number of tokens before anything is
 * allocated by them. */
#include "io/bpe/read/draft.h"

#include <string.h>

#include "base/memory.h"
#include "io/file/reader.h"
#include "io/grow.h"
#include "io/safetensors/foreign.h"
#include "io/text/utf8.h"

/* ---- the text ------------------------------------------------------------------------------ */

static gp_status refuse_foreign(const char *path, const char *text, size_t size) {
  const char *name = size && text[0] == '{' ? NULL : gp_foreign_name(text, size);
  if (name)
    return gp_fail(GP_EFORMAT, "%s: byte 0: it is %s, expected a tokenizer's text", path, name);
  size_t good = gp_utf8_prefix(text, size);
  if (good < size) return gp_fail(GP_EFORMAT, "%s: byte %zu: no UTF-8, expected text", path, good);
  const char *zero = memchr(text, '\0', size);
  if (zero)
    return gp_fail(GP_EFORMAT, "%s: byte %zu is 0, expected text", path, (size_t)(zero - text));
  return GP_OK;
}

static gp_status read_into(gp_draft *draft, const gp_reader *file) {
  size_t start = draft->size ? draft->size : 1;
  if (file->size >= UINT32_MAX - start)
    return gp_fail(GP_EFORMAT, "%s: it has %llu bytes, expected fewer than 4 GiB", file->path,
                   (unsigned long long)file->size);
  size_t room = start + (size_t)file->size + 1;
  void *text = draft->text;
  GP_TRY(gp_resize_array(draft->room, room, 1, &text));
  draft->text = text;
  draft->room = draft->size = room;
  GP_TRY(gp_reader_get(file, 0, draft->text + start, (size_t)file->size));
  return refuse_foreign(file->path, draft->text + start, (size_t)file->size);
}

gp_status gp_draft_read(gp_draft *draft, const char *path, size_t *at) {
  gp_reader file;
  *at = draft->size ? draft->size : 1;
  gp_status status = gp_reader_open(&file, path);
  if (!status) status = read_into(draft, &file);
  gp_reader_close(&file);
  return status;
}

uint32_t gp_draft_offset(const gp_draft *draft, const char *string) {
  return (uint32_t)(string - draft->text);
}

/* ---- growing ------------------------------------------------------------------------------- */

gp_status gp_draft_add_token(gp_draft *draft, const char *string, uint32_t id) {
  GP_GROW(draft->token, draft->tokens, draft->token_room);
  draft->token[draft->tokens++] = (gp_draft_token){gp_draft_offset(draft, string), id};
  return GP_OK;
}

gp_status gp_draft_add_merge(gp_draft *draft, const char *left, const char *right) {
  GP_GROW(draft->merge, draft->merges, draft->merge_room);
  draft->merge[draft->merges++] =
      (gp_merge){gp_draft_offset(draft, left), gp_draft_offset(draft, right)};
  return GP_OK;
}

gp_status gp_draft_add_added(gp_draft *draft, const gp_added *added) {
  GP_GROW(draft->added, draft->addeds, draft->added_room);
  draft->added[draft->addeds++] = *added;
  return GP_OK;
}

gp_status gp_draft_add_bound(gp_draft *draft, const gp_draft_bound *bound) {
  if (draft->bounds == GP_BOUNDS_MOST)
    return gp_fail(GP_EUNSUPPORTED, "post_processor: more than %d tokens", GP_BOUNDS_MOST);
  draft->bound[draft->bounds++] = *bound;
  return GP_OK;
}

gp_status gp_draft_add_split(gp_draft *draft, const char *pattern, bool literal, gp_split_kind kind,
                             bool invert) {
  gp_tokenizer *t = draft->tokenizer;
  if (draft->bytes)
    return gp_fail(GP_EUNSUPPORTED, "pre_tokenizer: a rule after ByteLevel, expected none");
  if (t->splits == GP_SPLITS_MOST)
    return gp_fail(GP_EUNSUPPORTED, "pre_tokenizer: more than %d rules", GP_SPLITS_MOST);
  gp_split *split = &t->split[t->splits];
  GP_TRY(gp_split_open(split, pattern, literal));
  split->kind = kind;
  split->invert = invert;
  t->splits++;
  return GP_OK;
}

gp_status gp_draft_add_bytes(gp_draft *draft, bool add_prefix_space, bool use_regex) {
  static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
                             "|\\s+(?!\\S)|\\s+";
  if (draft->bytes)
    return gp_fail(GP_EUNSUPPORTED, "pre_tokenizer: ByteLevel twice, expected it once");
  draft->tokenizer->prefix_at = draft->tokenizer->splits;
  draft->tokenizer->add_prefix_space = add_prefix_space;
  if (use_regex) GP_TRY(gp_draft_add_split(draft, gpt2, false, GP_SPLIT_ISOLATED, false));
  draft->bytes = true;
  return GP_OK;
}

void gp_draft_clear(gp_draft *draft) {
  gp_free(draft->text);
  gp_free(draft->token);
  gp_free(draft->merge);
  gp_free(draft->added);
  *draft = (gp_draft){0};
}
