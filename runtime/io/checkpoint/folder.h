/* io/checkpoint/folder.h - a folder of files that takes another's place in one step.
 *
 * It is filled under another name beside the target, ".NAME.tmp.PID.N"; what processes that are
 * gone have left under such names is removed first. Folders here hold files only. */
#ifndef GP_IO_CHECKPOINT_FOLDER_H
#define GP_IO_CHECKPOINT_FOLDER_H

#include "base/status.h"

typedef struct gp_folder {
  char *target;    /* where it goes */
  char *temporary; /* where it is filled; NULL when there is none */
} gp_folder;

/* Make the folder to be filled; what is above it is made too. Errors: GP_EIO where the system
 * refuses or the target is no folder. */
gp_status gp_folder_open(gp_folder *folder, const char *target);
/* Where to read what was put at `target`: there, or where it waits since a process was killed while
 * it replaced it. Ownership: gp_free. */
gp_status gp_folder_find(const char *target, char **path);
/* "temporary/file". Ownership: gp_free. */
gp_status gp_folder_path(const char *folder, const char *file, char **path);
/* Put it in the target's place; what was there goes. Errors: GP_EIO; the old one is still there. */
gp_status gp_folder_commit(gp_folder *folder);
/* Removes what was not committed. */
void gp_folder_close(gp_folder *folder);

#endif
