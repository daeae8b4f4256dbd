/* bindings/sweep/heartbeat.c - a thread that runs one SQL statement every few seconds.
 *
 * A trial may compute for hours without a call into the sweep, and processes on other machines see
 * nothing of this one except the file. So a thread with its own connection writes there that the
 * process is alive. A failed beat is not reported: the next one tries again. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <sqlite3.h>

#include "binding.h"

#define HEARTBEAT "gpipe.Heartbeat"

enum { BUSY_MILLISECONDS = 5000 };

typedef struct heartbeat {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  bool started, stop; /* stop: under the mutex */
  double seconds;
  sqlite3 *db;
  sqlite3_stmt *statement;
} heartbeat;

static struct timespec in(double seconds) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  double nanoseconds = (double)at.tv_nsec + seconds * 1e9;
  at.tv_sec += (time_t)(nanoseconds / 1e9);
  at.tv_nsec = (long)(nanoseconds - 1e9 * (double)(time_t)(nanoseconds / 1e9));
  return at;
}

static void *beat(void *context) {
  heartbeat *h = context;
  pthread_mutex_lock(&h->mutex);
  while (!h->stop) {
    struct timespec at = in(h->seconds);
    pthread_cond_timedwait(&h->wake, &h->mutex, &at);
    if (h->stop) break;
    pthread_mutex_unlock(&h->mutex);
    sqlite3_step(h->statement);
    sqlite3_reset(h->statement);
    pthread_mutex_lock(&h->mutex);
  }
  pthread_mutex_unlock(&h->mutex);
  return NULL;
}

/* End the thread and close its connection. */
static int heartbeat_clear(lua_State *L) {
  heartbeat *h = luaL_checkudata(L, 1, HEARTBEAT);
  if (h->started) {
    pthread_mutex_lock(&h->mutex);
    h->stop = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
    h->started = false;
  }
  sqlite3_finalize(h->statement);
  sqlite3_close(h->db);
  h->statement = NULL;
  h->db = NULL;
  return 0;
}

/* core.heartbeat(path, sql, seconds) -> an object that beats until it is closed | nil, message,
 * code */
static int heartbeat_start(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "heartbeat: the path");
  const char *sql = gp_lua_check_string(L, 2, "heartbeat: the statement");
  double seconds = gp_lua_check_number(L, 3, "heartbeat: the seconds");
  heartbeat *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (heartbeat){
      .seconds = seconds, .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
  luaL_setmetatable(L, HEARTBEAT);
  int result = sqlite3_open_v2(path, &h->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (result == SQLITE_OK) result = sqlite3_prepare_v2(h->db, sql, -1, &h->statement, NULL);
  if (result == SQLITE_OK) sqlite3_busy_timeout(h->db, BUSY_MILLISECONDS);
  if (result == SQLITE_OK && pthread_create(&h->thread, NULL, beat, h) == 0) {
    h->started = true;
    return 1;
  }
  lua_pushnil(L);
  lua_pushfstring(L, "%s: no heartbeat: %s", path, result ? sqlite3_errmsg(h->db) : "no thread");
  lua_pushliteral(L, "io");
  return 3;
}

static const luaL_Reg methods[] = {{"close", heartbeat_clear}, {NULL, NULL}};

static const luaL_Reg functions[] = {{"heartbeat", heartbeat_start}, {NULL, NULL}};

int gp_open_heartbeat(lua_State *L) {
  gp_lua_push_type(L, HEARTBEAT, heartbeat_clear);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
