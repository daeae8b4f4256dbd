/* io/bpe/read/json.c - tokenizer.json: added tokens, the parts around the model, the model.
 *
 * Source: the file format 1.0 of Hugging Face's tokenizers. */
#include <string.h>

#include "io/bpe/read/draft.h"

static gp_status unsupported(const char *what) {
  return gp_fail(GP_EUNSUPPORTED, "model: %s is not supported", what);
}

/* ---- added tokens -------------------------------------------------------------------------- */

static gp_status read_id(gp_json *json, void *context) {
  uint64_t id;
  GP_TRY(gp_json_uint(json, &id));
  ((gp_added *)context)->id = id < GP_NO_TOKEN ? (uint32_t)id : GP_NO_TOKEN - 1;
  return GP_OK;
}

static gp_status read_content(gp_json *json, void *context) {
  gp_added *added = context;
  GP_TRY(gp_json_string(json, &added->text));
  added->size = strlen(added->text);
  return GP_OK;
}

#define FLAG(field)                                                                                \
  static gp_status read_##field(gp_json *json, void *context) {                                    \
    return gp_json_bool(json, &((gp_added *)context)->field);                                      \
  }
FLAG(special)
FLAG(single_word)
FLAG(left)
FLAG(right)
FLAG(normalized)
#undef FLAG

static gp_status read_added(gp_json *json, void *context) {
  static const gp_json_field fields[] = {
      {"id", read_id},
      {"content", read_content},
      {"special", read_special},
      {"lstrip", read_left},
      {"rstrip", read_right},
      {"single_word", read_single_word},
      {"normalized", read_normalized},
  };
  gp_added added = {.id = GP_NO_TOKEN};
  size_t at = json->at;
  GP_TRY(gp_json_object(json, fields, sizeof fields / sizeof *fields, &added));
  if (!added.text || !added.size || added.id == GP_NO_TOKEN)
    return gp_fail(GP_EFORMAT, "JSON byte %zu: an added token without id or content", at);
  return gp_draft_add_added(context, &added);
}

static gp_status read_addeds(gp_json *json, void *context) {
  return gp_json_array(json, read_added, context);
}

/* ---- the model ----------------------------------------------------------------------------- */

static gp_status read_type(gp_json *json, void *context) {
  const char *type;
  (void)context;
  GP_TRY(gp_json_string(json, &type));
  return strcmp(type, "BPE") == 0
             ? GP_OK
             : gp_fail(GP_EUNSUPPORTED, "model: '%.40s' is not supported, expected BPE", type);
}

/* Read {"token": id, ...}, also for vocab.json. */
static gp_status read_vocabulary(gp_json *json, void *context) {
  GP_TRY(gp_json_expect(json, '{'));
  for (bool first = true, more;; first = false) {
    const char *token;
    uint64_t id;
    GP_TRY(gp_json_more(json, first, '}', &more));
    if (!more) return GP_OK;
    GP_TRY(gp_json_key(json, &token));
    GP_TRY(gp_json_uint(json, &id));
    GP_TRY(gp_draft_add_token(context, token, id < GP_NO_TOKEN ? (uint32_t)id : GP_NO_TOKEN - 1));
  }
}

/* Read "left right", the form in old files. */
static gp_status read_joined(gp_json *json, void *context) {
  const char *left;
  size_t at = json->at;
  GP_TRY(gp_json_string(json, &left));
  size_t length = strcspn(left, " ");
  if (!left[length])
    return gp_fail(GP_EFORMAT, "JSON byte %zu: merge '%.40s', expected two tokens", at, left);
  ((gp_draft *)context)->text[gp_draft_offset(context, left) + length] = '\0';
  return gp_draft_add_merge(context, left, left + length + 1);
}

static gp_status read_merge(gp_json *json, void *context) {
  const char *left, *right;
  bool more;
  if (gp_json_peek(json) == '"') return read_joined(json, context);
  GP_TRY(gp_json_expect(json, '['));
  GP_TRY(gp_json_string(json, &left));
  GP_TRY(gp_json_more(json, false, ']', &more));
  GP_TRY(gp_json_string(json, &right));
  GP_TRY(gp_json_expect(json, ']'));
  return gp_draft_add_merge(context, left, right);
}

