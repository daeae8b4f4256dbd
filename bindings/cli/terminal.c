/* bindings/cli/terminal.c - module "gpipe.terminal": reading lines and running them, for
 * gpipe/repl.lua.
 *
 * Line editing and history come from libedit when the machine has it; it is opened at run time, so
 * that the program does not need it. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>

#include "cli.h"
#include "interrupt.h"

/* The part of libedit's readline interface that is used; in the userdata that is upvalue 1 of every
 * function here. All NULL where there is no libedit. */
typedef struct line_editor {
  char *(*readline)(const char *prompt); /* receives a malloc'ed line */
  int (*add_history)(const char *line);
} line_editor;

static line_editor *get_editor(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* dlsym returns a void pointer; ISO C cannot convert that to a function, POSIX says memory can. */
static void find_function(void *library, const char *name, void *function) {
  *(void **)function = dlsym(library, name);
}

static void open_editor(line_editor *editor) {
  void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  find_function(library, "readline", &editor->readline);
  find_function(library, "add_history", &editor->add_history);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A malloc'ed line without its end, or NULL. */
static char *read_plain(const char *prompt) {
  fputs(prompt, stdout);
  fflush(stdout);
  char *line = NULL;
  size_t size = 0;
  ssize_t length = getline(&line, &size, stdin);
  if (length < 0) {
    free(line);
    clearerr(stdin); /* an interrupted read is no end of file */
    return NULL;
  }
  if (length > 0 && line[length - 1] == '\n') line[length - 1] = 0;
  return line;
}

/* terminal.read(prompt) -> line | nil at the end | false after Ctrl-C */
static int read_line(lua_State *L) {
  const char *prompt = luaL_checkstring(L, 1);
  line_editor *editor = get_editor(L);
  bool edit = editor->readline && isatty(STDIN_FILENO);
  gp_lua_interrupt_reset(L);
  char *line = edit ? editor->readline(prompt) : read_plain(prompt);
  if (gp_lua_interrupt_waiting()) {
    free(line);
    gp_lua_interrupt_reset(L);
    if (isatty(STDIN_FILENO)) puts(""); /* the next prompt starts a line */
    lua_pushboolean(L, 0);
    return 1;
  }
  lua_pushstring(L, line); /* NULL is nil */
  free(line);
  return 1;
}

/* terminal.remember(text): a line of the history. */
static int remember(lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  line_editor *editor = get_editor(L);
  if (editor->add_history && isatty(STDIN_FILENO)) editor->add_history(text);
  return 0;
}

/* ---- running -------------------------------------------------------------------------------- */

/* terminal.call(f, ...) -> true, results ... | false, text with traceback */
static int call(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  int status = gp_run_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  return lua_gettop(L);
}

/* terminal.interactive() -> is a person typing? */
static int interactive(lua_State *L) {
  lua_pushboolean(L, isatty(STDIN_FILENO));
  return 1;
}

/* terminal.complain(text): one message on stderr, after what was printed. */
static int complain(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  fflush(stdout);
  fwrite(text, 1, length, stderr);
  fputc('\n', stderr);
  return 0;
}

static int open_terminal(lua_State *L) {
  static const luaL_Reg functions[] = {{"read", read_line},    {"remember", remember},
                                       {"call", call},         {"interactive", interactive},
                                       {"complain", complain}, {NULL, NULL}};
  luaL_newlibtable(L, functions);
  line_editor *editor = lua_newuserdatauv(L, sizeof *editor, 0);
  *editor = (line_editor){0};
  open_editor(editor);
  luaL_setfuncs(L, functions, 1);
  return 1;
}

void gp_terminal_install(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, open_terminal);
  lua_setfield(L, -2, "gpipe.terminal");
  lua_pop(L, 1);
}
