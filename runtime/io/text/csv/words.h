/* io/text/csv/words.h - the different words of a column, numbered as classes. */
#ifndef GP_IO_TEXT_CSV_WORDS_H
#define GP_IO_TEXT_CSV_WORDS_H

#include "base/status.h"

enum { GP_CSV_MOST_WORDS = 65536 };

typedef struct gp_csv_words {
  char **word;  /* sorted by bytes; owned */
  uint32_t *id; /* [count]: the order in which the words were first seen */
  size_t count, room, id_room;
} gp_csv_words;

/* The id of a word, which is copied if it is new; *id is GP_CSV_MOST_WORDS if there are too many.
 * Errors: GP_ENOMEM. */
gp_status gp_csv_words_find(gp_csv_words *words, const char *word, uint32_t *id);
/* rank[id] is the position of the word in the sorted list. */
void gp_csv_words_ranks(const gp_csv_words *words, uint32_t *rank);
void gp_csv_words_free(gp_csv_words *words);

#endif
