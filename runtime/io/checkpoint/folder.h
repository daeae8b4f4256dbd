/* io/checkpoint/folder.h - a folder of files that replaces another one in one step.
 *
 * It is filled under another name beside the target, ".NAME.tmp.PID.N"; folders that dead processes
 * left under such names are removed first. Folders here contain only files. */
#ifndef GP_IO_CHECKPOINT_FOLDER_H
#define GP_IO_CHECKPOINT_FOLDER_H

#include "base/status.h"

typedef struct gp_folder {
  char *target;    /* the folder to replace */
  char *temporary; /* the folder to fill; NULL if there is none */
} gp_folder;

/* Make the folder to fill, and its missing parents. Errors: GP_EIO if the system refuses or the
 * target is no folder. */
gp_status gp_folder_open(gp_folder *folder, const char *target);
/* Find the folder to read for `target`: the target, or the old folder set aside by a process that
 * was killed while it replaced the target. Ownership: gp_free. */
gp_status gp_folder_find(const char *target, char **path);
/* "temporary/file". Ownership: gp_free. */
gp_status gp_folder_path(const char *folder, const char *file, char **path);
/* Move the folder to the target's place and remove what was there. Errors: GP_EIO; the old one is
 * still there then. */
gp_status gp_folder_commit(gp_folder *folder);
/* Remove what was not committed. */
void gp_folder_close(gp_folder *folder);

#endif
