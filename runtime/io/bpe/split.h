/* io/bpe/split.h - a rule that cuts a text into pieces, and what it does with its matches. */
#ifndef GP_IO_BPE_SPLIT_H
#define GP_IO_BPE_SPLIT_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/status.h"

/* X(NAME, "name in files"): what a rule does with its matches. */
#define GP_SPLITS(X)                                                                               \
  X(ISOLATED, "Isolated")                                                                          \
  X(REMOVED, "Removed")                                                                            \
  X(MERGED_WITH_PREVIOUS, "MergedWithPrevious")                                                    \
  X(MERGED_WITH_NEXT, "MergedWithNext")                                                            \
  X(CONTIGUOUS, "Contiguous")
#define GP_SPLIT_ENUM(name, text) GP_SPLIT_##name,
typedef enum gp_split_kind { GP_SPLITS(GP_SPLIT_ENUM) GP_SPLIT_COUNT } gp_split_kind;
#undef GP_SPLIT_ENUM

typedef struct gp_split {
  pcre2_code *code;
  gp_split_kind kind;
  bool invert; /* text between the matches counts as a match */
  bool jit;    /* the pattern was compiled to machine code */
} gp_split;

/* Compile a pattern, or a text that stands for itself. Errors: GP_EFORMAT, GP_EUNSUPPORTED. */
gp_status gp_split_open(gp_split *split, const char *pattern, bool literal);
void gp_split_close(gp_split *split);

/* Does the pattern match anywhere in well-formed text? Slow: for occasional questions. */
bool gp_split_matches(const gp_split *split, const char *text, size_t size);

/* What one thread needs for matching. */
typedef struct gp_matcher {
  pcre2_match_data *data;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
} gp_matcher;

gp_status gp_matcher_open(gp_matcher *matcher);
void gp_matcher_close(gp_matcher *matcher);

/* Receives a piece of a text; size > 0. */
typedef gp_status gp_piece_fn(void *context, const char *text, size_t size);

/* Cut well-formed UTF-8 into pieces, in order. Errors: those of `piece`; GP_EFORMAT when the
 * pattern takes too many steps. */
gp_status gp_split_run(const gp_split *split, gp_matcher *matcher, const char *text, size_t size,
                       gp_piece_fn *piece, void *context);

#endif
