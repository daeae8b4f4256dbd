/* ranks/script.c - see script.h: what the script of this rank does, while others wait for it.
 *
 * The thread of the messages knows which calls of all ranks the script has made. The line that it
 * runs just now only the program can find, on the script's thread (bindings/cli/whereabouts.c): it
 * is asked when another rank asks, and not before. */
#include "ranks/script.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "ranks/net.h"
#include "ranks/place.h"

/* A script that runs Lua code notes its line within microseconds; one that waits notes none. */
static const int64_t LINE_NS = 300000000;
/* How long a script that was given up may take to end, as in a job of `gpipe-lua --ranks`. */
static const int64_t END_NS = 5000000000;

void gp_ranks_set_script(const gp_rank_script *script) {
  gp_net *net = gp_net_place();
  pthread_mutex_lock(&net->lock);
  net->script.hooks = script;
  pthread_mutex_unlock(&net->lock);
}

/* ---- what it does ---------------------------------------------------------------------------- */

/* What the ports say of a run under way. */
static void ask_ports(const gp_net *net, char words[GP_RANK_WORDS]) {
  words[0] = '\0';
  for (size_t i = 0; i < net->port_count && !words[0]; i++)
    if (net->ports[i].words) net->ports[i].words(net->ports[i].context, words, GP_RANK_WORDS);
}

/* A call while a run is under way, such as a step of a stream, watches it. */
gp_rank_doing gp_net_doing(const gp_net *net) {
  char words[GP_RANK_WORDS];
  if (net->call) return GP_RANK_WAITS;
  if (!*net->place.name) return GP_RANK_SCRIPTS;
  if (*net->pass.place.what) return GP_RANK_WAITS;
  ask_ports(net, words);
  return words[0] ? GP_RANK_WAITS : GP_RANK_WORKS;
}

static const char *before(const char *position) { return *position ? " at " : ""; }

static int put(char words[GP_RANK_WORDS], int at, const char *name, const char *where) {
  return at +
         snprintf(words + at, (size_t)(GP_RANK_WORDS - at), "'%s'%s%s", name, before(where), where);
}

static void put_seconds(char words[GP_RANK_WORDS], int at, const char *format, int64_t ns) {
  if (at < GP_RANK_WORDS)
    snprintf(words + at, (size_t)(GP_RANK_WORDS - at), format, 1e-9 * (double)ns);
}

/* Say where the script itself is. Without an answer of its thread it may just have been asked. */
static void write_script(const gp_net *net, char words[GP_RANK_WORDS], int64_t now) {
  const gp_rank_own_script *s = &net->script;
  const bool silent = s->hooks && s->asked && now - s->asked >= LINE_NS;
  int at = snprintf(words, GP_RANK_WORDS, "in its script%s%s", before(s->line),
                    *s->line ? s->line
                    : silent ? ", which waits or is in a function of C"
                             : "");
  if (!*s->last.name) return;
  at += snprintf(words + at, (size_t)(GP_RANK_WORDS - at), "; its last call was ");
  at = put(words, at, s->last.name, s->last.where);
  put_seconds(words, at, ", %.1f s before", now - s->last_end);
}

/* A run that is under way comes before a call of all ranks. A stream is under way between steps,
 * too: where the script is, is what another rank has asked. */
void gp_net_write_words(gp_net *net, char words[GP_RANK_WORDS], int64_t now) {
  if (net->script.asked && gp_net_doing(net) == GP_RANK_SCRIPTS) {
    write_script(net, words, now);
    return;
  }
  ask_ports(net, words);
  if (words[0]) return;
  const char *name = net->call ? gp_rank_call_name(&net->place, net->call) : net->place.name;
  if (!*name) {
    write_script(net, words, now);
    return;
  }
  const int at = put(words, snprintf(words, GP_RANK_WORDS, "in "), name, net->place.where);
  if (net->call) put_seconds(words, at, " for %.1f s", now - net->call_begin);
}

/* ---- being asked ----------------------------------------------------------------------------- */

void gp_net_ask_script(gp_net *net) {
  gp_rank_own_script *s = &net->script;
  s->asked = gp_now_ns();
  s->line[0] = '\0';
  atomic_store(&net->asked, 1);
  if (s->hooks) s->hooks->locate();
}

void gp_ranks_note_line(const char *line) {
  gp_net *net = gp_net_get();
  if (!net) return;
  pthread_mutex_lock(&net->lock);
  snprintf(net->script.line, sizeof net->script.line, "%s", line);
  pthread_mutex_unlock(&net->lock);
  gp_net_wake(net);
}

bool gp_net_has_answer(const gp_net *net, int64_t now) {
  const gp_rank_own_script *s = &net->script;
  if (!s->asked) return false;
  return !s->hooks || *s->line || gp_net_doing(net) != GP_RANK_SCRIPTS || now - s->asked >= LINE_NS;
}

/* ---- being given up -------------------------------------------------------------------------- */

void gp_net_note_given_up(gp_net *net, const char *why) {
  gp_rank_own_script *s = &net->script;
  if (s->given_up) return;
  s->given_up = gp_now_ns();
  snprintf(s->why, sizeof s->why, "%s", why);
}

/* A script that is in a call of all ranks fails by itself, since the rank that has given it up
 * counts as gone. */
void gp_net_end_script(gp_net *net, int64_t now) {
  gp_rank_own_script *s = &net->script;
  if (!s->given_up || !s->hooks) return;
  if (!s->was_stopped && gp_net_doing(net) == GP_RANK_SCRIPTS) {
    s->was_stopped = true;
    s->hooks->stop(s->why);
  }
  if (now - s->given_up > END_NS) s->hooks->end(s->why);
}
