/* device/link/ranks/queue/wire.h - values between the GPUs of two processes by a library of theirs
 * (NCCL): one wire for each making and reading device of a plan, which the links of that pair
 * share.
 *
 * The library matches what one side sends and the other receives by their order alone. So the maker
 * decides: it posts a value, and its message, which the control plane keeps in order, tells the
 * reader to post the same. A receive is enqueued only when its value is under way, and waits for no
 * task of either side: no order of tasks or edges can make two sides wait for each other.
 *
 * The wire is connected while values go another way; a library that refuses, or that one side
 * lacks, costs nothing but speed.
 *
 * Threads: the lane's worker; post, want and abort: any. */
#ifndef GP_DEVICE_LINK_WIRE_H
#define GP_DEVICE_LINK_WIRE_H

#include <stdatomic.h>

#include "device/lane.h"

typedef struct gp_wire gp_wire;

/* What becomes of a slot's value. */
typedef enum gp_wire_state { GP_WIRE_NONE, GP_WIRE_POSTED, GP_WIRE_MOVED } gp_wire_state;

typedef struct gp_wire_item {
  gp_lane_event *after; /* the value is there; NULL: the memory is free */
  gp_lane_event *done;  /* recorded behind the transfer; NULL: none is */
  void *memory;
  size_t bytes;
  _Atomic int *state; /* gp_wire_state; NULL: none is kept */
} gp_wire_item;

/* sends: the maker's end. */
gp_status gp_wire_new(const gp_lane *lane, bool sends, gp_wire **wire);
void gp_wire_free(gp_wire *wire); /* NULL is fine */
/* Make room for so many more values that are posted at the same time. */
gp_status gp_wire_reserve(gp_wire *wire, size_t count);

/* The reader's id, made at the first call; NULL: the library refuses, and gp_wire_why says why. */
const unsigned char *gp_wire_id(gp_wire *wire);
const char *gp_wire_why(const gp_wire *wire);
/* Connect: the reader when the maker has asked, the maker with the reader's id. */
void gp_wire_want(gp_wire *wire);
void gp_wire_connect(gp_wire *wire, const unsigned char *id);
/* Is it connected, and has not failed? */
bool gp_wire_is_up(gp_wire *wire);

void gp_wire_post(gp_wire *wire, const gp_wire_item *item);
/* Enqueue what was posted, as far as the library takes it. Errors: those of the library. */
gp_status gp_wire_move(gp_wire *wire);
bool gp_wire_is_idle(gp_wire *wire); /* is nothing posted? */
/* Give up: transfers under way end, and the wire is of no use any more. */
void gp_wire_abort(gp_wire *wire);

#endif
