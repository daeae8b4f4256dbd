/* io/bpe/encoder.c - from bytes to ids: added tokens, then well-formed runs, then pieces, words,
 * merges.
 *
 * The original accepts only well-formed text. Here a run of ill-formed bytes is a word by itself,
 * so that decoding returns every byte; the text before it is cut as if it ended there, and the text
 * after it as if it began there.
 *
 * An encoder is what one thread needs: a matcher, room for merging, and a cache of words. A text
 * has few words, which come again and again, so a cache of fixed size answers most of them. Idle
 * encoders wait in the tokenizer for the next call. */
#include <string.h>

#include "base/memory.h"
#include "io/bpe/word.h"
#include "io/text/utf8.h"

enum {
  CACHE_WORDS = 16384, /* times 64 bytes: stays in the second-level cache */
  CACHED_BYTES = 22,
  CACHED_IDS = 10
};

typedef struct cached {
  unsigned char size, ids; /* size 0: empty */
  char word[CACHED_BYTES];
  uint32_t id[CACHED_IDS];
} cached;

_Static_assert(sizeof(cached) == 64, "one line of the processor's cache");

struct gp_encoder {
  gp_encoder *next; /* while idle */
  gp_matcher matcher;
  gp_word word;
  cached *cache; /* [CACHE_WORDS] */
  char *spaced;  /* a piece with a space before it */
  size_t spaced_room;
};

/* One call of the encoder. */
typedef struct run {
  gp_tokenizer *t;
  gp_encoder *e;
  const gp_encode_options *options;
  gp_id_fn *put;
  void *context;
} run;

/* The context of pieces that go on to rule `rule`. */
typedef struct step {
  const run *r;
  size_t rule;
  bool spaced; /* the space was put already */
} step;

/* ---- words --------------------------------------------------------------------------------- */

static gp_status put_merged(const run *r, const char *bytes, size_t size) {
  gp_word *word = &r->e->word;
  if (r->t->ignore_merges) {
    uint32_t id = gp_vocabulary_find(&r->t->vocabulary, GP_TOKEN_BYTES, bytes, size);
    if (id != GP_NO_TOKEN) return r->put(r->context, &id, 1);
  }
  GP_TRY(gp_word_merge(word, r->t, bytes, size));
  return r->put(r->context, word->id, word->ids);
}

/* Encode a word. The cache keeps only short words with few tokens. */
static gp_status put_word(const run *r, const char *bytes, size_t size) {
  if (size > CACHED_BYTES) return put_merged(r, bytes, size);
  cached *c = &r->e->cache[gp_bytes_hash(bytes, size) % CACHE_WORDS];
  if (c->size == size && memcmp(c->word, bytes, size) == 0)
    return r->put(r->context, c->id, c->ids);
  gp_word *word = &r->e->word;
  uint32_t whole = r->t->ignore_merges
                       ? gp_vocabulary_find(&r->t->vocabulary, GP_TOKEN_BYTES, bytes, size)
                       : GP_NO_TOKEN;
  if (whole == GP_NO_TOKEN) GP_TRY(gp_word_merge(word, r->t, bytes, size));
  size_t ids = whole == GP_NO_TOKEN ? word->ids : 1;
  const uint32_t *id = whole == GP_NO_TOKEN ? word->id : &whole;
  if (ids <= CACHED_IDS) {
    c->size = (unsigned char)size;
    c->ids = (unsigned char)ids;
    memcpy(c->word, bytes, size);
    memcpy(c->id, id, ids * sizeof *id);
  }
  return r->put(r->context, id, ids);
}

/* ---- pieces -------------------------------------------------------------------------------- */

static gp_status add_space(gp_encoder *e, const char *text, size_t size) {
  if (size + 1 > e->spaced_room) {
    gp_free(e->spaced);
    e->spaced = NULL;
    e->spaced_room = 0;
    void *memory = NULL;
    GP_TRY(gp_alloc(size + size / 2 + 64, &memory));
    e->spaced = memory;
    e->spaced_room = size + size / 2 + 64;
  }
  e->spaced[0] = ' ';
  memcpy(e->spaced + 1, text, size);
  return GP_OK;
}

