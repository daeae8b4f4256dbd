/* bindings/cli/terminal.c - module "gpipe.terminal": reads lines and runs them, for
 * gpipe/shell/repl.lua.
 *
 * Line editing comes from libedit if the machine has it; it is opened at run time, so that the
 * program does not depend on it. libedit decodes typed text by its thread's locale, which is "C" in
 * a Lua program, so it gets a separate locale and the script's stays unchanged. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h> /* mkdir */
#include <unistd.h>

#include <lauxlib.h>

#include "cli.h"
#include "embed.h"
#include "interrupt.h"

/* The part of libedit's readline interface that we use. It lies in the userdata that is upvalue 1
 * of every function here; its finalizer frees the locale. All fields are NULL without libedit. */
typedef struct line_editor {
  char *(*readline)(const char *prompt); /* receives a malloc'ed line */
  int (*add_history)(const char *line);
  char **(**complete)(const char *text, int start, int end); /* rl_attempted_completion_function */
  int *complete_over;    /* when set, libedit adds no file names of its own */
  int *append_character; /* the character after a completed word */
  const char **breaks;   /* the characters that end a word */
  char **line;           /* the text typed so far */
  int *point;            /* bytes of line before the cursor */
  locale_t locale;       /* for typed text; 0 if the machine has no UTF-8 locale */
} line_editor;

static line_editor *get_editor(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* dlsym returns a void pointer; ISO C cannot convert that to a function, POSIX says memory can. */
static void find_function(void *library, const char *name, void *function) {
  *(void **)function = dlsym(library, name);
}

/* The terminal's locale from the environment; UTF-8 if the environment has none, as in
 * containers. */
static locale_t locale_of_terminal(void) {
  locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  if (locale && strcmp(nl_langinfo_l(CODESET, locale), "ANSI_X3.4-1968") != 0) return locale;
  if (locale) freelocale(locale);
  return newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static void open_editor(line_editor *editor) {
  void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  find_function(library, "readline", &editor->readline);
  find_function(library, "add_history", &editor->add_history);
  find_function(library, "rl_attempted_completion_function", &editor->complete);
  find_function(library, "rl_attempted_completion_over", &editor->complete_over);
  find_function(library, "rl_completion_append_character", &editor->append_character);
  find_function(library, "rl_basic_word_break_characters", &editor->breaks);
  find_function(library, "rl_line_buffer", &editor->line);
  find_function(library, "rl_point", &editor->point);
  editor->locale = locale_of_terminal();
}

/* __gc: clear the locale, because another finalizer may still call a function later. */
static int close_editor(lua_State *L) {
  line_editor *editor = lua_touserdata(L, 1);
  if (editor->locale) freelocale(editor->locale);
  editor->locale = (locale_t)0;
  return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Read a line without editing: malloc'ed, without its end, or NULL. */
static char *read_plain(const char *prompt) {
  fputs(prompt, stdout);
  fflush(stdout);
  char *line = NULL;
  size_t size = 0;
  ssize_t length = getline(&line, &size, stdin);
  if (length < 0) {
    free(line);
    clearerr(stdin); /* an interrupted read is not the end of the file */
    return NULL;
  }
  if (length > 0 && line[length - 1] == '\n') line[length - 1] = 0;
  return line;
}

/* Surround every call of libedit with this and leave_locale: the thread gets the terminal's locale,
 * and then its own one back. */
static locale_t enter_locale(const line_editor *editor) {
  return editor->locale ? uselocale(editor->locale) : (locale_t)0;
}

static void leave_locale(locale_t before) {
  if (before) uselocale(before);
}

/* The Lua state that is reading, because libedit's callbacks have no argument. */
static _Thread_local lua_State *reading;

/* Convert the list on top of the stack to what libedit frees; NULL if it is no list or memory is
 * short. */
static char **to_matches(lua_State *L) {
  lua_Unsigned count = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
  char **matches = count > 0 ? calloc((size_t)count + 1, sizeof *matches) : NULL;
  for (lua_Unsigned i = 0; matches && i < count; i++) {
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    matches[i] = strdup(text);
    lua_pop(L, 1);
    if (!matches[i]) break;
  }
  return matches;
}

/* The completions of a word for Tab, from argument 2 of read_line. */
static char **complete_word(const char *text, int start, int end) {
  (void)start, (void)end;
  lua_State *L = reading;
  const line_editor *editor = get_editor(L);
  *editor->complete_over = 1;
  int top = lua_gettop(L);
  lua_pushvalue(L, 2);
  lua_pushlstring(L, *editor->line, (size_t)*editor->point);
  lua_pushstring(L, text);
  char **matches = lua_pcall(L, 2, 1, 0) == LUA_OK ? to_matches(L) : NULL;
  lua_settop(L, top);
  return matches;
}

static void prepare_completion(lua_State *L, line_editor *editor) {
  if (!editor->complete || !editor->complete_over || !editor->append_character || !editor->breaks ||
      !editor->line || !editor->point || !lua_isfunction(L, 2))
    return;
  *editor->complete = complete_word;
  *editor->append_character = 0;
  *editor->breaks = " \t\n\"\\'`~!@#$%^&*()-+=[]{}|;:<>,.?/";
  reading = L;
}

/* Read a line with editing: malloc'ed, or NULL. */
static char *read_edited(lua_State *L, line_editor *editor, const char *prompt) {
  locale_t before = enter_locale(editor);
  prepare_completion(L, editor);
  char *line = editor->readline(prompt);
  leave_locale(before);
  return line;
}

/* terminal.read(prompt, complete) -> line | nil at the end | false after Ctrl-C. Tab asks
 * complete(line up to the cursor, its last word) -> {common beginning, candidates ...} | nil. */
static int read_line(lua_State *L) {
  const char *prompt = luaL_checkstring(L, 1);
  line_editor *editor = get_editor(L);
  bool edit = editor->readline && isatty(STDIN_FILENO);
  gp_lua_interrupt_reset(L);
  char *line = edit ? read_edited(L, editor, prompt) : read_plain(prompt);
  if (gp_lua_interrupt_waiting()) {
    free(line);
    gp_lua_interrupt_reset(L);
    if (isatty(STDIN_FILENO)) puts(""); /* so that the next prompt begins a line */
    lua_pushboolean(L, 0);
    return 1;
  }
  lua_pushstring(L, line); /* NULL becomes nil */
  free(line);
  return 1;
}

/* terminal.remember(text): add a line to the history. */
static int remember(lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  line_editor *editor = get_editor(L);
  if (!editor->add_history || !isatty(STDIN_FILENO)) return 0;
  locale_t before = enter_locale(editor); /* the first call decides which keys insert themselves */
  editor->add_history(text);
  leave_locale(before);
  return 0;
}

/* ---- the history's file --------------------------------------------------------------------- */

/* Push true, or nil and the system's reason. */
static int push_outcome(lua_State *L, bool good) {
  if (good) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, strerror(errno));
  return 2;
}

/* terminal.make_folder(path) -> true | nil, why not; makes an absolute path and its missing
 * parents */
static int make_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
    lua_pushlstring(L, path, (size_t)(slash - path));
    if (slash > path) mkdir(lua_tostring(L, -1), S_IRWXU); /* only the last one's result counts */
    lua_pop(L, 1);
  }
  return push_outcome(L, mkdir(path, S_IRWXU) == 0 || errno == EEXIST);
}

