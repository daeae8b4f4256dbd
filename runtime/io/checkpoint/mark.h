/* io/checkpoint/mark.h - how processes that write one checkpoint together tell each other that a
 * file is there.
 *
 * They share nothing but the folder. Beside a file NAME that is written and synced its writer
 * places ".NAME.mark", with the file's size and checksum, or with the reason why it could not be
 * written. The process that writes the manifest waits for these marks and removes them. */
#ifndef GP_IO_CHECKPOINT_MARK_H
#define GP_IO_CHECKPOINT_MARK_H

#include "base/status.h"

typedef struct gp_mark {
  uint64_t bytes; /* of the file */
  uint32_t crc32;
} gp_mark;

/* Say that a file of the folder is written. */
gp_status gp_mark_place(const char *folder, const char *file, const gp_mark *mark);
/* Say why it is not; as good as it can, because a disk may be full. */
void gp_mark_refuse(const char *folder, const char *file, const char *reason);
/* Wait for another process's mark. check: fails if a process that may write is gone, after which
 * only a moment is waited. Errors: that of `check`; GP_EIO with the other's reason; GP_ETIMEOUT. */
gp_status gp_mark_await(const char *folder, const char *file, gp_status (*check)(void),
                        gp_mark *mark);

#endif
