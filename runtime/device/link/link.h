/* device/link/link.h - how the values of an edge come from the device that makes them to one that
 * reads them.
 *
 * There is one link for each (edge, making device, reading device); the kind is chosen when a plan
 * is bound.
 * An edge has a fixed number of slots. What becomes of one of them, round after round:
 *
 *   maker    acquire   the slot is free: everybody's last use of the round before is over, or
 *   ordered before
 *            publish   the value lies in it, or will when the maker's queue has come so far
 *   reader   receive   the value is there for the reader's queue
 *            release   this was a last use: once for each stage of the reader that uses it
 *
 * acquire and receive never wait: they say whether the slot is ready, begin what has to be begun,
 * and are called again until it is, or until the run is given up; then they are called no more.
 * publish and release hold nobody up either: what cannot leave at once leaves in poll. So every
 * wait can be polled and given up, whatever lies between the two ends. A further kind is a new file
 * with such a table and a row in link.c, or a library of its own (library.h).
 *
 * The links of an edge share the words by which readers learn of a value, but for kinds that carry
 * their own. So the maker raises a word itself, when every link has published the value: a reader
 * that saw it earlier would wait for an event of the round before.
 *
 * Threads: acquire, publish and poll(GP_LINK_MAKER) on the maker's worker, receive, release and
 * poll(GP_LINK_READER) on the reader's; both at once. open, begin and close while neither runs. */
#ifndef GP_DEVICE_LINK_H
#define GP_DEVICE_LINK_H

#include <stdatomic.h>

#include "device/lane.h"

typedef struct gp_link gp_link;

typedef enum gp_link_end { GP_LINK_MAKER, GP_LINK_READER } gp_link_end;

/* One use of a slot; round counts how often it was used before. */
typedef struct gp_link_turn {
  int32_t slot;
  uint32_t round;
} gp_link_turn;

/* What an end of a link is not through with: nothing; credits that the other end has not given
 * back; something that has to leave. */
typedef enum gp_link_left {
  GP_LINK_NOTHING_LEFT,
  GP_LINK_CREDITS_LEFT,
  GP_LINK_MESSAGES_LEFT
} gp_link_left;

typedef struct gp_link_ops {
  const char *name; /* "local" */
  /* both ends have words of their own: poll and receive bring the other's news */
  bool carries_words;
  /* Can it join these two? Kinds are asked in the order of the table in link.c; a library is asked
   * first, but never for a lane and itself. */
  bool (*joins)(const gp_lane *from, const gp_lane *to);
  /* Fill in link->self, and link->received where the reader's slots are the link's own. Errors:
   * whatever it lacks; close is called then too. */
  gp_status (*open)(gp_link *link);
  void (*close)(gp_link *link); /* also where open stopped half-way */
  /* A run begins: nothing is under way any more, what an earlier run left behind is forgotten. */
  void (*begin)(gp_link *link);

  /* lane: that of who will write the slot. With two copies of a stage that is not always `from`. */
  gp_status (*acquire)(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready);
  gp_status (*publish)(gp_link *link, gp_link_turn turn);
  gp_status (*receive)(gp_link *link, gp_link_turn turn, bool *ready);
  gp_status (*release)(gp_link *link, gp_link_turn turn);

  /* Move on what waits to leave or to be taken in at this end; left: what is not over yet. Called
   * while the worker waits for anything, and at the end of a run until nothing is left; the forward
   * half of a split plan waits for no credits, because its backward half gives some of them.
   * NULL: nothing ever waits. */
  gp_status (*poll)(gp_link *link, gp_link_end end, gp_link_left *left);
  /* The run is given up: whatever waits at this end will not be asked for. NULL: nothing ever
   * waits. */
  void (*give_up)(gp_link *link, gp_link_end end);
  /* Wait until all that this end has begun is over: at the end of a run that failed. NULL: nothing
   * to wait for but the queues of the two lanes. */
  gp_status (*settle)(gp_link *link, gp_link_end end);
} gp_link_ops;

typedef struct gp_link_pool gp_link_pool; /* pool.h */

/* What workers know of a slot: reset before each run. Both are read and written in one order for
 * all threads: a worker says that it sleeps before it looks at a word for the last time, and who
 * changes a word looks for sleepers afterwards, so one of the two sees the other. */
typedef struct gp_link_word {
  _Atomic uint32_t published; /* rounds whose value is there */
  _Atomic uint32_t released;  /* last uses by all readers so far */
} gp_link_word;

typedef struct gp_link_spec {
  const gp_lane *from, *to; /* borrowed: the lanes of maker and reader; may be the same */
  int32_t slots;
  uint32_t uses;       /* last uses of each value by the reader: one for each of its stages */
  size_t bytes;        /* of one slot */
  char *made;          /* slot 0 where it is made */
  char *received;      /* slot 0 where the reader looks: `made` where it reads in place */
  gp_link_word *words; /* per slot, of all links of the edge: what the maker looks at */
  gp_link_pool *pool;  /* borrowed */
} gp_link_spec;

struct gp_link {
  const gp_link_ops *ops;
  gp_link_spec spec;
  char *received; /* slot 0 where the reader finds the values */
  gp_link_word
      *words; /* per slot: what the reader looks at; the link's own where it carries words */
  /* Set by open. quiet: nothing rings when a slot gets ready, who waits asks again and again.
   * plain: the words say all, so that nobody need ask the link. */
  bool quiet, plain;
  void *self; /* of the kind */
};

/* Make the link of the first kind that joins the two. Errors: GP_EUNSUPPORTED where none does;
 * GP_ENOMEM. */
gp_status gp_link_open(const gp_link_spec *spec, gp_link **link);
void gp_link_close(gp_link *link); /* NULL is fine */
/* Forget an earlier run: nothing is published. */
void gp_link_begin(gp_link *link);

/* Has this round of the slot been published? */
static inline bool gp_link_has(const gp_link *link, gp_link_turn turn) {
  return atomic_load(&link->words[turn.slot].published) > turn.round;
}
/* Say so to who looks at these words; whoever sees the round sees what was written before. */
static inline void gp_link_note_published(gp_link_word *words, gp_link_turn turn) {
  atomic_store(&words[turn.slot].published, turn.round + 1);
}
/* A last use, at the maker's end. */
static inline void gp_link_note_released(gp_link *link, int32_t slot) {
  atomic_fetch_add(&link->spec.words[slot].released, 1);
}

/* The four calls, as workers make them. */
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
extern const gp_link_ops gp_link_local; /* the reader reads where it was made */
extern const gp_link_ops gp_link_peer;  /* the reader's queue copies it */
extern const gp_link_ops
    gp_link_host; /* it is brought to memory of the host by a queue of its maker's device */

#endif
