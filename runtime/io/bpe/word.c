/* io/bpe/word.c - merges the bytes of a word, with a heap of candidates.
 *
 * A candidate may be out of date when its turn comes, because its symbols have merged with others.
 * It still counts if the pair that is there now makes the same token. The original does so too, and
 * this gives the same results in every case. Source: Word::merge_all of Hugging Face's
 * tokenizers. */
#include "io/bpe/word.h"

#include "base/memory.h"
#include "io/grow.h"

enum { LONGEST_WORD = 1 << 24 }; /* bytes; with its symbols and candidates some 600 MB */

/* ---- the heap ------------------------------------------------------------------------------ */

static bool sooner(const gp_candidate *a, const gp_candidate *b) {
  return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static gp_status push(gp_word *w, const gp_candidate *candidate) {
  GP_GROW(w->heap, w->heaped, w->heap_room);
  size_t at = w->heaped++;
  while (at && sooner(candidate, &w->heap[(at - 1) / 2])) {
    w->heap[at] = w->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  w->heap[at] = *candidate;
  return GP_OK;
}

static gp_candidate pop(gp_word *w) {
  gp_candidate top = w->heap[0], last = w->heap[--w->heaped];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= w->heaped) break;
    if (child + 1 < w->heaped && sooner(&w->heap[child + 1], &w->heap[child])) child++;
    if (!sooner(&w->heap[child], &last)) break;
    w->heap[at] = w->heap[child];
    at = child;
  }
  w->heap[at] = last;
  return top;
}

/* ---- merging ------------------------------------------------------------------------------- */

static gp_status fill(gp_word *w, const gp_tokenizer *t, const char *bytes, size_t size) {
  if (size > LONGEST_WORD)
    return gp_fail(GP_EFORMAT, "tokenizer: a word of %zu bytes, expected at most %d", size,
                   LONGEST_WORD);
  if (size > w->symbol_room) {
    void *symbol = w->symbol;
    GP_TRY(gp_resize_array(w->symbol_room, size + size / 2, sizeof *w->symbol, &symbol));
    w->symbol = symbol;
    w->symbol_room = size + size / 2;
  }
  for (size_t i = 0; i < size; i++) {
    uint32_t id = t->byte[(unsigned char)bytes[i]];
    if (id == GP_NO_TOKEN)
      return gp_fail(GP_EFORMAT, "tokenizer: byte 0x%02x is not in the vocabulary",
                     (unsigned)(unsigned char)bytes[i]);
    w->symbol[i] = (gp_symbol){id, (int32_t)i - 1, i + 1 < size ? (int32_t)i + 1 : -1, false};
  }
  w->symbols = size;
  w->heaped = 0;
  return GP_OK;
}

/* Add the pair that begins at `at` as a candidate, if it can merge. */
static gp_status consider(gp_word *w, const gp_merges *m, int32_t at) {
  const gp_symbol *left = &w->symbol[at];
  if (left->after < 0) return GP_OK;
  uint32_t rank = gp_merges_find(m, left->id, w->symbol[left->after].id);
  if (rank == GP_NO_TOKEN) return GP_OK;
  return push(w, &(gp_candidate){rank, m->into[rank], at});
}

static bool still_merges(const gp_word *w, const gp_merges *m, const gp_candidate *c) {
  const gp_symbol *left = &w->symbol[c->at];
  if (left->gone || left->after < 0) return false;
  uint32_t rank = gp_merges_find(m, left->id, w->symbol[left->after].id);
  return rank != GP_NO_TOKEN && m->into[rank] == c->into;
}

static gp_status merge(gp_word *w, const gp_merges *m, const gp_candidate *c) {
  gp_symbol *left = &w->symbol[c->at], *right = &w->symbol[left->after];
  left->id = c->into;
  left->after = right->after;
  right->gone = true;
  if (right->after >= 0) w->symbol[right->after].before = c->at;
  if (left->before >= 0) GP_TRY(consider(w, m, left->before));
  return consider(w, m, c->at);
}

static gp_status keep_ids(gp_word *w) {
  w->ids = 0;
  for (int32_t at = 0; at >= 0; at = w->symbol[at].after) {
    GP_GROW(w->id, w->ids, w->id_room);
    w->id[w->ids++] = w->symbol[at].id;
  }
  return GP_OK;
}

gp_status gp_word_merge(gp_word *w, const gp_tokenizer *t, const char *bytes, size_t size) {
  GP_TRY(fill(w, t, bytes, size));
  for (size_t i = 0; i + 1 < size; i++) GP_TRY(consider(w, &t->merges, (int32_t)i));
  while (w->heaped) {
    gp_candidate candidate = pop(w);
    if (still_merges(w, &t->merges, &candidate)) GP_TRY(merge(w, &t->merges, &candidate));
  }
  return keep_ids(w);
}

void gp_word_close(gp_word *w) {
  gp_free(w->symbol);
  gp_free(w->heap);
  gp_free(w->id);
  *w = (gp_word){0};
}
