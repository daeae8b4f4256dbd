/* gpipe/checkpoint.h - a folder of archives that is written atomically. See gpipe.h for what holds
 * everywhere.
 *
 * The files are written side by side into a folder of another name beside the target, each with
 * its size and checksum; MANIFEST.json, which lists them, is written last; then the folder
 * takes the target's place in one step. Reading checks every file against the manifest before
 * it trusts any. */
#ifndef GP_PUBLIC_CHECKPOINT_H
#define GP_PUBLIC_CHECKPOINT_H

#include "gpipe/archive.h"

/* A checkpoint that is being written. */
typedef struct gp_checkpoint gp_checkpoint;

/* state: a text that gp_checkpoint_read returns. Errors: GP_ENOMEM. */
gp_status gp_checkpoint_new(const char *folder, const char *state, gp_checkpoint **checkpoint);
/* Add a file of the folder (a plain name). The checkpoint owns its archive from then on, also on
 * failure; NULL: another process writes it (gp_checkpoint_lead). The archive's tensors must not
 * change until the checkpoint is finished. Errors: GP_EINVAL, GP_ENOMEM. */
gp_status gp_checkpoint_add(gp_checkpoint *checkpoint, const char *file, gp_archive *archive);
/* Let several processes write one checkpoint, each the files that it has, into a folder that all of
 * them see. One process leads: it makes the folder now, tells the others its name (*folder,
 * borrowed until gp_checkpoint_start), adds the files of the others with a NULL archive, and writes
 * the manifest when all files are there. check: asked while it waits for the others, from the
 * background thread; fails if one of them is gone. The others follow it, and add their own files
 * only. Call before gp_checkpoint_start. Errors: GP_EIO, GP_ENOMEM. */
gp_status gp_checkpoint_lead(gp_checkpoint *checkpoint, gp_status (*check)(void),
                             const char **folder);
gp_status gp_checkpoint_follow(gp_checkpoint *checkpoint, const char *folder);
/* Start writing, on background threads; call it once. Errors: GP_ENOMEM. */
gp_status gp_checkpoint_start(gp_checkpoint *checkpoint);
/* Tell whether gp_checkpoint_finish would return at once. */
bool gp_checkpoint_is_done(const gp_checkpoint *checkpoint);
/* Wait for the end. Errors: GP_EIO, GP_ENOMEM; the folder that was there before is
 * still there then. */
gp_status gp_checkpoint_finish(gp_checkpoint *checkpoint);
void gp_checkpoint_free(gp_checkpoint *checkpoint); /* waits */

/* Read the manifest of a folder and verify every file against it: names[count] receives their
 * paths, in order. Ownership: gp_file_list_free, gp_checkpoint_free_state. Errors: GP_EIO;
 * GP_EFORMAT with file and reason. */
gp_status gp_checkpoint_read(const char *folder, char ***names, size_t *count, char **state);
void gp_checkpoint_free_state(char *state);

#endif
