/* io/text/csv/words.c - a sorted list of words. */
#include "io/text/csv/words.h"

#include <string.h>

#include "io/grow.h"

/* The first position whose word is not before `word`. */
static size_t place_of(const gp_csv_words *w, const char *word) {
  size_t low = 0, high = w->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(w->word[middle], word) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static gp_status insert(gp_csv_words *w, size_t at, const char *word) {
  char *copy;
  GP_GROW(w->word, w->count, w->room);
  GP_GROW(w->id, w->count, w->id_room);
  GP_TRY(gp_copy_string(word, &copy));
  memmove(w->word + at + 1, w->word + at, (w->count - at) * sizeof *w->word);
  memmove(w->id + at + 1, w->id + at, (w->count - at) * sizeof *w->id);
  w->word[at] = copy;
  w->id[at] = (uint32_t)w->count++;
  return GP_OK;
}

gp_status gp_csv_words_find(gp_csv_words *w, const char *word, uint32_t *id) {
  size_t at = place_of(w, word);
  if (at == w->count || strcmp(w->word[at], word) != 0) {
    *id = GP_CSV_MOST_WORDS;
    if (w->count == GP_CSV_MOST_WORDS) return GP_OK;
    GP_TRY(insert(w, at, word));
  }
  *id = w->id[at];
  return GP_OK;
}

void gp_csv_words_ranks(const gp_csv_words *w, uint32_t *rank) {
  for (size_t i = 0; i < w->count; i++) rank[w->id[i]] = (uint32_t)i;
}

void gp_csv_words_free(gp_csv_words *w) {
  for (size_t i = 0; i < w->count; i++) gp_free(w->word[i]);
  gp_free(w->word);
  gp_free(w->id);
  *w = (gp_csv_words){0};
}
