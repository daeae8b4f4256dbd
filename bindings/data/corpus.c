/* bindings/data/corpus.c - files of text: checks, packs of ids, SQuAD, JSONL. Positions count from
 * 1. */
#include "binding.h"

#define PACK  "gpipe.Pack"
#define SQUAD "gpipe.Squad"
#define JSONL "gpipe.Jsonl"

enum { FIELDS_MOST = 16 };

typedef struct corpus_box {
  void *object; /* NULL: not made, or closed */
} corpus_box;

static int pack_clear(lua_State *L) {
  corpus_box *box = luaL_checkudata(L, 1, PACK);
  gp_corpus_free(box->object);
  box->object = NULL;
  return 0;
}

static int squad_clear(lua_State *L) {
  corpus_box *box = luaL_checkudata(L, 1, SQUAD);
  gp_squad_free(box->object);
  box->object = NULL;
  return 0;
}

static int jsonl_clear(lua_State *L) {
  corpus_box *box = luaL_checkudata(L, 1, JSONL);
  gp_jsonl_free(box->object);
  box->object = NULL;
  return 0;
}

static corpus_box *push_box(lua_State *L, const char *type) {
  corpus_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (corpus_box){0};
  luaL_setmetatable(L, type);
  return box;
}

static void *check_object(lua_State *L, const char *type) {
  corpus_box *box = luaL_checkudata(L, 1, type);
  if (!box->object) gp_lua_error(L, "%s: it was not opened", type);
  return box->object;
}

/* ---- checks -------------------------------------------------------------------------------- */

/* core.corpus_check(path, bytes, width) -> true | nil, message, code; checks text (width 1) or
 * ids */
static int corpus_check(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "check: the path");
  int64_t width = gp_lua_check_int(L, 3, "check: width", 1, 4);
  gp_tensor *bytes = gp_lua_check_host_tensor(L, 2, "check: the bytes");
  gp_status status =
      width == 1 ? gp_text_check(path, bytes) : gp_tokens_check(path, bytes, (int)width);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

/* ---- packs --------------------------------------------------------------------------------- */

/* core.pack_new(tokenizer) -> pack, bytes per id */
static int pack_new(lua_State *L) {
  gp_tokenizer *tokenizer = gp_lua_check_tokenizer(L, 1);
  corpus_box *box = push_box(L, PACK);
  gp_corpus *pack = NULL;
  gp_status status = gp_corpus_new(tokenizer, &pack);
  if (status != GP_OK) return gp_lua_fail(L, status);
  box->object = pack;
  lua_pushinteger(L, gp_corpus_width(pack));
  return 2;
}

/* core.pack_text(pack, text or u8 tensor, specials_as_text): append a text's ids, without bounds */
static int pack_text(lua_State *L) {
  gp_encode_options options = {.specials_as_text = lua_toboolean(L, 3), .no_bounds = true};
  gp_corpus *pack = check_object(L, PACK);
  size_t size;
  const char *text;
  if (lua_type(L, 2) == LUA_TSTRING) {
    text = lua_tolstring(L, 2, &size);
  } else {
    gp_tensor *bytes = gp_lua_check_host_tensor(L, 2, "pack: the text");
    if (gp_tensor_meta(bytes)->dtype != GP_U8) gp_lua_bad_value(L, 2, "pack: the text", "u8");
    text = gp_tensor_data(bytes);
    size = (size_t)gp_tensor_numel(bytes);
  }
  gp_status status = gp_corpus_text(pack, text, size, &options);
  return status == GP_OK ? 0 : gp_lua_fail(L, status);
}

/* core.pack_id(pack, id) */
static int pack_id(lua_State *L) {
  gp_status status = gp_corpus_id(check_object(L, PACK), luaL_checkinteger(L, 2));
  return status == GP_OK ? 0 : gp_lua_fail(L, status);
}

/* core.pack_take(pack) -> u8 tensor */
static int pack_take(lua_State *L) {
  gp_corpus *pack = check_object(L, PACK);
  gp_status status = gp_corpus_take(pack, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* ---- SQuAD --------------------------------------------------------------------------------- */

/* core.squad_load(path) -> squad, contexts, questions | nil, message, code */
static int squad_load(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "squad: the path");
  corpus_box *box = push_box(L, SQUAD);
  gp_squad *squad = NULL;
  gp_status status = gp_squad_load(path, &squad);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  box->object = squad;
  lua_pushinteger(L, (lua_Integer)gp_squad_contexts(squad));
  lua_pushinteger(L, (lua_Integer)gp_squad_questions(squad));
  return 3;
}

/* core.squad_context(squad, i) -> text */
static int squad_context(lua_State *L) {
  gp_squad *squad = check_object(L, SQUAD);
  int64_t count = (int64_t)gp_squad_contexts(squad);
  lua_pushstring(
      L, gp_squad_context(squad, (size_t)gp_lua_check_position(L, 2, "squad: context", count)));
  return 1;
}

static void push_answers(lua_State *L, const gp_squad *squad, size_t i, size_t count) {
  lua_createtable(L, (int)count, 0);
  for (size_t k = 0; k < count; k++) {
    int64_t start;
    lua_createtable(L, 0, 2);
    lua_pushstring(L, gp_squad_answer(squad, i, k, &start));
    lua_setfield(L, -2, "text");
    lua_pushinteger(L, start + 1);
    lua_setfield(L, -2, "start");
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
}

/* core.squad_question(squad, i) -> {id, title, context, question, impossible, answers = {{text,
 * start}}} */
static int squad_question(lua_State *L) {
  gp_squad *squad = check_object(L, SQUAD);
  int64_t count = (int64_t)gp_squad_questions(squad);
  size_t i = (size_t)gp_lua_check_position(L, 2, "squad: question", count);
  gp_squad_question question;
  gp_squad_question_at(squad, i, &question);
  lua_createtable(L, 0, 6);
  const struct {
    const char *name, *text;
  } texts[] = {{"id", question.id},
               {"title", question.title},
               {"context", question.context},
               {"question", question.question}};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    lua_pushstring(L, texts[k].text);
    lua_setfield(L, -2, texts[k].name);
  }
  lua_pushboolean(L, question.impossible);
  lua_setfield(L, -2, "impossible");
  push_answers(L, squad, i, question.answers);
  lua_setfield(L, -2, "answers");
  return 1;
}

/* ---- JSONL --------------------------------------------------------------------------------- */

/* core.jsonl_load(path, {field, ...}) -> file, rows | nil, message, code */
static int jsonl_load(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "jsonl: the path"), *names[FIELDS_MOST];
  luaL_checktype(L, 2, LUA_TTABLE);
  size_t count = lua_rawlen(L, 2);
  if (count < 1 || count > FIELDS_MOST)
    gp_lua_error(L, "jsonl: %I fields, expected 1 to %d", (LUAI_UACINT)count, FIELDS_MOST);
  luaL_checkstack(L, FIELDS_MOST + 8, "too many fields");
  for (size_t i = 0; i < count; i++) { /* the stack keeps them alive */
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    names[i] = gp_lua_check_string(L, lua_gettop(L), "jsonl: a field");
  }
  corpus_box *box = push_box(L, JSONL);
  gp_jsonl *file = NULL;
  gp_status status = gp_jsonl_load(path, names, count, &file);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  box->object = file;
  lua_pushinteger(L, (lua_Integer)gp_jsonl_rows(file));
  return 2;
}

