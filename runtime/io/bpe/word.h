/* io/bpe/word.h - the tokens of one word: byte pairs merged by rank. */
#ifndef GP_IO_BPE_WORD_H
#define GP_IO_BPE_WORD_H

#include "io/bpe/tokenizer.h"

typedef struct gp_symbol {
  uint32_t id;
  int32_t before, after; /* remaining neighbours, or -1 */
  bool gone;             /* merged into the one before */
} gp_symbol;

/* Two neighbours that can merge. */
typedef struct gp_candidate {
  uint32_t rank, into;
  int32_t at; /* index of the left one */
} gp_candidate;

/* Memory that is reused from word to word. */
typedef struct gp_word {
  gp_symbol *symbol;
  size_t symbols, symbol_room;
  gp_candidate *heap; /* the lowest rank, then the leftmost, first */
  size_t heaped, heap_room;
  uint32_t *id; /* [ids]: the result */
  size_t ids, id_room;
} gp_word;

/* Leave the ids of the bytes in word->id. Errors: GP_EFORMAT for a byte without a token, or a word
 * that is too long. Cost: O(n log n). */
gp_status gp_word_merge(gp_word *word, const gp_tokenizer *t, const char *bytes, size_t size);
void gp_word_close(gp_word *word);

#endif
