/* io/bpe/tokenizer.h - the tokenizer's internals. */
#ifndef GP_IO_BPE_TOKENIZER_H
#define GP_IO_BPE_TOKENIZER_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpipe/tokenizer.h"
#include "io/bpe/added.h"
#include "io/bpe/split.h"
#include "io/bpe/vocabulary.h"

enum { GP_SPLITS_MOST = 16 };

typedef struct gp_encoder gp_encoder;

struct gp_tokenizer {
  atomic_int references;
  gp_vocabulary vocabulary;
  gp_merges merges;
  uint32_t byte[256];             /* the id of each byte, or GP_NO_TOKEN */
  gp_split split[GP_SPLITS_MOST]; /* rules; each cuts the pieces of the one before */
  size_t splits;
  size_t prefix_at;      /* pieces that reach this rule get the space */
  bool add_prefix_space; /* before pieces that do not begin with one */
  bool ignore_merges;    /* a word that is a token is encoded as it, whatever merges say */
  gp_added *added;       /* [addeds] owned; their texts lie in added_text */
  size_t addeds;
  char *added_text;
  gp_added_list first, second; /* added tokens that are not normalized, and those that are */
  uint32_t *before, *after;    /* ids that every text begins and ends with */
  size_t befores, afters;
  pthread_mutex_t lock; /* guards `idle` */
  gp_encoder *idle;     /* encoders that no thread is using */
};

/* Receives ids, in order. */
typedef gp_status gp_id_fn(void *context, const uint32_t *ids, size_t count);

/* Encode `size` bytes; `put` receives ids as they become known. Errors: GP_EFORMAT for a byte that
 * the vocabulary lacks. Threads: any number, each with its own call. */
gp_status gp_tokenizer_run(gp_tokenizer *t, const char *text, size_t size,
                           const gp_encode_options *options, gp_id_fn *put, void *context);

/* io/bpe/encoder.c: what one thread needs while it encodes. */
gp_status gp_encoder_take(gp_tokenizer *t, gp_encoder **encoder);
void gp_encoder_give(gp_tokenizer *t, gp_encoder *encoder);
void gp_encoder_free_all(gp_tokenizer *t);

#endif
