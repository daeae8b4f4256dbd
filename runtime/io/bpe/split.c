/* io/bpe/split.c - cuts text by a pattern with PCRE2, compiled to machine code if the system allows
 * it.
 *
 * If matches are simply pieces, as in the rules of all usual models, they are passed on at once.
 * The other kinds join a match with a neighbour, so a piece waits for the next one. Source: Split
 * and SplitDelimiterBehavior of Hugging Face's tokenizers 0.23. */
#include "io/bpe/split.h"

#include "base/memory.h"
#include "io/bpe/pattern.h"
#include "io/text/utf8.h"

enum { STACK_FIRST = 32 * 1024, STACK_MOST = 1024 * 1024, MOST_STEPS = 10 * 1000 * 1000 };

/* ---- opening ------------------------------------------------------------------------------- */

static gp_status compile(gp_split *split, const char *pattern, size_t size, uint32_t options) {
  int number;
  PCRE2_SIZE at;
  split->code = pcre2_compile((PCRE2_SPTR)pattern, size, options, &number, &at, NULL);
  if (!split->code) {
    PCRE2_UCHAR text[128];
    pcre2_get_error_message(number, text, sizeof text);
    return gp_fail(GP_EFORMAT, "pattern '%.*s': byte %zu: %s", (int)size, pattern, at, text);
  }
  split->jit = pcre2_jit_compile(split->code, PCRE2_JIT_COMPLETE) == 0;
  return GP_OK;
}

gp_status gp_split_open(gp_split *split, const char *pattern, bool literal) {
  gp_text text = {0};
  gp_status status =
      literal ? gp_text_string(&text, pattern) : gp_pattern_translate(pattern, &text);
  uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP);
  if (!status) status = compile(split, text.data ? text.data : "", text.size, options);
  gp_text_clear(&text);
  return status;
}

void gp_split_close(gp_split *split) {
  pcre2_code_free(split->code);
  *split = (gp_split){0};
}

gp_status gp_matcher_open(gp_matcher *matcher) {
  *matcher = (gp_matcher){.data = pcre2_match_data_create(1, NULL),
                          .context = pcre2_match_context_create(NULL),
                          .stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL)};
  if (!matcher->data || !matcher->context)
    return gp_fail(GP_ENOMEM, "tokenizer: no memory for matching");
  pcre2_set_match_limit(matcher->context, MOST_STEPS);
  if (matcher->stack) pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
  return GP_OK;
}

void gp_matcher_close(gp_matcher *matcher) {
  pcre2_match_data_free(matcher->data);
  pcre2_match_context_free(matcher->context);
  pcre2_jit_stack_free(matcher->stack);
  *matcher = (gp_matcher){0};
}

/* ---- matching ------------------------------------------------------------------------------ */

/* Find the first match from `at` on and store it in span; *found is false if there is none. */
static gp_status find(const gp_split *split, gp_matcher *m, const char *text, size_t size,
                      size_t at, size_t span[2], bool *found) {
  PCRE2_SPTR subject = (PCRE2_SPTR)text;
  int n = split->jit ? pcre2_jit_match(split->code, subject, size, at, 0, m->data, m->context)
                     : pcre2_match(split->code, subject, size, at, PCRE2_NO_UTF_CHECK, m->data,
                                   m->context);
  *found = n >= 0;
  if (n == PCRE2_ERROR_NOMATCH) return GP_OK;
  if (n < 0) {
    PCRE2_UCHAR reason[128];
    pcre2_get_error_message(n, reason, sizeof reason);
    return gp_fail(GP_EFORMAT, "tokenizer: its pattern fails on this text at byte %zu: %s", at,
                   reason);
  }
  const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(m->data);
  span[0] = pair[0];
  span[1] = pair[1];
  return GP_OK;
}

/* Without memory the answer is no. */
bool gp_split_matches(const gp_split *split, const char *text, size_t size) {
  pcre2_match_data *data = pcre2_match_data_create(1, NULL);
  bool matches = data && pcre2_match(split->code, (PCRE2_SPTR)text, size, 0, PCRE2_NO_UTF_CHECK,
                                     data, NULL) >= 0;
  pcre2_match_data_free(data);
  return matches;
}

/* ---- joining ------------------------------------------------------------------------------- */

typedef struct joiner {
  const gp_split *split;
  const char *text;
  gp_piece_fn *piece;
  void *context;
  size_t start, end; /* the piece that waits for the next one */
  bool waits, match; /* match: the waiting piece is a match */
} joiner;

static gp_status give(joiner *j, size_t start, size_t end) {
  return end > start ? j->piece(j->context, j->text + start, end - start) : GP_OK;
}

/* Does the waiting piece absorb the next one? */
static bool joins(const joiner *j, bool match) {
  if (!j->waits) return false;
  switch (j->split->kind) {
  case GP_SPLIT_MERGED_WITH_PREVIOUS: return match && !j->match;
  case GP_SPLIT_MERGED_WITH_NEXT: return !match && j->match;
  default: return match == j->match; /* contiguous */
  }
}

static gp_status next_piece(joiner *j, size_t start, size_t end, bool match) {
  if (start == end) return GP_OK;
  match ^= j->split->invert;
  if (j->split->kind == GP_SPLIT_ISOLATED) return give(j, start, end);
  if (j->split->kind == GP_SPLIT_REMOVED) return match ? GP_OK : give(j, start, end);
  if (joins(j, match)) {
    j->end = end;
    j->match = match;
    return GP_OK;
  }
  gp_status status = j->waits ? give(j, j->start, j->end) : GP_OK;
  j->waits = true;
  j->start = start;
  j->end = end;
  j->match = match;
  return status;
}

/* Cut the text. An empty match ends the piece before it; the search continues one character
 * later. */
gp_status gp_split_run(const gp_split *split, gp_matcher *matcher, const char *text, size_t size,
                       gp_piece_fn *piece, void *context) {
  joiner j = {.split = split, .text = text, .piece = piece, .context = context};
  size_t done = 0, span[2];
  for (size_t at = 0; at < size;) {
    bool found;
    GP_TRY(find(split, matcher, text, size, at, span, &found));
    if (!found) break;
    GP_TRY(next_piece(&j, done, span[0], false));
    GP_TRY(next_piece(&j, span[0], span[1], true));
    done = at = span[1];
    if (span[0] == span[1] && at < size) at += gp_utf8_step((unsigned char)text[at]);
  }
  GP_TRY(next_piece(&j, done, size, false));
  return j.waits ? give(&j, j.start, j.end) : GP_OK;
}
