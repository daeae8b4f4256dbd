/* io/bpe/read/template.c - the post_processor of tokenizer.json: which tokens come before and after
 * every text.
 *
 * Only the form for one text is read, not that for a pair. The names in a template are looked up in
 * its own table of special tokens, which may come after it. */
#include <string.h>

#include "base/memory.h"
#include "io/bpe/read/draft.h"

enum { SPECIALS_MOST = GP_BOUNDS_MOST };

typedef struct template {
  gp_draft *draft;
  int depth;
  const char *type;
  uint32_t special_at[SPECIALS_MOST]; /* the names in the table */
  size_t special_first[SPECIALS_MOST + 1];
  size_t specials;
  uint32_t id[SPECIALS_MOST];
  size_t ids;
  gp_draft_bound piece[GP_BOUNDS_MOST]; /* the template for one text */
  size_t pieces;
  gp_draft_bound sep, cls;
}
template;

static gp_status too_many(void) {
  return gp_fail(GP_EUNSUPPORTED, "post_processor: more than %d tokens", GP_BOUNDS_MOST);
}

/* ---- TemplateProcessing -------------------------------------------------------------------- */

static gp_status read_name(gp_json *json, void *context) {
  template *f = context;
  const char *name;
  GP_TRY(gp_json_string(json, &name));
  f->piece[f->pieces].at = gp_draft_offset(f->draft, name);
  return GP_OK;
}

static gp_status read_special_piece(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"id", read_name}};
  template *f = context;
  if (f->pieces == GP_BOUNDS_MOST) return too_many();
  f->piece[f->pieces] = (gp_draft_bound){0};
  GP_TRY(gp_json_object(json, fields, 1, f));
  if (!f->piece[f->pieces].at)
    return gp_fail(GP_EFORMAT, "post_processor: a SpecialToken without an id");
  f->pieces++;
  return GP_OK;
}

/* The text itself: a template for one text has only "A". */
static gp_status read_text_piece(gp_json *json, void *context) {
  template *f = context;
  if (f->pieces == GP_BOUNDS_MOST) return too_many();
  f->piece[f->pieces++] = (gp_draft_bound){0};
  return gp_json_skip(json);
}

static gp_status read_piece(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"SpecialToken", read_special_piece},
                                         {"Sequence", read_text_piece}};
  return gp_json_object(json, fields, 2, context);
}

static gp_status read_single(gp_json *json, void *context) {
  return gp_json_array(json, read_piece, context);
}

static gp_status read_id(gp_json *json, void *context) {
  template *f = context;
  uint64_t id;
  if (f->ids == SPECIALS_MOST) return too_many();
  GP_TRY(gp_json_uint(json, &id));
  f->id[f->ids++] = id < GP_NO_TOKEN ? (uint32_t)id : GP_NO_TOKEN;
  return GP_OK;
}

static gp_status read_ids(gp_json *json, void *context) {
  return gp_json_array(json, read_id, context);
}

/* {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, ...} */
static gp_status read_specials(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"ids", read_ids}};
  template *f = context;
  GP_TRY(gp_json_expect(json, '{'));
  for (bool first = true, more;; first = false) {
    const char *name;
    GP_TRY(gp_json_more(json, first, '}', &more));
    if (!more) return GP_OK;
    if (f->specials == SPECIALS_MOST) return too_many();
    GP_TRY(gp_json_key(json, &name));
    f->special_at[f->specials] = gp_draft_offset(f->draft, name);
    f->special_first[f->specials] = f->ids;
    GP_TRY(gp_json_object(json, fields, 1, f));
    f->special_first[++f->specials] = f->ids;
  }
}

static gp_status add_piece(const template *f, const gp_draft_bound *piece) {
  if (!piece->at) return gp_draft_add_bound(f->draft, piece);
  const char *name = f->draft->text + piece->at;
  for (size_t i = 0; i < f->specials; i++) {
    if (strcmp(f->draft->text + f->special_at[i], name) != 0) continue;
    for (size_t k = f->special_first[i]; k < f->special_first[i + 1]; k++) {
      gp_draft_bound bound = {.at = piece->at, .id = f->id[k], .known = true};
      GP_TRY(gp_draft_add_bound(f->draft, &bound));
    }
    return GP_OK;
  }
  return gp_fail(GP_EFORMAT, "post_processor: '%.40s' is not among its special_tokens", name);
}

/* ---- RobertaProcessing and BertProcessing -------------------------------------------------- */

/* ["</s>", 2] */
static gp_status read_pair(gp_json *json, gp_draft *draft, gp_draft_bound *bound) {
  const char *name;
  uint64_t id;
  bool more;
  GP_TRY(gp_json_expect(json, '['));
  GP_TRY(gp_json_string(json, &name));
  GP_TRY(gp_json_more(json, false, ']', &more));
  GP_TRY(gp_json_uint(json, &id));
  *bound = (gp_draft_bound){gp_draft_offset(draft, name),
                            id < GP_NO_TOKEN ? (uint32_t)id : GP_NO_TOKEN, true};
  return gp_json_expect(json, ']');
}

static gp_status read_sep(gp_json *json, void *context) {
  template *f = context;
  return read_pair(json, f->draft, &f->sep);
}

static gp_status read_cls(gp_json *json, void *context) {
  template *f = context;
  return read_pair(json, f->draft, &f->cls);
}

/* ---- types --------------------------------------------------------------------------------- */

static gp_status finish(const template *f) {
  const char *type = f->type ? f->type : "an object without a type";
  if (!strcmp(type, "ByteLevel") || !strcmp(type, "Sequence")) return GP_OK; /* offsets only */
  bool around = !strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing");
  if (around && f->sep.known && f->cls.known) {
    GP_TRY(gp_draft_add_bound(f->draft, &f->cls));
    GP_TRY(gp_draft_add_bound(f->draft, &(gp_draft_bound){0}));
    return gp_draft_add_bound(f->draft, &f->sep);
  }
  if (strcmp(type, "TemplateProcessing") != 0)
    return gp_fail(GP_EUNSUPPORTED, "post_processor: '%.60s' is not supported", type);
  for (size_t i = 0; i < f->pieces; i++) GP_TRY(add_piece(f, &f->piece[i]));
  return GP_OK;
}

static gp_status read_template(gp_json *json, void *context);

static gp_status read_type(gp_json *json, void *context) {
  return gp_json_string(json, &((template *)context)->type);
}

static gp_status read_processors(gp_json *json, void *context) {
  return gp_json_array(json, read_template, context);
}

static gp_status read_template(gp_json *json, void *context) {
  static const gp_json_field fields[] = {
      {"type", read_type},     {"processors", read_processors},
      {"single", read_single}, {"special_tokens", read_specials},
      {"sep", read_sep},       {"cls", read_cls},
  };
  const template *outer = context;
  template inner = {.draft = outer->draft, .depth = outer->depth + 1};
  if (inner.depth > GP_SPLITS_MOST)
    return gp_fail(GP_EUNSUPPORTED, "post_processor: sequences lie deeper than %d levels",
                   GP_SPLITS_MOST);
  GP_TRY(gp_json_object(json, fields, sizeof fields / sizeof *fields, &inner));
  return finish(&inner);
}

gp_status gp_draft_read_post_processor(gp_json *json, void *draft) {
  template top = {.draft = draft};
  return gp_json_word(json, "null") ? GP_OK : read_template(json, &top);
}
