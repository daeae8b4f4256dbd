/* schedule/access/access.h - what the tasks of one device touch, and how long each thing is held.
 *
 *   list.c        a list of accesses under construction
 *   touches.c     the accesses of a schedule's actions
 *   away.c        when what F keeps is in the host's memory
 *   tally.c       what of a micro-batch is alive, without such a list
 *   lifetimes.c   from accesses to lifetimes, and a walk over what is alive
 *   slots.c       slots for instances of one size
 *   held.c        what a schedule's devices hold: peaks, slots, versions
 *   moments.c     what a device's stages hold at the same time
 *
 * A task runs on one device, in the order of that device's list. It touches instances of buffers:
 * the activation that a stage keeps of a micro-batch, a version of its weights, the value of an
 * edge. How long something is held, and how much of it at once, is found by passes over such a
 * list, in the verifier, in the simulator, and in plans of models, which list buffers of their own.
 */
#ifndef GP_SCHEDULE_ACCESS_H
#define GP_SCHEDULE_ACCESS_H

#include "schedule/schedule.h"

/* ---- accesses ------------------------------------------------------------------------------ */

/* X(NAME, what an instance of such a buffer is) */
#define GP_BUFFER_LIST(X)                                                                          \
  X(INPUT, "what F keeps of a micro-batch even if the rest is recomputed")                         \
  X(ACTIVATION, "what a backward pass reads of a micro-batch")                                     \
  X(HEAD, "the part of it that I reads and W does not")                                            \
  X(SAVED, "what F keeps of a micro-batch that recomputes nothing")                                \
  X(RECOMPUTED, "what R makes again")                                                              \
  X(CARRIED, "what I leaves for W")                                                                \
  X(AWAY, "what F keeps of a micro-batch and the host's memory holds meanwhile")                   \
  X(AWAY_HEAD, "the part of it that I reads and W does not")                                       \
  X(VERSION, "the weights of a stage after so many updates")                                       \
  X(EDGE_VALUE, "what F of a stage makes and other stages read")                                   \
  X(EDGE_GRADIENT, "the same of backward passes")
#define GP_BUFFER_ENUM(name, text) GP_BUFFER_##name,
typedef enum gp_buffer_class { GP_BUFFER_LIST(GP_BUFFER_ENUM) GP_BUFFER_COUNT } gp_buffer_class;
#undef GP_BUFFER_ENUM

typedef struct gp_buffer {
  gp_buffer_class class;
  int32_t stage;
  int32_t edge;   /* of EDGE_VALUE and EDGE_GRADIENT: its number in the plan */
  bool made_here; /* of these: this stage makes it, others read it */
  bool in_order;  /* instances lie in a ring: each is given back after those before it */
} gp_buffer;

/* READ needs the instance. WRITE makes it, for the first time or again. REPLACE makes it in the
 * place of the instance before it, if that one is no longer needed. */
typedef enum gp_access_mode { GP_ACCESS_READ, GP_ACCESS_WRITE, GP_ACCESS_REPLACE } gp_access_mode;

typedef struct gp_access {
  int32_t buffer, instance;
  gp_access_mode mode;
} gp_access;

/* The tasks of one device with their accesses. */
typedef struct gp_access_list {
  gp_buffer *buffers;
  gp_access *accesses;
  int32_t *first; /* per task: its first access; first[task_count] is the total */
  int32_t *time;  /* per task, ascending: joined tasks overlap and have the same one */
  int32_t buffer_count, instance_count, task_count;
  size_t access_room;
} gp_access_list;

/* Make an empty list with room for so many tasks. instances: the most that a buffer has; buffers:
 * taken, also on failure. */
gp_status gp_access_list_new(int32_t tasks, int32_t instances, gp_buffer *buffers,
                             int32_t buffer_count, gp_access_list *list);
void gp_access_list_free(gp_access_list *list); /* what it holds; not the struct */
/* Begin the next task; joined: it overlaps the task before it. */
void gp_access_list_begin(gp_access_list *list, bool joined);
/* Add an access of the task that was begun last. */
gp_status gp_access_list_add(gp_access_list *list, int32_t buffer, int32_t instance,
                             gp_access_mode mode);

/* List the accesses that the actions of a device make to buffers of these classes (a bit for each):
 * INPUT, ACTIVATION, HEAD, CARRIED, AWAY, AWAY_HEAD and VERSION. Task i is action
 * schedule->first[device] + i. */
gp_status gp_schedule_touches(const gp_schedule *schedule, int32_t device, unsigned classes,
                              gp_access_list *list);

/* ---- lifetimes ----------------------------------------------------------------------------- */

/* An instance is alive from the task that makes it to its last access. If it is made again, a new
 * life begins. */
typedef struct gp_lifetime {
  int32_t buffer, instance;
  int32_t task;       /* the one that makes it, or reads first what was there before */
  int32_t begin, end; /* times, inclusive */
  int32_t replaces;   /* the lifetime whose place it takes when it begins; -1: none */
} gp_lifetime;

typedef struct gp_lifetimes {
  gp_lifetime *list; /* in the order of their begins */
  int32_t count, time_count;
} gp_lifetimes;

gp_status gp_lifetimes_find(const gp_access_list *accesses, gp_lifetimes *lifetimes);
void gp_lifetimes_free(gp_lifetimes *lifetimes); /* what it holds; not the struct */

/* What a walk tells its caller: at each time first the lives that begin, then those that end. A
 * replaced life ends right before its successor begins. */
typedef struct gp_lifetime_watch {
  void *context;
  gp_status (*born)(void *context, const gp_lifetime *life);
  void (*dead)(void *context, const gp_lifetime *life);
} gp_lifetime_watch;

/* Walk through time; ends at the first failure of born. */
gp_status gp_lifetimes_walk(const gp_lifetimes *lifetimes, const gp_lifetime_watch *watch);
/* Give each lifetime the lowest free slot of its buffer: slot[lifetimes]. count[buffers] receives
 * how many slots each buffer needs. */
gp_status gp_lifetimes_colour(const gp_access_list *accesses, const gp_lifetimes *lifetimes,
                              int32_t *slot, int32_t *count);
/* Find the smallest ring, of *slots to `most` slots, in which instance i may take slot i mod
 * *slots. If *slots is 0 it stays 0. */
gp_status gp_lifetimes_ring(const gp_lifetimes *lifetimes, int32_t buffer, int32_t most,
                            int32_t *slots);
/* Find the lifetimes of a list and walk through them. */
gp_status gp_access_watch(const gp_access_list *accesses, const gp_lifetime_watch *watch);
/* Walk through the lives of what one device of a schedule holds. list: receives the accesses, which
 * the watch may look at during the walk; freed behind it. */
gp_status gp_schedule_watch(const gp_schedule *schedule, int32_t device, unsigned classes,
                            gp_access_list *list, const gp_lifetime_watch *watch);

#endif
