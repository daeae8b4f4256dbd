/* io/corpus/squad.c - reads SQuAD's JSON: titles, paragraphs, questions, answers.
 *
 * The mapped file is decoded in place (the mapping is private), so the tables hold only offsets.
 * Fields that are not part of the format are skipped. Source: Rajpurkar et al., 2016 and 2018; the
 * files train-v1.1.json and train-v2.0.json. */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/corpus.h"
#include "gpipe/data.h"
#include "io/grow.h"
#include "io/safetensors/foreign.h"
#include "io/text/json.h"
#include "io/text/utf8.h"

typedef struct question {
  uint32_t id, text; /* offsets; 0: none, since a file begins with '{' */
  uint32_t paragraph;
  uint32_t first_answer : 31, impossible : 1;
} question;

typedef struct answer {
  uint32_t text, start;
} answer;

typedef struct paragraph {
  uint32_t title, context;
} paragraph;

struct gp_squad {
  gp_tensor *file;
  const char *text;
  paragraph *paragraph;
  size_t paragraphs, paragraph_room;
  question *question; /* one more at the end marks where the last answers end */
  size_t questions, question_room;
  answer *answer;
  size_t answers, answer_room;
  uint32_t title; /* of the current article */
  bool data;      /* the field "data" has been seen */
};

/* ---- growing ------------------------------------------------------------------------------- */

static gp_status read_text(gp_json *json, gp_squad *s, uint32_t *at) {
  const char *text;
  GP_TRY(gp_json_string(json, &text));
  *at = (uint32_t)(text - s->text);
  return GP_OK;
}

static gp_status missing(size_t at, const char *what) {
  return gp_fail(GP_EFORMAT, "JSON byte %zu: %s", at, what);
}

/* ---- answers ------------------------------------------------------------------------------- */

static gp_status read_answer_text(gp_json *json, void *context) {
  gp_squad *s = context;
  return read_text(json, s, &s->answer[s->answers].text);
}

static gp_status read_start(gp_json *json, void *context) {
  gp_squad *s = context;
  size_t at = json->at;
  uint64_t start;
  GP_TRY(gp_json_uint(json, &start));
  if (start > UINT32_MAX) return missing(at, "answer_start is beyond the context");
  s->answer[s->answers].start = (uint32_t)start;
  return GP_OK;
}

static gp_status read_answer(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"text", read_answer_text}, {"answer_start", read_start}};
  gp_squad *s = context;
  size_t at = json->at;
  GP_GROW(s->answer, s->answers, s->answer_room);
  s->answer[s->answers] = (answer){0};
  GP_TRY(gp_json_object(json, fields, 2, s));
  if (!s->answer[s->answers].text) return missing(at, "an answer without text");
  s->answers++;
  return s->answers > INT32_MAX ? missing(at, "too many answers") : GP_OK;
}

/* ---- questions ----------------------------------------------------------------------------- */

static gp_status read_id(gp_json *json, void *context) {
  gp_squad *s = context;
  return read_text(json, s, &s->question[s->questions].id);
}

static gp_status read_question_text(gp_json *json, void *context) {
  gp_squad *s = context;
  return read_text(json, s, &s->question[s->questions].text);
}

static gp_status read_impossible(gp_json *json, void *context) {
  gp_squad *s = context;
  bool impossible;
  GP_TRY(gp_json_bool(json, &impossible));
  s->question[s->questions].impossible = impossible;
  return GP_OK;
}

static gp_status read_answers(gp_json *json, void *context) {
  return gp_json_array(json, read_answer, context);
}

static gp_status read_question(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"id", read_id},
                                         {"question", read_question_text},
                                         {"is_impossible", read_impossible},
                                         {"answers", read_answers}};
  gp_squad *s = context;
  size_t at = json->at;
  GP_GROW(s->question, s->questions, s->question_room);
  s->question[s->questions] = (question){.paragraph = (uint32_t)s->paragraphs,
                                         .first_answer = (uint32_t)s->answers & 0x7fffffff};
  GP_TRY(gp_json_object(json, fields, 4, s));
  if (!s->question[s->questions].text) return missing(at, "a question without its text");
  s->questions++;
  return GP_OK;
}

/* ---- paragraphs ---------------------------------------------------------------------------- */

static gp_status read_context(gp_json *json, void *context) {
  gp_squad *s = context;
  return read_text(json, s, &s->paragraph[s->paragraphs].context);
}

static gp_status read_questions(gp_json *json, void *context) {
  return gp_json_array(json, read_question, context);
}

