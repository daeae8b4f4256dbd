/* bindings/load.c - loads Lua sources from files: text only.
 *
 * Lua's own loader also accepts precompiled chunks, which it trusts: one flipped bit in such a file
 * can crash the process. Like luaL_loadfile, this skips a byte-order mark and a first line that
 * begins with #, and reads standard input if there is no name. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

typedef struct source {
  FILE *file;
  size_t ready; /* bytes of buffer for the next read to return */
  char buffer[4096];
} source;

/* Return the bytes that were read while the beginning was skipped, then the rest of the file. */
static const char *read_source(lua_State *L, void *context, size_t *size) {
  source *s = context;
  (void)L;
  *size = s->ready ? s->ready : fread(s->buffer, 1, sizeof s->buffer, s->file);
  s->ready = 0;
  return *size ? s->buffer : NULL;
}

/* Skip the byte-order mark; returns the first character after it. An incomplete mark is returned as
 * text. */
static int skip_mark(source *s) {
  static const unsigned char mark[] = {0xEF, 0xBB, 0xBF};
  for (size_t i = 0; i < sizeof mark; i++) {
    int c = getc(s->file);
    if (c != mark[i]) return c;
    s->buffer[s->ready++] = (char)c;
  }
  s->ready = 0;
  return getc(s->file);
}

/* Skip a first line that begins with #, which is for the system; its end stays, so that line
 * numbers are right. Returns the first character of the source. */
static int skip_first_line(source *s, int c) {
  if (c != '#') return c;
  while (c != EOF && c != '\n') c = getc(s->file);
  if (c == '\n') s->buffer[s->ready++] = '\n';
  return getc(s->file);
}

/* Push "cannot open NAME: why"; a chunk's name begins with a character for its kind. */
static int refuse(lua_State *L, const char *what, const char *chunk) {
  lua_pushfstring(L, "cannot %s %s: %s", what, chunk + 1, strerror(errno));
  return LUA_ERRFILE;
}

static int refuse_precompiled(lua_State *L, const char *chunk) {
  size_t length = strlen(chunk);
  bool luac = length > 5 && strcmp(chunk + length - 5, ".luac") == 0;
  lua_pushlstring(L, chunk + 1, length - 1 - luac);
  lua_pushfstring(L,
                  "cannot run %s: it is precompiled, and such code cannot be checked; run its "
                  "source instead%s%s",
                  chunk + 1, luac ? ": " : "", luac ? lua_tostring(L, -1) : "");
  lua_remove(L, -2);
  return LUA_ERRSYNTAX;
}

static int load_source(lua_State *L, source *s, const char *chunk) {
  int c = skip_first_line(s, skip_mark(s));
  if (c == LUA_SIGNATURE[0]) return refuse_precompiled(L, chunk);
  if (c != EOF) s->buffer[s->ready++] = (char)c;
  int status = lua_load(L, read_source, s, chunk, "t");
  if (!ferror(s->file)) return status;
  lua_pop(L, 1);
  return refuse(L, "read", chunk);
}

int gp_load_file(lua_State *L, const char *name) {
  const char *chunk = name ? lua_pushfstring(L, "@%s", name) : lua_pushliteral(L, "=stdin");
  errno = 0;
  source s = {.file = name ? fopen(name, "rb") : stdin};
  int status = s.file ? load_source(L, &s, chunk) : refuse(L, "open", chunk);
  if (s.file && name) fclose(s.file);
  lua_remove(L, -2);
  return status;
}

int gp_load_text(lua_State *L, const char *text, const char *chunk) {
  if (text[0] == LUA_SIGNATURE[0]) return refuse_precompiled(L, chunk);
  return luaL_loadbufferx(L, text, strlen(text), chunk, "t");
}

/* Return the chunk on top and its file's name, as a searcher does. */
int gp_load_module(lua_State *L, const char *module, const char *file) {
  if (gp_load_file(L, file) != LUA_OK)
    return luaL_error(L, "error loading module '%s' from file '%s':\n\t%s", module, file,
                      lua_tostring(L, -1));
  lua_pushstring(L, file);
  return 2;
}