/* terminal.list(path) -> names in a folder; folders end with a "/" */
static int list_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  lua_newtable(L);
  DIR *folder = opendir(path);
  if (!folder) return 1;
  lua_Integer count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    struct stat about;
    if (entry->d_name[0] == '.') continue;
    bool is_folder =
        fstatat(dirfd(folder), entry->d_name, &about, 0) == 0 && S_ISDIR(about.st_mode);
    lua_pushfstring(L, "%s%s", entry->d_name, is_folder ? "/" : "");
    lua_rawseti(L, 2, ++count);
  }
  closedir(folder);
  return 1;
}

/* terminal.append(path, text) -> true | nil, why not; a new file is readable by its owner only */
static int append(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return push_outcome(L, false);
  ssize_t written = write(file, text, length);
  bool closed = close(file) == 0;
  return push_outcome(L, closed && written == (ssize_t)length);
}

/* ---- running -------------------------------------------------------------------------------- */

/* The debug hook that typed code has set, kept away while the prompt's own code runs: a hook that
 * raises would end the prompt. */
static struct {
  lua_Hook hook;
  int mask, count;
} held;

static void hold_hook(lua_State *L) {
  if (gp_lua_interrupt_waiting()) return; /* the hook is Ctrl-C's */
  held.hook = lua_gethook(L), held.mask = lua_gethookmask(L), held.count = lua_gethookcount(L);
  lua_sethook(L, NULL, 0, 0);
}

static void give_hook(lua_State *L) {
  if (held.hook && !lua_gethook(L)) lua_sethook(L, held.hook, held.mask, held.count);
  held.hook = NULL;
}

/* terminal.call(f, ...) -> true, results ... | false, text with traceback */
static int call(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  give_hook(L);
  int status = gp_run_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  hold_hook(L);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  return lua_gettop(L);
}

/* terminal.deaf(f, ...) -> results of f; Ctrl-C does nothing meanwhile */
static int deaf(lua_State *L) {
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  sigaction(SIGINT, &ignore, &before);
  gp_lua_interrupt_reset(L);
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  sigaction(SIGINT, &before, NULL);
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* terminal.interactive() -> is a person typing? */
static int interactive(lua_State *L) {
  lua_pushboolean(L, isatty(STDIN_FILENO));
  return 1;
}

/* terminal.complain(text): print a message on stderr, after all earlier output. */
static int complain(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  fflush(stdout);
  fwrite(text, 1, length, stderr);
  fputc('\n', stderr);
  return 0;
}

/* terminal.source(chunk) -> text | nil: an embedded module by the chunk name of its functions */
static int source(lua_State *L) {
  const char *chunk = luaL_checkstring(L, 1);
  for (const gp_lua_source *s = gp_lua_sources; s->module; s++)
    if (strcmp(s->chunk, chunk) == 0) {
      lua_pushlstring(L, (const char *)s->text, *s->size);
      return 1;
    }
  lua_pushnil(L);
  return 1;
}

/* terminal.chunks() -> the names that source() takes */
static int chunks(lua_State *L) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (const gp_lua_source *s = gp_lua_sources; s->module; s++) {
    lua_pushstring(L, s->chunk);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

static int open_terminal(lua_State *L) {
  static const luaL_Reg functions[] = {{"read", read_line},
                                       {"remember", remember},
                                       {"call", call},
                                       {"deaf", deaf},
                                       {"interactive", interactive},
                                       {"append", append},
                                       {"make_folder", make_folder},
                                       {"complain", complain},
                                       {"source", source},
                                       {"list", list_folder},
                                       {"chunks", chunks},
                                       {NULL, NULL}};
  luaL_newlibtable(L, functions);
  line_editor *editor = lua_newuserdatauv(L, sizeof *editor, 0);
  *editor = (line_editor){0};
  lua_createtable(L, 0, 1); /* not registered under a name, so that no other code makes an editor */
  lua_pushcfunction(L, close_editor);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
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
