/* gpipe/folder.h - folders and files that a training run keeps. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_FOLDER_H
#define GP_PUBLIC_FOLDER_H

#include "gpipe/status.h"

/* Make the folder and what is above it, where they are missing. Errors: GP_EIO. */
gp_status gp_folder_make(const char *path);
/* names[count] receives what is in a folder, sorted by bytes, hidden ones too. Ownership:
 * gp_file_list_free. Errors: GP_EIO. */
gp_status gp_folder_names(const char *path, char ***names, size_t *count);
/* Remove a folder of files; anything else in it stays, and it with that. Errors: GP_EIO. */
gp_status gp_folder_remove(const char *path);

/* Make a file shorter, durably; one that has no more bytes stays. *left receives what it has.
 * Errors: GP_EIO. */
gp_status gp_file_cut(const char *path, uint64_t bytes, uint64_t *left);
/* bytes[size] receives what a regular file holds, which is no link, and 0 behind it; *there is
 * false where there is none. Ownership: gp_file_text_free. Errors: GP_EIO, also where it has more
 * than `most` bytes; GP_ENOMEM. */
gp_status gp_file_text(const char *path, size_t most, bool *there, char **bytes, size_t *size);
void gp_file_text_free(char *bytes);
/* Whether there is a folder of this name itself, no link to one. */
bool gp_folder_is_own(const char *path);
/* What was written to the file survives a power cut. Errors: GP_EIO. */
gp_status gp_file_sync(const char *path);

/* A file that one process holds at a time, until it is freed or the process ends, however it
 * ends. */
typedef struct gp_lock gp_lock;

/* Take it and write `text` there for others, after waiting up to `seconds`: a process that was
 * killed holds it until its last write is over. Where another one has it *lock is NULL and
 * holder[size] receives its text. Errors: GP_EIO, GP_ENOMEM. Source: flock(2). */
gp_status gp_lock_take(const char *path, const char *text, double seconds, gp_lock **lock,
                       char *holder, size_t size);
void gp_lock_free(gp_lock *lock);

#endif