/* Pass a piece to rule `rule`; after the last rule it is a word. Only one rule puts a space, so one
 * buffer is enough. */
static gp_status put_piece(void *context, const char *text, size_t size) {
  const step *s = context;
  const gp_tokenizer *t = s->r->t;
  step next = {s->r, s->rule + 1, s->spaced};
  if (s->rule == t->prefix_at && t->add_prefix_space && !s->spaced && text[0] != ' ') {
    GP_TRY(add_space(s->r->e, text, size));
    text = s->r->e->spaced;
    size++;
  }
  next.spaced |= s->rule == t->prefix_at;
  if (s->rule == t->splits) return put_word(s->r, text, size);
  return gp_split_run(&t->split[s->rule], &s->r->e->matcher, text, size, put_piece, &next);
}

/* Encode text that contains no added tokens. */
static gp_status put_text(const run *r, const char *text, size_t size) {
  step first = {.r = r};
  for (size_t at = 0; at < size;) {
    size_t good = gp_utf8_prefix(text + at, size - at);
    if (good) GP_TRY(put_piece(&first, text + at, good));
    first.spaced = true;
    at += good;
    size_t bad = at;
    while (at < size && !gp_utf8_prefix(text + at, size - at < 4 ? size - at : 4)) at++;
    if (at > bad) GP_TRY(put_word(r, text + bad, at - bad));
  }
  return GP_OK;
}

/* ---- added tokens -------------------------------------------------------------------------- */

/* Encode text: search it for tokens of the first list, and the text between them for the second. */
static gp_status put_listed(const run *r, const char *text, size_t size, bool second) {
  const gp_added_list *list = second ? &r->t->second : &r->t->first;
  bool specials = !(r->options && r->options->specials_as_text);
  gp_added_match match = {0};
  for (size_t done = 0;; done = match.end) {
    gp_added_find(list, text, size, match.next, done, specials, &match);
    if (done < match.start) {
      const char *between = text + done;
      size_t length = match.start - done;
      GP_TRY(second ? put_text(r, between, length) : put_listed(r, between, length, true));
    }
    if (!match.token) return GP_OK;
    GP_TRY(r->put(r->context, &match.token->id, 1));
  }
}

gp_status gp_tokenizer_run(gp_tokenizer *t, const char *text, size_t size,
                           const gp_encode_options *options, gp_id_fn *put, void *context) {
  run r = {.t = t, .options = options, .put = put, .context = context};
  bool bounds = !(options && options->no_bounds);
  if (bounds && t->befores) GP_TRY(put(context, t->before, t->befores));
  GP_TRY(gp_encoder_take(t, &r.e));
  gp_status status = put_listed(&r, text, size, false);
  gp_encoder_give(t, r.e);
  if (!status && bounds && t->afters) status = put(context, t->after, t->afters);
  return status;
}

/* ---- encoders ------------------------------------------------------------------------------ */

static void free_encoder(gp_encoder *e) {
  gp_matcher_close(&e->matcher);
  gp_word_close(&e->word);
  gp_free(e->cache);
  gp_free(e->spaced);
  gp_free(e);
}

gp_status gp_encoder_take(gp_tokenizer *t, gp_encoder **encoder) {
  pthread_mutex_lock(&t->lock);
  gp_encoder *e = t->idle;
  if (e) t->idle = e->next;
  pthread_mutex_unlock(&t->lock);
  if (!e) {
    void *memory = NULL, *cache = NULL;
    GP_TRY(gp_alloc(sizeof *e, &memory));
    e = memory;
    gp_status status = gp_matcher_open(&e->matcher);
    if (!status) status = gp_alloc_array(CACHE_WORDS, sizeof *e->cache, &cache);
    e->cache = cache;
    if (status) {
      free_encoder(e);
      return status;
    }
  }
  *encoder = e;
  return GP_OK;
}

void gp_encoder_give(gp_tokenizer *t, gp_encoder *e) {
  pthread_mutex_lock(&t->lock);
  e->next = t->idle;
  t->idle = e;
  pthread_mutex_unlock(&t->lock);
}

void gp_encoder_free_all(gp_tokenizer *t) {
  while (t->idle) {
    gp_encoder *e = t->idle;
    t->idle = e->next;
    free_encoder(e);
  }
}
