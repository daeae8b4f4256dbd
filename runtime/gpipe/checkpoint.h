/* gpipe/checkpoint.h - a folder of archives that is there whole or not at all. See gpipe.h for what
 * holds everywhere.
 *
 * The files are written side by side into a folder of another name beside the target, each with its
 * size and checksum; MANIFEST.json, which lists them, is written last; then the folder takes the
 * target's place in one step. What is read is trusted only where all of it agrees. */
#ifndef GP_PUBLIC_CHECKPOINT_H
#define GP_PUBLIC_CHECKPOINT_H

#include "gpipe/archive.h"

/* A checkpoint that is being written. */
typedef struct gp_checkpoint gp_checkpoint;

/* state: a text that reading gives back. Errors: GP_ENOMEM. */
gp_status gp_checkpoint_new(const char *folder, const char *state, gp_checkpoint **checkpoint);
/* Add a file of the folder (a plain name). Its archive is owned from then on, also on failure; its
 * tensors must not change until the checkpoint is finished. Errors: GP_EINVAL, GP_ENOMEM. */
gp_status gp_checkpoint_add(gp_checkpoint *checkpoint, const char *file, gp_archive *archive);
/* Begin to write on threads of its own, once. Errors: GP_ENOMEM. */
gp_status gp_checkpoint_start(gp_checkpoint *checkpoint);
/* Whether finish would not wait. */
bool gp_checkpoint_is_done(const gp_checkpoint *checkpoint);
/* Wait for the end. Errors: GP_EIO, GP_ENOMEM; what was in the target's place is still there. */
gp_status gp_checkpoint_finish(gp_checkpoint *checkpoint);
void gp_checkpoint_free(gp_checkpoint *checkpoint); /* waits */

/* What a manifest says, verified against every file: names[count] are paths, in order. Ownership:
 * gp_file_list_free, gp_checkpoint_free_state. Errors: GP_EIO; GP_EFORMAT with file and reason. */
gp_status gp_checkpoint_read(const char *folder, char ***names, size_t *count, char **state);
void gp_checkpoint_free_state(char *state);

#endif
