/* device/link/link.c - see link.h: choosing the kind of a link, and what is the same for all.
 *
 * Each kind is asked whether it joins two lanes, so that there is no list of pairs of devices. The
 * order says which is best: in place, by a copy of the reader's queue, by way of the host. The
 * library of a test or a user comes before all of them. Lanes of two processes have two kinds, with
 * and without queues. */
#include "device/link/link.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/link/ranks/credits.h"
#include "device/link/library.h"

/* The first kind that joins the two lanes is taken. */
static const gp_link_ops *const kinds[] = {&gp_link_local, &gp_link_peer, &gp_link_host};

/* ---- the library ---------------------------------------------------------------------------- */

static struct {
  pthread_once_t once;
  const gp_link_ops *ops; /* NULL: no library is named, or `why` says what is wrong */
  char why[400];
} plugin = {.once = PTHREAD_ONCE_INIT};

static gp_status fail(gp_status status, const char *text) { return gp_fail_text(status, text); }

/* The library stays open: links that it made may live as long as the process. */
static void open_plugin(void) {
  static const gp_link_host_functions host = {GP_LINK_VERSION, fail};
  const char *path = getenv("GPIPE_LINK_PLUGIN");
  gp_link_plugin_entry entry;
  if (!path || !*path) return;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = handle ? dlsym(handle, GP_LINK_PLUGIN_ENTRY) : NULL;
  memcpy(&entry, &symbol, sizeof entry);
  if (!symbol)
    snprintf(plugin.why, sizeof plugin.why, "GPIPE_LINK_PLUGIN: %s", dlerror());
  else if (entry(&host, &plugin.ops))
    snprintf(plugin.why, sizeof plugin.why, "GPIPE_LINK_PLUGIN: %s", gp_error_text());
}

/* ---- links ---------------------------------------------------------------------------------- */

static gp_status choose(const gp_link_spec *spec, const gp_link_ops **ops) {
  const gp_lane *from = spec->from, *to = spec->to;
  pthread_once(&plugin.once, open_plugin);
  const bool is_queued = !spec->host && gp_link_queues.joins(from, to);
  if (from->rank != to->rank) return *ops = is_queued ? &gp_link_queues : &gp_link_rank, GP_OK;
  if (plugin.why[0]) return gp_fail_text(GP_EUNSUPPORTED, plugin.why);
  if (plugin.ops && from != to && plugin.ops->joins(from, to)) return *ops = plugin.ops, GP_OK;
  if (spec->host) return *ops = &gp_link_local, GP_OK;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i]->joins(from, to)) return *ops = kinds[i], GP_OK;
  return gp_fail(GP_EUNSUPPORTED, "nothing carries values from %s to %s", from->name, to->name);
}

gp_status gp_link_open(const gp_link_spec *spec, gp_link **link) {
  const gp_link_ops *ops = NULL;
  gp_link *made;
  GP_TRY(choose(spec, &ops));
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  *made = (gp_link){.ops = ops, .spec = *spec, .received = spec->received, .words = spec->words};
  size_t slots = (size_t)spec->slots;
  gp_status status = GP_OK;
  if (ops->carries_words) {
    made->words = NULL;
    status = gp_alloc_array(slots, sizeof(gp_link_word), (void **)&made->words);
  }
  if (!status) status = ops->open(made);
  if (!status && spec->credits) status = gp_credits_serve(spec->credits, spec);
  if (status) return gp_link_close(made), status;
  *link = made;
  return GP_OK;
}

/* A link with slots of its own keeps them. */
void gp_link_move(gp_link *link, char *made, char *received) {
  if (link->received == link->spec.received) link->received = received;
  link->spec.made = made;
  link->spec.received = received;
}

void gp_link_close(gp_link *link) {
  if (!link) return;
  link->ops->close(link);
  if (link->words != link->spec.words) gp_free(link->words);
  gp_free(link);
}

/* Reset the words; the ticket that starts the run publishes this to the workers. */
void gp_link_begin(gp_link *link) {
  for (int32_t k = 0; k < link->spec.slots; k++) {
    atomic_store_explicit(&link->words[k].published, 0, memory_order_relaxed);
    atomic_store_explicit(&link->words[k].released, 0, memory_order_relaxed);
  }
  link->ops->begin(link);
}
