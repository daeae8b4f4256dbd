/* device/link/link.h - how the values of an edge come from the device that makes them to one that
 * reads them.
 *
 * There is one link for each (edge, making device, reading device); the kind is chosen when a plan
 * is bound.
 *
 * An edge has a fixed number of slots. Each slot goes through these calls, round after round:
 *
 *   maker    acquire   the slot is free: all last uses of the round before are over, or ordered
 *                      before this one
 *            publish   the value is in the slot, or will be when the maker's queue gets there
 *   reader   receive   the value is there for the reader's queue
 *            release   this was a last use: one call for each stage of the reader that uses it
 *
 * acquire and receive never wait. They begin what has to be begun and say whether the slot is
 * ready; the worker calls them again until it is, or until the run is given up. publish and release
 * do not wait either: what cannot be sent at once is sent in poll. So the worker can poll every
 * wait and give it up, whatever lies between the two ends. To add a kind, write a file with such a
 * table and add a row in link.c, or make a library (library.h).
 *
 * The links of an edge share the words by which readers learn of a value, except kinds that carry
 * words of their own. So the maker itself raises a word, after every link has published the value:
 * a reader that saw it earlier would wait for an event of the round before.
 *
 * Threads: acquire, publish and poll(GP_LINK_MAKER) run on the maker's worker, receive, release and
 * poll(GP_LINK_READER) on the reader's; both may run at once. open, begin and close run while
 * neither does. */
#ifndef GP_DEVICE_LINK_H
#define GP_DEVICE_LINK_H

#include <stdatomic.h>

#include "device/lane.h"

typedef struct gp_link gp_link;

typedef enum gp_link_end { GP_LINK_MAKER, GP_LINK_READER } gp_link_end;

/* One use of a slot; `round` counts its earlier uses. */
typedef struct gp_link_turn {
  int32_t slot;
  uint32_t round;
} gp_link_turn;

/* What one end of a link still waits for: nothing; credits from the other end; messages that it has
 * to send. */
typedef enum gp_link_left {
  GP_LINK_NOTHING_LEFT,
  GP_LINK_CREDITS_LEFT,
  GP_LINK_MESSAGES_LEFT
} gp_link_left;

typedef struct gp_link_ops {
  const char *name; /* "local" */
  /* each end has its own words: poll and receive bring the other end's news */
  bool carries_words;
  /* Does this kind join the two lanes? Kinds are asked in the order of the table in link.c; a
   * library is asked first, but never about two equal lanes. */
  bool (*joins)(const gp_lane *from, const gp_lane *to);
  /* Fill in link->self, and link->received if the reader's slots belong to the link. Errors: any;
   * the caller then calls close. */
  gp_status (*open)(gp_link *link);
  void (*close)(gp_link *link); /* also if open stopped half-way */
  /* A run begins: nothing is under way, and the link forgets what an earlier run left behind. */
  void (*begin)(gp_link *link);

  /* lane: the lane that will write the slot. With two copies of a stage that is not always
   * `from`. */
  gp_status (*acquire)(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready);
  gp_status (*publish)(gp_link *link, gp_link_turn turn);
  gp_status (*receive)(gp_link *link, gp_link_turn turn, bool *ready);
  gp_status (*release)(gp_link *link, gp_link_turn turn);

  /* Send and take in what waits at this end; left: what still waits. Workers call it while they
   * wait for anything, and at the end of a run until nothing is left. The forward half of a split
   * plan does not wait for credits, because its backward half returns some of them. NULL: nothing
   * ever waits. */
  gp_status (*poll)(gp_link *link, gp_link_end end, gp_link_left *left);
  /* The run is given up: no worker will ask for what waits at this end. NULL: nothing ever
   * waits. */
  void (*give_up)(gp_link *link, gp_link_end end);
  /* At the end of a run that failed, wait until all that this end has begun is over. NULL: there is
   * nothing to wait for but the queues of the two lanes. */
  gp_status (*settle)(gp_link *link, gp_link_end end);
} gp_link_ops;

typedef struct gp_link_pool gp_link_pool; /* pool.h */
typedef struct gp_credits gp_credits;     /* credits.h */
typedef struct gp_shared gp_shared;       /* shared.h */

/* What workers know of a slot; reset before each run. All accesses are sequentially consistent: a
 * worker announces that it sleeps before its last look at a word, and a thread that changes a word
 * looks for sleepers afterwards, so one of them sees the other. */
