/* io/bpe/pattern.h - translates the patterns of tokenizer files, written for Oniguruma, to
 * PCRE2. */
#ifndef GP_IO_BPE_PATTERN_H
#define GP_IO_BPE_PATTERN_H

#include "io/text/text.h"

/* Append the pattern in PCRE2's syntax (with UTF and UCP), so that it matches the same texts.
 * Errors: GP_EUNSUPPORTED for syntax that the two may read differently, with its byte;
 * GP_ENOMEM. */
gp_status gp_pattern_translate(const char *pattern, gp_text *to);

#endif
