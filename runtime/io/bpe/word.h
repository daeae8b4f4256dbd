/* io/bpe/word.h - the tokens of one word: byte pairs merged by rank. */
#ifndef GP_IO_BPE_WORD_H
#define GP_IO_BPE_WORD_H

#include "io/bpe/tokenizer.h"

typedef struct gp_symbol {
  uint32_t id;
  int32_t before, after; /* neighbours that are left; -1 is none */
  bool gone;             /* merged into the one before */
} gp_symbol;

/* Two neighbours that may merge. */
typedef struct gp_candidate {
  uint32_t rank, into;
  int32_t at; /* the left one */
} gp_candidate;

/* Room that is used again from word to word. */
typedef struct gp_word {
  gp_symbol *symbol;
  size_t symbols, symbol_room;
  gp_candidate *heap; /* the lowest rank, then the leftmost, first */
  size_t heaped, heap_room;
  uint32_t *id; /* [ids]: the result */
  size_t ids, id_room;
} gp_word;

/* Leaves the ids of the bytes in word->id. Errors: GP_EFORMAT for a byte without a token, or a word
 * beyond all measure. Cost: O(n log n). */
gp_status gp_word_merge(gp_word *word, const gp_tokenizer *t, const char *bytes, size_t size);
void gp_word_close(gp_word *word);

#endif
