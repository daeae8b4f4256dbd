/* device/link/library.h - the interface of a library that brings a kind of link. */
#ifndef GP_DEVICE_LINK_LIBRARY_H
#define GP_DEVICE_LINK_LIBRARY_H

#include "device/link/link.h"

enum { GP_LINK_VERSION = 2 };

/* The functions that a library may call: it imports nothing from the core. */
typedef struct gp_link_host_functions {
  uint32_t version;
  gp_status (*fail)(gp_status status, const char *text); /* set the thread's error text */
} gp_link_host_functions;

/* The entry point of the library that GPIPE_LINK_PLUGIN names. It returns the table of a kind,
 * which link.c asks before those of the core. Errors: GP_EUNSUPPORTED if versions differ. */
typedef gp_status (*gp_link_plugin_entry)(const gp_link_host_functions *host,
                                          const gp_link_ops **ops);
#define GP_LINK_PLUGIN_ENTRY "gp_link_plugin_open"

#endif
