/* io/checkpoint/save.c - writes the files of a checkpoint in parallel.
 *
 * A leading thread makes the folder, starts a thread for each further file, writes the first file
 * itself, joins the others, writes the manifest and puts the folder in place. So the caller can go
 * on at once.
 *
 * Where several processes write, one of them does this, and waits for the files of the others
 * before the manifest; the others write their files into its folder (mark.h). */
#include <stdio.h> /* snprintf */
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/checkpoint.h"
#include "io/checkpoint/folder.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/mark.h"
#include "io/safetensors/archive.h"

typedef struct shard {
  char *name, *path;
  gp_archive *archive; /* NULL: another process writes the file */
  bool away;
  uint64_t bytes; /* size of the file */
  uint32_t crc32;
  pthread_t thread;
  bool started;
  gp_status status;
  char *reason; /* of a failure, from the shard's own thread */
} shard;

struct gp_checkpoint {
  char *target, *state;
  gp_folder folder;         /* of a process that leads others; else made when writing begins */
  char *follows;            /* the folder of the process that leads; NULL: this one does */
  gp_status (*check)(void); /* are the others still there? */
  shard *shards;
  size_t count, capacity;
  pthread_t leader;
  bool started, joined;
  _Atomic bool done;
  gp_status status;
  char *reason;
};

/* ---- making -------------------------------------------------------------------------------- */

gp_status gp_checkpoint_new(const char *folder, const char *state, gp_checkpoint **checkpoint) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof(gp_checkpoint), &memory));
  gp_checkpoint *c = memory;
  *c = (gp_checkpoint){0};
  gp_status status = gp_copy_string(folder, &c->target);
  if (!status) status = gp_copy_string(state, &c->state);
  if (status) gp_checkpoint_free(c);
  if (!status) *checkpoint = c;
  return status;
}

gp_status gp_checkpoint_add(gp_checkpoint *c, const char *file, gp_archive *archive) {
  void *array = c->shards;
  gp_status status = gp_grow_array(c->count, &c->capacity, sizeof *c->shards, &array);
  if (!status) {
    c->shards = array;
    c->shards[c->count] = (shard){.archive = archive, .away = archive == NULL};
    status = gp_copy_string(file, &c->shards[c->count].name);
  }
  if (status) gp_archive_free(archive);
  if (!status) c->count++;
  return status;
}

gp_status gp_checkpoint_lead(gp_checkpoint *c, gp_status (*check)(void), const char **folder) {
  c->check = check;
  GP_TRY(gp_folder_open(&c->folder, c->target));
  *folder = c->folder.temporary;
  return GP_OK;
}