static gp_status read_merges(gp_json *json, void *context) {
  return gp_json_array(json, read_merge, context);
}

static gp_status read_dropout(gp_json *json, void *context) {
  const char *text;
  size_t length;
  bool whole;
  (void)context;
  if (gp_json_word(json, "null")) return GP_OK;
  GP_TRY(gp_json_number(json, &text, &length, &whole));
  return strspn(text, "0.") >= length ? GP_OK : unsupported("dropout");
}

static gp_status no_text(gp_json *json, const char *what) {
  const char *text;
  if (gp_json_word(json, "null")) return GP_OK;
  GP_TRY(gp_json_string(json, &text));
  return *text ? unsupported(what) : GP_OK;
}

static gp_status read_prefix(gp_json *json, void *context) {
  (void)context;
  return no_text(json, "continuing_subword_prefix");
}

static gp_status read_suffix(gp_json *json, void *context) {
  (void)context;
  return no_text(json, "end_of_word_suffix");
}

static gp_status read_ignore_merges(gp_json *json, void *context) {
  return gp_json_bool(json, &((gp_draft *)context)->tokenizer->ignore_merges);
}

/* Read the model. unk_token, fuse_unk and byte_fallback concern text that the vocabulary lacks;
 * here a byte that it lacks is an error, so they are ignored. */
static gp_status read_model(gp_json *json, void *context) {
  static const gp_json_field fields[] = {
      {"type", read_type},
      {"vocab", read_vocabulary},
      {"merges", read_merges},
      {"dropout", read_dropout},
      {"continuing_subword_prefix", read_prefix},
      {"end_of_word_suffix", read_suffix},
      {"ignore_merges", read_ignore_merges},
  };
  return gp_json_object(json, fields, sizeof fields / sizeof *fields, context);
}

/* ---- the file ------------------------------------------------------------------------------ */

static gp_status read_version(gp_json *json, void *context) {
  const char *version;
  (void)context;
  GP_TRY(gp_json_string(json, &version));
  return strcmp(version, "1.0") == 0
             ? GP_OK
             : gp_fail(GP_EUNSUPPORTED, "version: '%.20s', expected 1.0", version);
}

/* Accept only null: a setting would truncate or pad ids in every call. It was meant for training,
 * and some files have kept it. */
static gp_status read_none(gp_json *json, const char *what) {
  if (gp_json_word(json, "null")) return GP_OK;
  return gp_fail(GP_EUNSUPPORTED, "%s: it is set, expected null (remove it from the file)", what);
}

static gp_status read_truncation(gp_json *json, void *context) {
  (void)context;
  return read_none(json, "truncation");
}

static gp_status read_padding(gp_json *json, void *context) {
  (void)context;
  return read_none(json, "padding");
}

gp_status gp_draft_read_tokenizer(gp_draft *draft, const char *path) {
  static const gp_json_field fields[] = {
      {"version", read_version},
      {"truncation", read_truncation},
      {"padding", read_padding},
      {"added_tokens", read_addeds},
      {"normalizer", gp_draft_read_normalizer},
      {"pre_tokenizer", gp_draft_read_pre_tokenizer},
      {"post_processor", gp_draft_read_post_processor},
      {"decoder", gp_draft_read_decoder},
      {"model", read_model},
  };
  size_t at;
  GP_TRY(gp_draft_read(draft, path, &at));
  gp_json json = {.text = draft->text + at, .size = draft->size - 1 - at};
  gp_status status = gp_json_object(&json, fields, sizeof fields / sizeof *fields, draft);
  if (!status) status = gp_json_end(&json);
  if (!status) status = gp_draft_finish(draft);
  return status ? gp_fail_prefix(status, path) : GP_OK;
}

/* ---- vocab.json ---------------------------------------------------------------------------- */

gp_status gp_draft_read_vocabulary(gp_draft *draft, const char *path) {
  size_t at;
  GP_TRY(gp_draft_read(draft, path, &at));
  gp_json json = {.text = draft->text + at, .size = draft->size - 1 - at};
  gp_status status = read_vocabulary(&json, draft);
  if (!status) status = gp_json_end(&json);
  return status ? gp_fail_prefix(status, path) : GP_OK;
}