typedef struct gp_link_word {
  _Atomic uint32_t published; /* rounds whose value has been published */
  _Atomic uint32_t released;  /* last uses so far, by all readers */
} gp_link_word;

typedef struct gp_link_spec {
  const gp_lane *from, *to; /* borrowed: the lanes of maker and reader; may be the same */
  bool host; /* the workers themselves write and read the values, in host memory, at once */
  int32_t slots;
  uint32_t uses;       /* last uses of each value by this reader: one for each of its stages that
                        * uses it */
  size_t bytes;        /* bytes of one slot */
  char *made;          /* slot 0 in the maker's memory */
  char *received;      /* slot 0 where the reader looks: `made` if it reads in place */
  bool may_own;        /* the link may have slots of its own: the reader asks it where they are */
  bool stays;          /* `received` is the same for the life of the link */
  gp_link_word *words; /* per slot, shared by all links of the edge: the maker looks at them */
  gp_link_pool *pool;  /* borrowed */
  /* Between processes: the port of its values, the same in both; the credits of the edge, borrowed;
   * what wakes the reader's worker. */
  uint64_t port;
  gp_credits *credits;
  void (*ring)(void *context);
  void *context;
  /* Where processes of one host share memory: the bells of this process's workers, one for each
   * device of all ranks, and the numbers of the two; NULL: values are sent. */
  gp_shared *bells;
  int32_t bell_count, from_bell, to_bell;
} gp_link_spec;

struct gp_link {
  const gp_link_ops *ops;
  gp_link_spec spec;
  char *received;      /* slot 0, where the reader finds the values */
  gp_link_word *words; /* per slot: the reader looks at them; the link's own if it carries words */
  /* Set by open. quiet: no wake-up comes when a slot gets ready, so a waiting worker asks again and
   * again. plain: the words say everything, so workers need not call the link. */
  bool quiet, plain;
  bool tells; /* `release` tells the makers on other ranks; else gp_credits_tell does */
  void *self; /* state of this kind */
};

/* Open a link of the first kind that joins the two lanes. Errors: GP_EUNSUPPORTED if none does;
 * GP_ENOMEM. */
gp_status gp_link_open(const gp_link_spec *spec, gp_link **link);
void gp_link_close(gp_link *link); /* NULL is fine */
/* The slots lie elsewhere from now on; between two runs. */
void gp_link_move(gp_link *link, char *made, char *received);
/* Forget an earlier run: nothing is published. */
void gp_link_begin(gp_link *link);

/* Has this round of the slot been published? */
static inline bool gp_link_has(const gp_link *link, gp_link_turn turn) {
  return atomic_load(&link->words[turn.slot].published) > turn.round;
}
/* Tell the readers of these words. A thread that sees the round also sees what was written
 * before. */
static inline void gp_link_note_published(gp_link_word *words, gp_link_turn turn) {
  atomic_store(&words[turn.slot].published, turn.round + 1);
}
/* Count a last use, at the maker's end. */
static inline void gp_link_note_released(gp_link *link, int32_t slot) {
  atomic_fetch_add(&link->spec.words[slot].released, 1);
}

/* The four calls of workers: a plain link needs none of them. */
static inline gp_status gp_link_acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn,
                                        bool *ready) {
  return link->plain ? GP_OK : link->ops->acquire(link, lane, turn, ready);
}
static inline gp_status gp_link_publish(gp_link *link, gp_link_turn turn) {
  return link->plain ? GP_OK : link->ops->publish(link, turn);
}
static inline gp_status gp_link_receive(gp_link *link, gp_link_turn turn, bool *ready) {
  *ready = gp_link_has(link, turn);
  return link->plain || (!*ready && !link->ops->carries_words)
             ? GP_OK
             : link->ops->receive(link, turn, ready);
}
static inline gp_status gp_link_release(gp_link *link, gp_link_turn turn) {
  if (!link->plain) return link->ops->release(link, turn);
  gp_link_note_released(link, turn.slot);
  return GP_OK;
}

/* The kinds. */
extern const gp_link_ops gp_link_local; /* the reader reads the value where it was made */
extern const gp_link_ops gp_link_peer;  /* the reader's queue copies the value */
extern const gp_link_ops
    gp_link_host; /* a queue on the maker's device brings the value to host memory */
extern const gp_link_ops gp_link_rank;   /* to another process */
extern const gp_link_ops gp_link_queues; /* the same, between devices of which one has a queue */

#endif
