/* io/bpe/added.c - finds the leftmost, longest of a list of texts, by narrowing down a sorted list.
 *
 * Source: AddedVocabulary of Hugging Face's tokenizers 0.23, whose Aho-Corasick automaton finds the
 * same. */
#include "io/bpe/added.h"

#include <stdlib.h> /* qsort */
#include <string.h>

#include "base/memory.h"
#include "io/text/utf8.h"

/* ---- the list ------------------------------------------------------------------------------ */

static int by_bytes(const void *a, const void *b) {
  const gp_added *x = a, *y = b;
  size_t common = x->size < y->size ? x->size : y->size;
  int order = memcmp(x->text, y->text, common);
  return order ? order : (x->size > y->size) - (x->size < y->size);
}

gp_status gp_added_list_open(gp_added_list *list, const gp_added *tokens, size_t count,
                             bool normalized) {
  void *memory = NULL;
  GP_TRY(gp_alloc_array(count, sizeof *tokens, &memory));
  list->token = memory;
  bool words = false;
  for (size_t i = 0; i < count; i++) {
    if (tokens[i].normalized != normalized) continue;
    list->token[list->count++] = tokens[i];
    list->starts[(unsigned char)tokens[i].text[0]] = true;
    words |= tokens[i].single_word;
  }
  if (list->count) qsort(list->token, list->count, sizeof *list->token, by_bytes);
  return words ? gp_split_open(&list->word, "\\w", false) : GP_OK;
}

void gp_added_list_close(gp_added_list *list) {
  gp_free(list->token);
  gp_split_close(&list->word);
  *list = (gp_added_list){0};
}

/* ---- finding ------------------------------------------------------------------------------- */

/* The first of tokens low .. high - 1 whose byte `at` is >= `wanted`; all of them are longer than
 * `at`. */
static size_t bound(const gp_added_list *list, size_t low, size_t high, size_t at, int wanted) {
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((unsigned char)list->token[middle].text[at] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The longest token that the text begins with. Among tokens that share the bytes so far, one that
 * ends here comes first. */
static const gp_added *longest(const gp_added_list *list, const char *text, size_t size) {
  const gp_added *best = NULL;
  size_t low = 0, high = list->count;
  for (size_t at = 0; low < high; at++) {
    if (list->token[low].size == at) best = &list->token[low++];
    if (at == size || low == high) break;
    int c = (unsigned char)text[at];
    low = bound(list, low, high, at, c);
    high = bound(list, low, high, at, c + 1);
  }
  return best;
}

/* ---- neighbours ---------------------------------------------------------------------------- */

/* Unicode's White_Space, which has not changed since 6.3. */
static bool is_space(unsigned code) {
  return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

/* Where the character before `at` begins; `at` if the bytes there are no character. */
static size_t before(const char *text, size_t at) {
  for (size_t n = 1; n <= 4 && n <= at; n++)
    if (gp_utf8_valid(text + at - n, n) && gp_utf8_step((unsigned char)text[at - n]) == n)
      return at - n;
  return at;
}

/* Where the character at `at` ends. */
static size_t after(const char *text, size_t size, size_t at) {
  if (at == size) return at;
  size_t step = gp_utf8_step((unsigned char)text[at]);
  return step <= size - at && gp_utf8_valid(text + at, step) ? at + step : at;
}

static bool stands_alone(const gp_added_list *list, const char *text, size_t size, size_t start,
                         size_t end) {
  size_t left = before(text, start), right = after(text, size, end);
  return !gp_split_matches(&list->word, text + left, start - left) &&
         !gp_split_matches(&list->word, text + end, right - end);
}

static size_t skip_back(const char *text, size_t at, size_t limit) {
  for (;;) {
    size_t start = before(text, at);
    if (start == at || start < limit || !is_space(gp_utf8_code(text + start))) return at;
    at = start;
  }
}

static size_t skip_forward(const char *text, size_t size, size_t at) {
  for (;;) {
    size_t end = after(text, size, at);
    if (end == at || !is_space(gp_utf8_code(text + at))) return at;
    at = end;
  }
}

/* Find the next token that counts. One that does not count is skipped as a whole: no token is
 * looked for inside it. */
void gp_added_find(const gp_added_list *list, const char *text, size_t size, size_t from,
                   size_t taken, bool specials, gp_added_match *match) {
  *match = (gp_added_match){.start = size, .end = size, .next = size};
  if (!list->count) return;
  for (size_t at = from; at < size;) {
    const gp_added *token =
        list->starts[(unsigned char)text[at]] ? longest(list, text + at, size - at) : NULL;
    size_t end = token ? at + token->size : at + 1;
    bool counts = token && (specials || !token->special) &&
                  (!token->single_word || stands_alone(list, text, size, at, end));
    if (counts) {
      *match = (gp_added_match){token, at, end, end};
      if (token->left) match->start = skip_back(text, at, taken);
      if (token->right) match->end = skip_forward(text, size, end);
      return;
    }
    at = end;
  }
}
