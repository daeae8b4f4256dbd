/* io/text/json_walk.c - a JSON text as a sequence of events, for callers that build their own
 * values. It allocates nothing; GP_JSON_DEPTH limits the depth. */
#include "gpipe/data.h"
#include "io/text/json.h"

static gp_status walk_number(gp_json *json, gp_json_see see, void *context) {
  const char *text;
  size_t length;
  bool whole;
  GP_TRY(gp_json_number(json, &text, &length, &whole));
  return see(context, GP_JSON_NUMBER, text, length);
}

static gp_status walk_scalar(gp_json *json, gp_json_see see, void *context) {
  char first = gp_json_peek(json);
  if (first == '"') {
    const char *text;
    GP_TRY(gp_json_string(json, &text));
    return see(context, GP_JSON_STRING, text, 0);
  }
  if (gp_json_word(json, "true")) return see(context, GP_JSON_TRUE, NULL, 0);
  if (gp_json_word(json, "false")) return see(context, GP_JSON_FALSE, NULL, 0);
  if (gp_json_word(json, "null")) return see(context, GP_JSON_NULL, NULL, 0);
  return walk_number(json, see, context);
}

/* Begin a container; *depth counts those that are open. */
static gp_status walk_open(gp_json *json, char *close, int *depth, gp_json_see see, void *context) {
  char open = gp_json_peek(json);
  if (*depth == GP_JSON_DEPTH)
    return gp_fail(GP_EFORMAT, "JSON byte %zu: values lie deeper than %d levels", json->at,
                   GP_JSON_DEPTH);
  close[(*depth)++] = open == '{' ? '}' : ']';
  GP_TRY(gp_json_expect(json, open));
  return see(context, open == '{' ? GP_JSON_OBJECT : GP_JSON_ARRAY, NULL, 0);
}

gp_status gp_json_walk(char *text, size_t bytes, gp_json_see see, void *context) {
  gp_json json = {.text = text, .size = bytes};
  char close[GP_JSON_DEPTH];
  int depth = 0;
  bool first = true;
  do {
    bool more = true;
    if (depth) GP_TRY(gp_json_more(&json, first, close[depth - 1], &more));
    first = false;
    if (!more) {
      depth--;
      GP_TRY(see(context, GP_JSON_CLOSE, NULL, 0));
      continue;
    }
    if (depth && close[depth - 1] == '}') {
      const char *key;
      GP_TRY(gp_json_key(&json, &key));
      GP_TRY(see(context, GP_JSON_KEY, key, 0));
    }
    char open = gp_json_peek(&json);
    first = open == '{' || open == '[';
    GP_TRY(first ? walk_open(&json, close, &depth, see, context)
                 : walk_scalar(&json, see, context));
  } while (depth);
  return gp_json_end(&json);
}
