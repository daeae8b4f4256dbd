/* io/bpe/read/draft.h - the contents of a tokenizer's files, before its tables are made.
 *
 * Strings stay where they were read, in one text, and are named by their offset: a vocabulary of 9
 * MB has half a million of them. Both readers fill a draft; gp_draft_finish checks that its parts
 * fit together. */
#ifndef GP_IO_BPE_READ_DRAFT_H
#define GP_IO_BPE_READ_DRAFT_H

#include "io/bpe/tokenizer.h"
#include "io/text/json.h"

typedef struct gp_draft_token {
  uint32_t at, id;
} gp_draft_token;

/* A special token before or after every text; `at` 0 is the text itself. */
typedef struct gp_draft_bound {
  uint32_t at, id;
  bool known; /* the file gave the id */
} gp_draft_bound;

enum { GP_BOUNDS_MOST = 64 };

typedef struct gp_draft {
  char *text; /* owned; byte 0 belongs to no file, so that no string has offset 0 */
  size_t size, room;
  gp_draft_token *token;
  size_t tokens, token_room;
  gp_merge *merge; /* offsets of the two strings */
  size_t merges, merge_room;
  gp_added *added; /* texts point into `text` */
  size_t addeds, added_room;
  gp_draft_bound bound[GP_BOUNDS_MOST];
  size_t bounds;
  bool bytes;              /* there is a ByteLevel rule */
  gp_tokenizer *tokenizer; /* under construction: readers set its rules and flags */
} gp_draft;

/* Append a whole file and a zero byte to the text; *at receives the offset of its first byte.
 * Errors: GP_EIO; GP_EFORMAT if it is not text (the error names what it is, if known) or too
 * long. */
gp_status gp_draft_read(gp_draft *draft, const char *path, size_t *at);
uint32_t gp_draft_offset(const gp_draft *draft, const char *string);
gp_status gp_draft_add_token(gp_draft *draft, const char *string, uint32_t id);
gp_status gp_draft_add_merge(gp_draft *draft, const char *left, const char *right);
gp_status gp_draft_add_added(gp_draft *draft, const gp_added *added);
gp_status gp_draft_add_bound(gp_draft *draft, const gp_draft_bound *bound);
/* Append a rule to the tokenizer. */
gp_status gp_draft_add_split(gp_draft *draft, const char *pattern, bool literal, gp_split_kind kind,
                             bool invert);
/* Add the last rule, which turns texts into bytes; with use_regex, GPT-2's pattern cuts them
 * first. */
gp_status gp_draft_add_bytes(gp_draft *draft, bool add_prefix_space, bool use_regex);

/* Read tokenizer.json. */
gp_status gp_draft_read_tokenizer(gp_draft *draft, const char *path);
/* Read its parts normalizer, pre_tokenizer, post_processor and decoder. */
gp_status gp_draft_read_normalizer(gp_json *json, void *draft);
gp_status gp_draft_read_pre_tokenizer(gp_json *json, void *draft);
gp_status gp_draft_read_post_processor(gp_json *json, void *draft);
gp_status gp_draft_read_decoder(gp_json *json, void *draft);
gp_status gp_draft_read_vocabulary(gp_draft *draft, const char *path); /* vocab.json */
/* Read vocab.json and merges.txt of a folder. */
gp_status gp_draft_read_folder(gp_draft *draft, const char *folder,
                               const gp_tokenizer_options *options);

/* Make the tokenizer from the draft; the text and the added tokens stay until it is cleared. */
gp_status gp_draft_finish(gp_draft *draft);
void gp_draft_clear(gp_draft *draft);

#endif
