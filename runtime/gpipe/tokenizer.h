/* gpipe/tokenizer.h - texts as ids of a byte-level BPE vocabulary and back. See gpipe.h for what
 * holds everywhere. */
#ifndef GP_PUBLIC_TOKENIZER_H
#define GP_PUBLIC_TOKENIZER_H

#include "gpipe/tensor.h"

typedef struct gp_tokenizer gp_tokenizer;

/* What vocab.json and merges.txt do not say; tokenizer.json does. */
typedef struct gp_tokenizer_options {
  bool add_prefix_space; /* as if a space stood before every text */
  const char *const
      *special; /* [specials] tokens of the vocabulary that are found in texts whole */
  size_t specials;
} gp_tokenizer_options;

typedef struct gp_encode_options {
  bool specials_as_text; /* special tokens in the text are text like any other */
  bool no_bounds;        /* without the tokens that the file puts before and after every text */
} gp_encode_options;

/* Load tokenizer.json, or a folder with that file or with vocab.json and merges.txt (options may be
 * NULL: none). A tokenizer never changes, and any number of threads may use it at once.
 * Ownership: one reference. Errors: GP_EIO; GP_EFORMAT with file and offset; GP_EUNSUPPORTED names
 * what the file asks for and this does not do. Cost: about twice the files, in memory.
 * Source: Hugging Face's tokenizers 0.23; Sennrich et al., 2016 (BPE). */
gp_status gp_tokenizer_load(const char *path, const gp_tokenizer_options *options,
                            gp_tokenizer **tokenizer);
gp_tokenizer *gp_tokenizer_retain(gp_tokenizer *tokenizer);
void gp_tokenizer_free(gp_tokenizer *tokenizer);

/* One more than the highest id: the rows that an embedding for it needs. */
size_t gp_tokenizer_count(const gp_tokenizer *tokenizer);
/* The ids of a text, which may hold any bytes: bytes that are not UTF-8 become tokens too, so
 * nothing is lost. Shapes: ids i64 [n]. Errors: GP_EFORMAT for a byte that no token stands for. */
gp_status gp_tokenizer_encode(gp_tokenizer *tokenizer, const char *text, size_t size,
                              const gp_encode_options *options, gp_tensor **ids);
/* The bytes of ids (i64 [n], contiguous), one after the other. Ownership: gp_tokenizer_text_free.
 * Errors: GP_ERANGE for an id that stands for nothing. */
gp_status gp_tokenizer_decode(const gp_tokenizer *tokenizer, const gp_tensor *ids,
                              bool skip_specials, char **text, size_t *size);
void gp_tokenizer_text_free(char *text);

/* The bytes of an id, borrowed; false if it stands for nothing. */
bool gp_tokenizer_token(const gp_tokenizer *tokenizer, int64_t id, const char **bytes,
                        size_t *size);
/* The id of bytes that are a token; false if they are none. */
bool gp_tokenizer_find(const gp_tokenizer *tokenizer, const char *bytes, size_t size, int64_t *id);
/* The i-th added token, i from 0; false after the last one. */
bool gp_tokenizer_added(const gp_tokenizer *tokenizer, size_t i, const char **text, int64_t *id,
                        bool *special);

#endif
