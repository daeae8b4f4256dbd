/* io/bpe/read/finish.c - makes a draft's tables: tokens, merges, added tokens, the ids around a
 * text. */
#include <string.h>

#include "base/memory.h"
#include "io/bpe/read/draft.h"

/* ---- tokens -------------------------------------------------------------------------------- */

/* Ids may have gaps, but few enough that a damaged id cannot ask for gigabytes. */
static gp_status check_ids(const gp_draft *d, size_t *count) {
  uint32_t highest = 0;
  const char *text = "";
  for (size_t i = 0; i < d->tokens; i++)
    if (d->token[i].id >= highest) {
      highest = d->token[i].id;
      text = d->text + d->token[i].at;
    }
  for (size_t i = 0; i < d->addeds; i++)
    if (d->added[i].id >= highest) {
      highest = d->added[i].id;
      text = d->added[i].text;
    }
  size_t tokens = d->tokens + d->addeds, limit = 4 * tokens + 1024;
  if (!d->tokens) return gp_fail(GP_EFORMAT, "the vocabulary is empty");
  if (highest >= limit)
    return gp_fail(GP_EFORMAT, "'%.40s' has the id %u, expected less than %zu with %zu tokens",
                   text, highest, limit, tokens);
  *count = (size_t)highest + 1;
  return GP_OK;
}

/* The bytes of all strings, and twice the longest: a string that is looked up is decoded there. */
static size_t room_for(const gp_draft *d) {
  size_t sum = 0, longest = 0;
  for (size_t i = 0; i < d->tokens; i++) {
    size_t size = strlen(d->text + d->token[i].at);
    sum += size;
    if (size > longest) longest = size;
  }
  for (size_t i = 0; i < d->addeds; i++) {
    sum += d->added[i].size;
    if (d->added[i].size > longest) longest = d->added[i].size;
  }
  return sum + 2 * longest + 2;
}

static gp_status make_tokens(gp_draft *d, gp_vocabulary *v) {
  size_t count = 0;
  GP_TRY(check_ids(d, &count));
  GP_TRY(gp_vocabulary_open(v, count, d->tokens + d->addeds, room_for(d)));
  for (size_t i = 0; i < d->tokens; i++)
    GP_TRY(gp_vocabulary_add(v, d->token[i].id, d->text + d->token[i].at, false));
  gp_free(d->token);
  d->token = NULL;
  return GP_OK;
}

/* An added token is in the vocabulary, with the same id, or it is a new token. */
static gp_status add_to_tokens(const gp_draft *d, gp_vocabulary *v) {
  for (size_t i = 0; i < d->addeds; i++) {
    const gp_added *added = &d->added[i];
    uint32_t id = gp_vocabulary_string(v, added->text);
    if (id == added->id) continue;
    if (id != GP_NO_TOKEN)
      return gp_fail(GP_EFORMAT, "added token '%.40s' has the id %u, and %u in the vocabulary",
                     added->text, added->id, id);
    GP_TRY(gp_vocabulary_add(v, added->id, added->text, true));
  }
  return GP_OK;
}

/* ---- merges -------------------------------------------------------------------------------- */

/* Replace a merge's offsets by ids; `joined` has room for both strings. */
static gp_status merge_ids(const gp_draft *d, const gp_vocabulary *v, size_t i, char *joined,
                           gp_merges *m) {
  const char *left = d->text + m->merge[i].left, *right = d->text + m->merge[i].right;
  size_t size = strlen(left);
  gp_merge ids = {gp_vocabulary_string(v, left), gp_vocabulary_string(v, right)};
  const char *missing = ids.left == GP_NO_TOKEN ? left : right;
  if (ids.left != GP_NO_TOKEN && ids.right != GP_NO_TOKEN && *left && *right) {
    memcpy(joined, left, size);
    memcpy(joined + size, right, strlen(right) + 1);
    m->into[i] = gp_vocabulary_string(v, joined);
    m->merge[i] = ids;
    if (m->into[i] != GP_NO_TOKEN) return GP_OK;
    missing = joined;
  }
  return gp_fail(GP_EFORMAT,
                 "merge %zu ('%.40s' and '%.40s'): '%.40s' is no token of the vocabulary", i + 1,
                 left, right, missing);
}