gp_status gp_checkpoint_follow(gp_checkpoint *c, const char *folder) {
  return gp_copy_string(folder, &c->follows);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Keep the text of this thread's last failure for the thread that asked. Without memory for it,
 * only the status code is reported. */
static void keep_reason(char **reason) {
  if (gp_copy_string(gp_error_text(), reason) != GP_OK) *reason = NULL;
}

static void *write_shard(void *context) {
  shard *s = context;
  gp_writer writer;
  s->status = gp_writer_open(&writer, s->path);
  if (!s->status) s->status = gp_archive_put(s->archive, &writer);
  if (!s->status) s->status = gp_writer_place(&writer);
  s->bytes = writer.written;
  s->crc32 = writer.crc32;
  gp_writer_close(&writer);
  if (s->status) keep_reason(&s->reason);
  return NULL;
}

static void start_shards(gp_checkpoint *c) {
  const gp_thread_options options = {.name = "checkpoint"};
  for (size_t i = 1; i < c->count; i++)
    if (!c->shards[i].away)
      c->shards[i].started =
          gp_thread_start(&c->shards[i].thread, &options, write_shard, &c->shards[i]) == GP_OK;
}

static gp_status first_failure(const gp_checkpoint *c) {
  for (size_t i = 0; i < c->count; i++) {
    const shard *s = &c->shards[i];
    if (s->status) return gp_fail_text(s->status, s->reason ? s->reason : s->name);
  }
  return GP_OK;
}

/* Write all own files; those for which no thread could be started are written by this one. */
static gp_status write_shards(gp_checkpoint *c, const char *folder) {
  for (size_t i = 0; i < c->count; i++)
    GP_TRY(gp_folder_path(folder, c->shards[i].name, &c->shards[i].path));
  start_shards(c);
  for (size_t i = 0; i < c->count; i++)
    if (!c->shards[i].started && !c->shards[i].away) write_shard(&c->shards[i]);
  for (size_t i = 0; i < c->count; i++)
    if (c->shards[i].started) pthread_join(c->shards[i].thread, NULL);
  return first_failure(c);
}

/* Wait until the other processes have written theirs. */
static gp_status await_shards(gp_checkpoint *c, const char *folder) {
  for (size_t i = 0; i < c->count; i++) {
    shard *s = &c->shards[i];
    gp_mark mark;
    if (!s->away) continue;
    GP_TRY(gp_mark_await(folder, s->name, c->check, &mark));
    s->bytes = mark.bytes;
    s->crc32 = mark.crc32;
  }
  return GP_OK;
}

/* Tell the process that leads how the own files have come out. */
static gp_status mark_shards(gp_checkpoint *c) {
  gp_status status = GP_OK;
  for (size_t i = 0; i < c->count; i++) {
    const shard *s = &c->shards[i];
    const gp_mark mark = {.bytes = s->bytes, .crc32 = s->crc32};
    gp_status placed = s->status ? GP_OK : gp_mark_place(c->follows, s->name, &mark);
    if (s->status) gp_mark_refuse(c->follows, s->name, s->reason ? s->reason : s->name);
    if (placed) gp_mark_refuse(c->follows, s->name, gp_error_text());
    if (placed) status = placed;
  }
  return status;
}

static gp_status write_manifest(const gp_checkpoint *c, const gp_folder *folder) {
  gp_manifest manifest = {0};
  char *path = NULL;
  gp_status status = gp_copy_string(c->state, &manifest.state);
  for (size_t i = 0; i < c->count && !status; i++) {
    const shard *s = &c->shards[i];
    status = gp_manifest_add(&manifest, s->name, s->bytes, s->crc32);
  }
  if (!status) status = gp_folder_path(folder->temporary, GP_MANIFEST_NAME, &path);
  if (!status) status = gp_manifest_save(&manifest, path);
  gp_free(path);
  gp_manifest_clear(&manifest);
  return status;
}

/* Fill the folder. Its name is temporary and gone when an error is shown, so the error's text
 * begins with the target's name. */
static gp_status fill(gp_checkpoint *c, const gp_folder *folder) {
  gp_status status = write_shards(c, folder->temporary);
  if (!status) status = await_shards(c, folder->temporary);
  if (!status) status = write_manifest(c, folder);
  return status ? gp_fail_prefix(status, c->target) : GP_OK;
}

/* Write the own files into the folder of the process that leads. */
static gp_status write_part(gp_checkpoint *c) {
  char reason[512];
  gp_status status = write_shards(c, c->follows);
  if (status) snprintf(reason, sizeof reason, "%s", gp_error_text());
  gp_status marked = mark_shards(c);
  if (status) return gp_fail_prefix(gp_fail_text(status, reason), c->target);
  return marked ? gp_fail_prefix(marked, c->target) : GP_OK;
}

static gp_status write_all(gp_checkpoint *c) {
  if (c->follows) return write_part(c);
  gp_status status = c->folder.temporary ? GP_OK : gp_folder_open(&c->folder, c->target);
  if (!status) status = fill(c, &c->folder);
  if (!status) status = gp_folder_commit(&c->folder);
  if (status) keep_reason(&c->reason); /* removing the folder may fail too */
  gp_folder_close(&c->folder);
  return status;
}

static void *lead(void *context) {
  gp_checkpoint *c = context;
  c->status = write_all(c);
  if (c->status && !c->reason) keep_reason(&c->reason);
  for (size_t i = 0; i < c->count; i++) { /* free copies of the state as early as possible */
    gp_archive_free(c->shards[i].archive);
    c->shards[i].archive = NULL;
  }
  atomic_store(&c->done, true);
  return NULL;
}

gp_status gp_checkpoint_start(gp_checkpoint *c) {
  const gp_thread_options options = {.name = "checkpoint"};
  GP_TRY(gp_thread_start(&c->leader, &options, lead, c));
  c->started = true;
  return GP_OK;
}

/* ---- ending -------------------------------------------------------------------------------- */

bool gp_checkpoint_is_done(const gp_checkpoint *c) { return !c->started || atomic_load(&c->done); }

gp_status gp_checkpoint_finish(gp_checkpoint *c) {
  if (c->started && !c->joined) pthread_join(c->leader, NULL);
  c->joined = true;
  return c->status ? gp_fail_text(c->status, c->reason ? c->reason : c->target) : GP_OK;
}

void gp_checkpoint_free(gp_checkpoint *c) {
  if (!c) return;
  if (c->started && !c->joined) pthread_join(c->leader, NULL);
  for (size_t i = 0; i < c->count; i++) {
    gp_archive_free(c->shards[i].archive);
    gp_free(c->shards[i].name);
    gp_free(c->shards[i].path);
    gp_free(c->shards[i].reason);
  }
  gp_free(c->shards);
  gp_folder_close(&c->folder); /* of a process that led and never started */
  gp_free(c->follows);
  gp_free(c->target);
  gp_free(c->state);
  gp_free(c->reason);
  gp_free(c);
}
