/* bindings/cli/launch/folder.h - the folder where the ranks of a job find each other.
 *
 * Only its user can enter it. The launcher holds a lock on it, which ends with its process, however
 * that ends: so the next launcher of this user knows the folders that others have left behind, and
 * removes them. */
#ifndef GP_BINDINGS_LAUNCH_FOLDER_H
#define GP_BINDINGS_LAUNCH_FOLDER_H

enum { GP_LAUNCH_FOLDER = 64 }; /* bytes of a path */

/* Make and lock a folder; returns its descriptor. -1: errno says why there is none. */
int gp_launch_folder_make(char path[GP_LAUNCH_FOLDER]);
void gp_launch_folder_remove(const char *path, int folder);

#endif
