/* ranks/script.h - what the scripts of the ranks do: this one's, and those that it waits for.
 *
 * A rank whose script hangs is alive: its heartbeats come, and a call of all ranks could wait for
 * ever. So ranks that have waited too long ask the others where their scripts are (absent.c), and
 * each can say that of its own (script.c). All functions are called with the net's lock. */
#ifndef GP_RANKS_SCRIPT_H
#define GP_RANKS_SCRIPT_H

#include "ranks/ranks.h"

typedef struct gp_net gp_net;

enum { GP_RANK_TEXT = 400, GP_RANK_WORDS = 200 };

/* What the thread of a rank's script does; the numbers travel. */
typedef enum gp_rank_doing {
  GP_RANK_SCRIPTS, /* it runs the script */
  GP_RANK_WORKS,   /* it is in a call of all ranks, and does its part of it */
  GP_RANK_WAITS    /* it waits for others, or watches the run of its devices */
} gp_rank_doing;

/* The port of a heartbeat that answers a question. */
enum { GP_RANK_ANSWER = 1 };

/* What another rank's last heartbeat has said of its script. */
typedef struct gp_rank_news {
  gp_rank_doing doing;
  int64_t answered; /* when its last answer came; gp_now_ns */
} gp_rank_news;

/* What this rank knows of its own script. */
typedef struct gp_rank_own_script {
  const gp_rank_script *hooks; /* NULL: the script's thread cannot be reached */
  gp_rank_place last;          /* the call before; last.name is "": none */
  int64_t last_end;            /* of it; gp_now_ns */
  int64_t asked;               /* when another rank has asked, until it is answered; 0: none has */
  char line[GP_RANKS_WHERE];   /* where it was since then; "": not known */
  int64_t given_up;            /* when another rank has given this one up; 0: never */
  char why[GP_RANK_TEXT];
  bool was_stopped;
  _Atomic uint32_t goes_on; /* the job can, from a checkpoint */
  _Atomic uint32_t hung;    /* the watchdog has given up the last run */
} gp_rank_own_script;

/* How this rank waits for others. */
typedef struct gp_rank_absentees {
  int64_t limit_ns; /* for which a script may stay away; 0: for ever */
  int64_t asked;    /* when the others were asked where they are; 0: not yet */
} gp_rank_absentees;

/* ---- absent.c ------------------------------------------------------------------------------- */

/* Does the script of another rank stay away from the call with this number, for which this rank
 * has waited for so long? overdue: a rank that is in another call, and works, is absent too. */
gp_rank_absence gp_net_find_absent(gp_net *net, uint32_t number, const char *what, int64_t waited,
                                   bool overdue);

/* ---- script.c ------------------------------------------------------------------------------- */

gp_rank_doing gp_net_doing(const gp_net *net);
/* Say what this rank does, for its heartbeats. */
void gp_net_write_words(gp_net *net, char words[GP_RANK_WORDS], int64_t now);
/* Another rank asks where the script is; is the answer ready? */
void gp_net_ask_script(gp_net *net);
bool gp_net_has_answer(const gp_net *net, int64_t now);
/* Another rank has given this one up: stop the script, and end the process if that does not
 * help. */
void gp_net_note_given_up(gp_net *net, const char *why);
void gp_net_end_script(gp_net *net, int64_t now);

#endif