/* Keep the pairs where they were read: the list is a third of the file. */
static gp_status make_merges(gp_draft *d, const gp_vocabulary *v, gp_merges *m) {
  void *joined = NULL, *into = NULL;
  m->merge = d->merge;
  m->count = d->merges;
  d->merge = NULL;
  GP_TRY(gp_alloc_array(m->count, sizeof *m->into, &into));
  m->into = into;
  size_t longest = v->room - v->used; /* at least twice the longest token */
  GP_TRY(gp_alloc(longest + 2, &joined));
  gp_status status = GP_OK;
  for (size_t i = 0; i < m->count && !status; i++) status = merge_ids(d, v, i, joined, m);
  gp_free(joined);
  return status ? status : gp_merges_index(m);
}

/* ---- added tokens, bounds ------------------------------------------------------------------ */

/* Copy the texts of added tokens, because the draft's text is freed. */
static gp_status keep_added(const gp_draft *d, gp_tokenizer *t) {
  size_t bytes = 0;
  for (size_t i = 0; i < d->addeds; i++) bytes += d->added[i].size + 1;
  void *memory = NULL;
  GP_TRY(gp_alloc(bytes + 1, &memory));
  t->added_text = memory;
  memory = NULL;
  GP_TRY(gp_alloc_array(d->addeds, sizeof *t->added, &memory));
  t->added = memory;
  t->addeds = d->addeds;
  char *to = t->added_text;
  for (size_t i = 0; i < d->addeds; i++) {
    t->added[i] = d->added[i];
    t->added[i].text = to;
    memcpy(to, d->added[i].text, d->added[i].size + 1);
    to += d->added[i].size + 1;
  }
  GP_TRY(gp_added_list_open(&t->first, t->added, t->addeds, false));
  return gp_added_list_open(&t->second, t->added, t->addeds, true);
}

static gp_status bound_id(const gp_draft *d, const gp_tokenizer *t, const gp_draft_bound *bound,
                          uint32_t *id) {
  const char *text = d->text + bound->at;
  *id = bound->id;
  if (bound->known && bound->id < t->vocabulary.count &&
      t->vocabulary.token[bound->id].kind != GP_TOKEN_NONE)
    return GP_OK;
  return gp_fail(GP_EFORMAT, "post_processor: '%.40s' has the id %lld, which is no token's", text,
                 bound->known ? (long long)bound->id : -1);
}

/* Collect the ids before the text itself, and those after it. */
static gp_status make_bounds(const gp_draft *d, gp_tokenizer *t) {
  void *memory = NULL;
  GP_TRY(gp_alloc_array(2 * d->bounds + 1, sizeof *t->before, &memory));
  t->before = memory;
  t->after = t->before + d->bounds;
  bool seen = false;
  for (size_t i = 0; i < d->bounds; i++) {
    if (!d->bound[i].at) {
      if (seen) return gp_fail(GP_EUNSUPPORTED, "post_processor: the text stands there twice");
      seen = true;
      continue;
    }
    uint32_t id;
    GP_TRY(bound_id(d, t, &d->bound[i], &id));
    if (seen)
      t->after[t->afters++] = id;
    else
      t->before[t->befores++] = id;
  }
  return GP_OK;
}

gp_status gp_draft_finish(gp_draft *d) {
  gp_tokenizer *t = d->tokenizer;
  if (!d->bytes)
    return gp_fail(GP_EUNSUPPORTED,
                   "pre_tokenizer: there is no ByteLevel, expected a byte-level vocabulary");
  GP_TRY(make_tokens(d, &t->vocabulary));
  GP_TRY(make_merges(d, &t->vocabulary, &t->merges));
  GP_TRY(add_to_tokens(d, &t->vocabulary));
  for (int i = 0; i < 256; i++) {
    char byte = (char)i;
    t->byte[i] = gp_vocabulary_find(&t->vocabulary, GP_TOKEN_BYTES, &byte, 1);
  }
  GP_TRY(keep_added(d, t));
  return make_bounds(d, t);
}