/* Push a container for n values like this one: a list for texts, else a tensor [n] or [n,
 * count]. */
static void push_holder(lua_State *L, const gp_jsonl_value *value, gp_jsonl_kind kind, int64_t n) {
  if (kind == GP_JSONL_TEXT) {
    lua_createtable(L, (int)n, 0);
    return;
  }
  bool list = kind == GP_JSONL_LIST;
  gp_dtype dtype = kind == GP_JSONL_BOOL                                                 ? GP_BOOL
                   : kind == GP_JSONL_INTEGER || (kind == GP_JSONL_LIST && value->whole) ? GP_I64
                                                                                         : GP_F32;
  gp_shape shape = {.rank = list ? 2 : 1, .dim = {n, (int64_t)value->count}};
  gp_status status = gp_tensor_new(dtype, &shape, &gp_lua_new_box(L)->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
}

/* Store value i of n, counted from 0, in the container at `index`. */
static void store(lua_State *L, int index, const gp_jsonl_value *value, int64_t i) {
  if (value->kind == GP_JSONL_TEXT) {
    lua_pushstring(L, value->text);
    lua_rawseti(L, index, i + 1);
    return;
  }
  gp_tensor *tensor = gp_lua_to_box(L, index)->tensor;
  bool whole = gp_tensor_meta(tensor)->dtype != GP_F32;
  if (value->kind != GP_JSONL_LIST) {
    if (whole)
      gp_tensor_set_int(tensor, i, value->integer);
    else
      gp_tensor_set_double(tensor, i, value->number);
    return;
  }
  int64_t count = gp_tensor_meta(tensor)->shape.dim[1];
  if ((int64_t)value->count != count)
    gp_lua_error(L, "jsonl: lists of %I and %I numbers in one batch, expected one length",
                 (LUAI_UACINT)count, (LUAI_UACINT)value->count);
  for (int64_t k = 0; k < count; k++)
    if (whole)
      gp_tensor_set_int(tensor, i * count + k, (int64_t)value->list[k]);
    else
      gp_tensor_set_double(tensor, i * count + k, value->list[k]);
}

/* core.jsonl_read(file, {position, ...}, fields) -> for each field a tensor, or a list of texts */
static int jsonl_read(lua_State *L) {
  gp_jsonl *file = check_object(L, JSONL);
  int fields = (int)gp_lua_check_int(L, 3, "jsonl: fields", 1, FIELDS_MOST);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checkstack(L, FIELDS_MOST + 8, "too many fields");
  lua_settop(L, 3);
  int64_t n = (int64_t)lua_rawlen(L, 2), rows = (int64_t)gp_jsonl_rows(file);
  gp_jsonl_value values[FIELDS_MOST];
  for (int64_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    int64_t row = gp_lua_check_position(L, -1, "jsonl: row", rows);
    lua_pop(L, 1);
    gp_status status = gp_jsonl_read(file, (size_t)row, values);
    if (status != GP_OK) return gp_lua_fail(L, status);
    for (int k = 0; i == 0 && k < fields; k++)
      push_holder(L, &values[k], gp_jsonl_field_kind(file, (size_t)k), n);
    for (int k = 0; k < fields; k++) store(L, 4 + k, &values[k], i);
  }
  return lua_gettop(L) - 3;
}

static const luaL_Reg functions[] = {{"corpus_check", corpus_check},
                                     {"pack_new", pack_new},
                                     {"pack_text", pack_text},
                                     {"pack_id", pack_id},
                                     {"pack_take", pack_take},
                                     {"squad_load", squad_load},
                                     {"squad_context", squad_context},
                                     {"squad_question", squad_question},
                                     {"jsonl_load", jsonl_load},
                                     {"jsonl_read", jsonl_read},
                                     {NULL, NULL}};

int gp_open_corpus(lua_State *L) {
  gp_lua_push_type(L, PACK, pack_clear);
  gp_lua_push_type(L, SQUAD, squad_clear);
  gp_lua_push_type(L, JSONL, jsonl_clear);
  lua_pop(L, 3);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
