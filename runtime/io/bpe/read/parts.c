/* io/bpe/read/parts.c - reads how tokenizer.json normalizes, splits, frames and decodes.
 *
 * Each part is an object with a type, null, or a sequence of such objects. The fields of all types
 * are collected first, because the type may come last; then the type decides. A part that we do not
 * implement is an error that names it: to ignore it would silently give other tokens. */
#include <string.h>

#include "io/bpe/read/draft.h"

typedef struct part {
  gp_draft *draft;
  const char *which; /* "pre_tokenizer" */
  const char *type;  /* NULL until it has been read */
  const char *pattern, *behavior;
  bool literal, invert, add_prefix_space, use_regex, individual_digits;
  size_t parts; /* parts of a sequence around this one */
  gp_status (*finish)(struct part *part);
} part;

static gp_status unsupported(const part *p) {
  return gp_fail(GP_EUNSUPPORTED, "%s: '%.60s' is not supported", p->which,
                 p->type ? p->type : "an object without a type");
}

/* ---- fields -------------------------------------------------------------------------------- */

static gp_status read_part(gp_json *json, void *context);

static gp_status read_type(gp_json *json, void *context) {
  return gp_json_string(json, &((part *)context)->type);
}

static gp_status read_behavior(gp_json *json, void *context) {
  return gp_json_string(json, &((part *)context)->behavior);
}

static gp_status read_invert(gp_json *json, void *context) {
  return gp_json_bool(json, &((part *)context)->invert);
}

static gp_status read_add_prefix_space(gp_json *json, void *context) {
  return gp_json_bool(json, &((part *)context)->add_prefix_space);
}

static gp_status read_use_regex(gp_json *json, void *context) {
  return gp_json_bool(json, &((part *)context)->use_regex);
}

static gp_status read_individual_digits(gp_json *json, void *context) {
  return gp_json_bool(json, &((part *)context)->individual_digits);
}

static gp_status read_regex(gp_json *json, void *context) {
  return gp_json_string(json, &((part *)context)->pattern);
}

static gp_status read_literal(gp_json *json, void *context) {
  ((part *)context)->literal = true;
  return gp_json_string(json, &((part *)context)->pattern);
}

static gp_status read_pattern(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"Regex", read_regex}, {"String", read_literal}};
  return gp_json_object(json, fields, 2, context);
}

/* Read a sequence of parts of one kind. The rules of a nested sequence take its place.
 * GP_JSON_DEPTH does not limit the nesting, so the number of enclosing parts does. */
static gp_status read_sequence(gp_json *json, void *context) {
  return gp_json_array(json, read_part, context);
}

/* ---- types --------------------------------------------------------------------------------- */

static bool is(const part *p, const char *type) { return p->type && !strcmp(p->type, type); }

static gp_status behavior_of(const part *p, gp_split_kind *kind) {
#define NAME(name, text) text,
  static const char *const names[] = {GP_SPLITS(NAME)};
#undef NAME
  for (int i = 0; p->behavior && i < GP_SPLIT_COUNT; i++)
    if (!strcmp(names[i], p->behavior)) {
      *kind = (gp_split_kind)i;
      return GP_OK;
    }
  return gp_fail(GP_EFORMAT, "%s: behavior '%.40s' of Split, expected one such as Isolated",
                 p->which, p->behavior ? p->behavior : "");
}

static gp_status finish_pre_tokenizer(part *p) {
  if (is(p, "Sequence")) return GP_OK;
  if (is(p, "ByteLevel")) return gp_draft_add_bytes(p->draft, p->add_prefix_space, p->use_regex);
  if (is(p, "Digits"))
    return gp_draft_add_split(p->draft, "\\p{N}", false,
                              p->individual_digits ? GP_SPLIT_ISOLATED : GP_SPLIT_CONTIGUOUS,
                              false);
  if (!is(p, "Split")) return unsupported(p);
  gp_split_kind kind = GP_SPLIT_ISOLATED;
  GP_TRY(behavior_of(p, &kind));
  if (!p->pattern) return gp_fail(GP_EFORMAT, "%s: Split has no pattern", p->which);
  gp_status status = gp_draft_add_split(p->draft, p->pattern, p->literal, kind, p->invert);
  return status ? gp_fail_prefix(status, p->which) : GP_OK;
}

static gp_status finish_normalizer(part *p) { return is(p, "Sequence") ? GP_OK : unsupported(p); }

static gp_status finish_decoder(part *p) {
  return is(p, "Sequence") || is(p, "ByteLevel") ? GP_OK : unsupported(p);
}

static gp_status read_part(gp_json *json, void *context) {
  static const gp_json_field fields[] = {
      {"type", read_type},
      {"pretokenizers", read_sequence},
      {"normalizers", read_sequence},
      {"decoders", read_sequence},
      {"pattern", read_pattern},
      {"behavior", read_behavior},
      {"invert", read_invert},
      {"add_prefix_space", read_add_prefix_space},
      {"use_regex", read_use_regex},
      {"individual_digits", read_individual_digits},
  };
  const part *outer = context;
  part inner = {.draft = outer->draft,
                .which = outer->which,
                .add_prefix_space = true, /* the format's default, like the next one */
                .use_regex = true,
                .parts = outer->parts + 1,
                .finish = outer->finish};
  if (inner.parts > GP_SPLITS_MOST)
    return gp_fail(GP_EUNSUPPORTED, "%s: sequences lie deeper than %d levels", inner.which,
                   GP_SPLITS_MOST);
  GP_TRY(gp_json_object(json, fields, sizeof fields / sizeof *fields, &inner));
  return inner.finish(&inner);
}

static gp_status read_top(gp_json *json, void *draft, const char *which,
                          gp_status (*finish)(part *)) {
  part top = {.draft = draft, .which = which, .finish = finish};
  return read_part(json, &top);
}

gp_status gp_draft_read_normalizer(gp_json *json, void *draft) {
  return gp_json_word(json, "null") ? GP_OK
                                    : read_top(json, draft, "normalizer", finish_normalizer);
}

gp_status gp_draft_read_pre_tokenizer(gp_json *json, void *draft) {
  return gp_json_word(json, "null") ? GP_OK
                                    : read_top(json, draft, "pre_tokenizer", finish_pre_tokenizer);
}

gp_status gp_draft_read_decoder(gp_json *json, void *draft) {
  return read_top(json, draft, "decoder", finish_decoder);
}
