/* io/bpe/added.h - added tokens, which are found in a text before it is split. */
#ifndef GP_IO_BPE_ADDED_H
#define GP_IO_BPE_ADDED_H

#include "io/bpe/split.h"

typedef struct gp_added {
  const char *text; /* borrowed; not empty */
  size_t size;
  uint32_t id;
  bool special;     /* stays text if the caller asks for that */
  bool single_word; /* not if a word's character comes right before or after */
  bool left, right; /* takes the white space before it, or after it */
  bool normalized;  /* found after the tokens that are not normalized */
} gp_added;

/* A list of added tokens, sorted by their bytes. */
typedef struct gp_added_list {
  gp_added *token; /* owned */
  size_t count;
  bool starts[256]; /* bytes with which some token begins */
  gp_split word;    /* \w, if some token is a single word */
} gp_added_list;

/* Copy the tokens that have this value of `normalized`. */
gp_status gp_added_list_open(gp_added_list *list, const gp_added *tokens, size_t count,
                             bool normalized);
void gp_added_list_close(gp_added_list *list);

/* The result of a search: the token and the bytes that it takes. */
typedef struct gp_added_match {
  const gp_added *token; /* NULL: none up to the end of the text */
  size_t start, end;     /* includes the white space that the token takes */
  size_t next;           /* where the search continues: after the token's own bytes */
} gp_added_match;

/* Find the first token at or after `from`, the longest that begins there. It takes white space only
 * from `taken` on. Special tokens are skipped unless `specials` is set. */
void gp_added_find(const gp_added_list *list, const char *text, size_t size, size_t from,
                   size_t taken, bool specials, gp_added_match *match);

#endif
