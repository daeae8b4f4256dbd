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
/* Remove a folder and the files in it. Anything else in it stays, and then so does the folder.
 * Errors: GP_EIO. */
gp_status gp_folder_remove(const char *path);

/* Truncate a file to `bytes` bytes, durably; a file that is not longer stays as it is. *left
 * receives its size. Errors: GP_EIO. */
gp_status gp_file_cut(const char *path, uint64_t bytes, uint64_t *left);
/* Read a regular file (not a symbolic link): bytes[size] receives its content, followed by a 0;
 * *there is false if there is no file. Ownership: gp_file_text_free. Errors: GP_EIO, also for a
 * file of more than `most` bytes; GP_ENOMEM. */
gp_status gp_file_text(const char *path, size_t most, bool *there, char **bytes, size_t *size);
void gp_file_text_free(char *bytes);
/* Tell whether this name itself is a folder, not a link to one. */
bool gp_folder_is_own(const char *path);
/* Flush a file, so that what was written to it survives a power cut. Errors: GP_EIO. */
gp_status gp_file_sync(const char *path);

/* A file that one process holds at a time, until it is freed or the process ends, however it
 * ends. */
typedef struct gp_lock gp_lock;

/* Take the lock and write `text` into it for other processes to read. Wait up to `seconds` for it,
 * since a process that was killed holds its lock until its last write is over. If another process
 * holds the lock, *lock is NULL and holder[size] receives that process's text. Errors: GP_EIO,
 * GP_ENOMEM. Source: flock(2). */
gp_status gp_lock_take(const char *path, const char *text, double seconds, gp_lock **lock,
                       char *holder, size_t size);
void gp_lock_free(gp_lock *lock);

#endif
