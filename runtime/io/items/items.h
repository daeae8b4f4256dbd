/* io/items/items.h - what all kinds of items share: a table of functions and a count. */
#ifndef GP_IO_ITEMS_ITEMS_H
#define GP_IO_ITEMS_ITEMS_H

#include <stdatomic.h>

#include "base/status.h"
#include "gpipe/items.h"

/* One batch to make. */
typedef struct gp_items_call {
  const gp_tensor *positions; /* i64 [n], contiguous, each in range */
  const int64_t *at;          /* its elements */
  int64_t n;
  gp_items_key key;
} gp_items_call;

typedef struct gp_items_ops {
  gp_status (*make)(const gp_items *items, const gp_items_call *call, gp_tensor **x, gp_tensor **y);
  void (*release)(gp_items *items); /* frees what the kind holds, not the items */
} gp_items_ops;

struct gp_items { /* the first field of every kind */
  const gp_items_ops *ops;
  atomic_int references;
  int64_t count;
};

/* Allocate zeroed items of `bytes` with one reference. */
gp_status gp_items_new(const gp_items_ops *ops, size_t bytes, int64_t count, gp_items **items);
gp_items *gp_items_retain(gp_items *items);
/* n random words, at most 64, for the item at `position`; they depend only on it and the key. */
void gp_items_words(gp_items_key key, int64_t position, int n, uint32_t *word);

#endif
