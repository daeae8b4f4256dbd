/* io/bpe/added.h - tokens that are looked for in a text before it is split. */
#ifndef GP_IO_BPE_ADDED_H
#define GP_IO_BPE_ADDED_H

#include "io/bpe/split.h"

typedef struct gp_added {
  const char *text; /* borrowed; not empty */
  size_t size;
  uint32_t id;
  bool special;     /* left as text where the caller asks for that */
  bool single_word; /* not where a character of a word stands before or after */
  bool left, right; /* takes the white space before, after it */
  bool normalized;  /* looked for after those that are not */
} gp_added;

/* Some of them, sorted by their bytes. */
typedef struct gp_added_list {
  gp_added *token; /* owned */
  size_t count;
  bool starts[256]; /* bytes that one of them begins with */
  gp_split word;    /* \w, where one is a single word */
} gp_added_list;

/* Copy those of the tokens with this value of normalized. */
gp_status gp_added_list_open(gp_added_list *list, const gp_added *tokens, size_t count,
                             bool normalized);
void gp_added_list_close(gp_added_list *list);

/* What a search found: the token and the bytes that it takes. */
typedef struct gp_added_match {
  const gp_added *token; /* NULL: none up to the end */
  size_t start, end;     /* with its white space */
  size_t next;           /* where the search goes on: after the token's own bytes */
} gp_added_match;

/* The first token at or after `from`, the longest that begins there; its white space is taken from
 * `taken` on. `specials` are passed over where they are not wanted. */
void gp_added_find(const gp_added_list *list, const char *text, size_t size, size_t from,
                   size_t taken, bool specials, gp_added_match *match);

#endif
