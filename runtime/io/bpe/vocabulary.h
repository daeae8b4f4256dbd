/* io/bpe/vocabulary.h - the tokens by id and by bytes, and the pairs that merge.
 *
 * Both are filled once and then only read, so threads share them. */
#ifndef GP_IO_BPE_VOCABULARY_H
#define GP_IO_BPE_VOCABULARY_H

#include "base/status.h"

#define GP_NO_TOKEN UINT32_MAX

/* What a token's bytes are. */
typedef enum gp_token_kind {
  GP_TOKEN_NONE,   /* no token has this id */
  GP_TOKEN_BYTES,  /* decoded from the alphabet of bytes: merges make the token */
  GP_TOKEN_STRING, /* the string itself, which has other characters */
  GP_TOKEN_ADDED   /* found in texts before they are split */
} gp_token_kind;

typedef struct gp_token {
  uint32_t at;        /* offset of its bytes in gp_vocabulary.bytes */
  uint32_t size : 30; /* bytes */
  uint32_t kind : 2;
} gp_token;

typedef struct gp_vocabulary {
  char *bytes; /* the bytes of all tokens, owned */
  size_t used, room;
  gp_token *token; /* [count] by id */
  size_t count;    /* one more than the highest id */
  uint32_t *slot;  /* [slots]: id + 1 by the hash of the bytes; 0 is empty */
  size_t slots;    /* a power of two */
} gp_vocabulary;

/* Make room for ids below count, of which `tokens` are used, and for that many bytes. Errors:
 * GP_ENOMEM. */
gp_status gp_vocabulary_open(gp_vocabulary *v, size_t count, size_t tokens, size_t bytes);
/* Add a token with a free id below count. A string in the alphabet is decoded to bytes, unless it
 * is an added token. Errors: GP_EFORMAT if the id or the string is taken. */
gp_status gp_vocabulary_add(gp_vocabulary *v, uint32_t id, const char *string, bool added);
/* The id of a string, spelt as in files; or GP_NO_TOKEN. */
uint32_t gp_vocabulary_string(const gp_vocabulary *v, const char *string);
/* The id of a token of this kind with these bytes, as in texts; or GP_NO_TOKEN. */
uint32_t gp_vocabulary_find(const gp_vocabulary *v, gp_token_kind kind, const char *bytes,
                            size_t size);
void gp_vocabulary_close(gp_vocabulary *v);

typedef struct gp_merge {
  uint32_t left, right; /* ids; in a draft, offsets of their strings */
} gp_merge;

typedef struct gp_merges {
  gp_merge *merge; /* [count] by rank: lower ranks are applied first; owned */
  uint32_t *into;  /* [count] the token that each pair becomes */
  size_t count;
  uint32_t *slot; /* [slots]: rank + 1 by the hash of the pair; 0 is empty */
  size_t slots;
} gp_merges;

/* Make the slots of merge[count] and into[count]; if a pair comes twice, the later rank counts. */
gp_status gp_merges_index(gp_merges *m);
/* The rank of a pair, or GP_NO_TOKEN. */
uint32_t gp_merges_find(const gp_merges *m, uint32_t left, uint32_t right);
void gp_merges_close(gp_merges *m);

/* Hash bytes: of tokens here, of words in an encoder's cache. */
uint64_t gp_bytes_hash(const char *bytes, size_t size);

#endif