static gp_status read_paragraph(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"context", read_context}, {"qas", read_questions}};
  gp_squad *s = context;
  size_t at = json->at, first = s->answers;
  GP_GROW(s->paragraph, s->paragraphs, s->paragraph_room);
  s->paragraph[s->paragraphs] = (paragraph){.title = s->title};
  GP_TRY(gp_json_object(json, fields, 2, s));
  if (!s->paragraph[s->paragraphs].context) return missing(at, "a paragraph without context");
  size_t length = strlen(s->text + s->paragraph[s->paragraphs].context);
  for (size_t i = first; i < s->answers; i++)
    if (s->answer[i].start > length)
      return missing(s->answer[i].text, "answer_start is beyond the context");
  s->paragraphs++;
  return GP_OK;
}

/* Read the title, which may come after the paragraphs. */
static gp_status read_title(gp_json *json, void *context) {
  gp_squad *s = context;
  return read_text(json, s, &s->title);
}

static gp_status read_paragraphs(gp_json *json, void *context) {
  return gp_json_array(json, read_paragraph, context);
}

static gp_status read_article(gp_json *json, void *context) {
  static const gp_json_field fields[] = {{"title", read_title}, {"paragraphs", read_paragraphs}};
  gp_squad *s = context;
  size_t first = s->paragraphs;
  s->title = 0;
  GP_TRY(gp_json_object(json, fields, 2, s));
  for (size_t i = first; i < s->paragraphs; i++) s->paragraph[i].title = s->title;
  return GP_OK;
}

static gp_status read_data(gp_json *json, void *context) {
  ((gp_squad *)context)->data = true;
  return gp_json_array(json, read_article, context);
}

/* ---- the file ------------------------------------------------------------------------------ */

static gp_status check(const gp_squad *s, size_t size) {
  const char *name = size && s->text[0] != '{' ? gp_foreign_name(s->text, size) : NULL;
  if (name) return gp_fail(GP_EFORMAT, "byte 0: it is %s, expected SQuAD's JSON", name);
  if (size >= UINT32_MAX)
    return gp_fail(GP_EFORMAT, "it has %zu bytes, expected fewer than 4 GiB", size);
  size_t good = gp_utf8_prefix(s->text, size);
  return good == size ? GP_OK : gp_fail(GP_EFORMAT, "byte %zu: no UTF-8, expected JSON", good);
}

static gp_status read_file(gp_squad *s) {
  static const gp_json_field fields[] = {{"data", read_data}};
  size_t size = (size_t)gp_tensor_numel(s->file);
  gp_json json = {.text = gp_tensor_data(s->file), .size = size};
  s->text = json.text;
  GP_TRY(check(s, size));
  GP_TRY(gp_json_object(&json, fields, 1, s));
  GP_TRY(gp_json_end(&json));
  if (!s->data) return missing(0, "there is no \"data\", expected SQuAD's JSON");
  GP_GROW(s->question, s->questions, s->question_room);
  s->question[s->questions] = (question){.first_answer = (uint32_t)s->answers & 0x7fffffff};
  return GP_OK;
}

gp_status gp_squad_load(const char *path, gp_squad **squad) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **squad, &memory));
  gp_squad *s = memory;
  gp_status status = gp_file_map(path, &s->file);
  if (!status) {
    status = read_file(s);
    if (status) gp_fail_prefix(status, path);
  }
  if (status) {
    gp_squad_free(s);
    return status;
  }
  *squad = s;
  return GP_OK;
}

void gp_squad_free(gp_squad *s) {
  if (!s) return;
  gp_tensor_free(s->file);
  gp_free(s->paragraph);
  gp_free(s->question);
  gp_free(s->answer);
  gp_free(s);
}

size_t gp_squad_contexts(const gp_squad *s) { return s->paragraphs; }
size_t gp_squad_questions(const gp_squad *s) { return s->questions; }

static const char *text_at(const gp_squad *s, uint32_t at) { return at ? s->text + at : ""; }

const char *gp_squad_context(const gp_squad *s, size_t i) {
  return text_at(s, s->paragraph[i].context);
}

void gp_squad_question_at(const gp_squad *s, size_t i, gp_squad_question *to) {
  const question *q = &s->question[i];
  const paragraph *p = &s->paragraph[q->paragraph];
  *to = (gp_squad_question){.id = text_at(s, q->id),
                            .title = text_at(s, p->title),
                            .context = text_at(s, p->context),
                            .question = text_at(s, q->text),
                            .impossible = q->impossible,
                            .answers = (size_t)(q[1].first_answer - q->first_answer)};
}

const char *gp_squad_answer(const gp_squad *s, size_t i, size_t k, int64_t *start) {
  const answer *a = &s->answer[s->question[i].first_answer + k];
  *start = a->start;
  return text_at(s, a->text);
}
