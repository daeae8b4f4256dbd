/* gpipe/corpus.h - files of text as ids and records. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_CORPUS_H
#define GP_PUBLIC_CORPUS_H

#include "gpipe/tokenizer.h"

/* Refuse a file that is recognised as another kind of file (a pointer of Git LFS, an HTML page, a
 * pickle ...) or is not UTF-8. Shapes: bytes u8 [size], what `path` holds. Errors: GP_EFORMAT with
 * path and byte. */
gp_status gp_text_check(const char *path, const gp_tensor *bytes);
/* The same for ids of `width` bytes (2 or 4). Ids may begin with any bytes, so only a file with a
 * signature that ids hardly have by chance is refused. Errors: GP_EFORMAT, also for a size that is
 * no multiple of width. */
gp_status gp_tokens_check(const char *path, const gp_tensor *bytes, int width);

/* ---- packing ------------------------------------------------------------------------------- */

/* Ids of many texts, one after the other: 2 bytes each where the vocabulary has at most 65,536,
 * else 4, the lowest byte first. */
typedef struct gp_corpus gp_corpus;

/* The tokenizer is retained. */
gp_status gp_corpus_new(gp_tokenizer *tokenizer, gp_corpus **pack);
void gp_corpus_free(gp_corpus *pack);
int gp_corpus_width(const gp_corpus *pack);
/* Append the ids of a text, or one id. Errors: as gp_tokenizer_encode; GP_ERANGE for an id. */
gp_status gp_corpus_text(gp_corpus *pack, const char *text, size_t size,
                         const gp_encode_options *options);
gp_status gp_corpus_id(gp_corpus *pack, int64_t id);
/* Take the bytes of all ids, u8 [size], without a copy; the pack is empty afterwards. */
gp_status gp_corpus_take(gp_corpus *pack, gp_tensor **bytes);

/* ---- SQuAD --------------------------------------------------------------------------------- */

/* Questions about paragraphs, versions 1.1 and 2.0 of the format. */
typedef struct gp_squad gp_squad;

typedef struct gp_squad_question {
  const char *id, *title, *context, *question; /* borrowed; id and title may be "" */
  bool impossible;                             /* version 2: the context has no answer */
  size_t answers;
} gp_squad_question;

/* Errors: GP_EIO; GP_EFORMAT with path and byte. Cost: about the file's size in memory, since it is
 * mapped and its strings are decoded in place, and 24 bytes for each question. */
gp_status gp_squad_load(const char *path, gp_squad **squad);
void gp_squad_free(gp_squad *squad);
size_t gp_squad_contexts(const gp_squad *squad);
size_t gp_squad_questions(const gp_squad *squad);
/* i counts from 0 and is below the count. */
const char *gp_squad_context(const gp_squad *squad, size_t i);
void gp_squad_question_at(const gp_squad *squad, size_t i, gp_squad_question *question);
/* Answer k of question i; *start is the character of the context where it begins, from 0. */
const char *gp_squad_answer(const gp_squad *squad, size_t i, size_t k, int64_t *start);

/* ---- JSONL --------------------------------------------------------------------------------- */

/* A JSON object on each line; the caller names the fields that are read. */
typedef struct gp_jsonl gp_jsonl;

typedef enum gp_jsonl_kind {
  GP_JSONL_INTEGER,
  GP_JSONL_NUMBER,
  GP_JSONL_BOOL,
  GP_JSONL_TEXT,
  GP_JSONL_LIST /* of numbers */
} gp_jsonl_kind;

typedef struct gp_jsonl_value {
  gp_jsonl_kind kind;
  int64_t integer; /* of an integer or bool */
  double number;   /* of an integer or number */
  const char *text;
  const double *list; /* [count] */
  size_t count;
  bool whole; /* every element is a whole number that an i64 holds exactly */
} gp_jsonl_value;

/* Map a file and check all of it: each line that is not blank is an object with the fields
 * (names[count]), and a field has values of one kind in all lines (whole numbers may stand among
 * others). Errors: GP_EIO; GP_EFORMAT with path, line and byte. Cost: the file is mapped; 8 bytes
 * for each line. */
gp_status gp_jsonl_load(const char *path, const char *const *names, size_t count, gp_jsonl **file);
void gp_jsonl_free(gp_jsonl *file);
size_t gp_jsonl_rows(const gp_jsonl *file);
gp_jsonl_kind gp_jsonl_field_kind(const gp_jsonl *file, size_t field);
/* Read all fields of a row; what they point to is valid until the next call. values has one place
 * for each field. Errors: GP_ERANGE; those of gp_jsonl_load if the file has changed meanwhile.
 * Threads: one at a time. */
gp_status gp_jsonl_read(gp_jsonl *file, size_t row, gp_jsonl_value *values);

#endif
