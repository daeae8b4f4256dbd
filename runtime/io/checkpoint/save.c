/* io/checkpoint/save.c - writes the files of a checkpoint in parallel.
 *
 * A leading thread makes the folder, starts a thread for each further file, writes the first file
 * itself, joins the others, writes the manifest and puts the folder in place. So the caller can go
 * on at once. */
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "gpipe/checkpoint.h"
#include "io/checkpoint/folder.h"
#include "io/checkpoint/manifest.h"
#include "io/safetensors/archive.h"

typedef struct shard {
  char *name, *path;
  gp_archive *archive;
  uint64_t bytes; /* size of the file */
  uint32_t crc32;
  pthread_t thread;
  bool started;
  gp_status status;
  char *reason; /* of a failure, from the shard's own thread */
} shard;

struct gp_checkpoint {
  char *target, *state;
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
    c->shards[c->count] = (shard){.archive = archive};
    status = gp_copy_string(file, &c->shards[c->count].name);
  }
  if (status) gp_archive_free(archive);
  if (!status) c->count++;
  return status;
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

/* Write all files; those for which no thread could be started are written by this one. */
static gp_status write_shards(gp_checkpoint *c, const gp_folder *folder) {
  for (size_t i = 0; i < c->count; i++)
    GP_TRY(gp_folder_path(folder->temporary, c->shards[i].name, &c->shards[i].path));
  start_shards(c);
  for (size_t i = 0; i < c->count; i++)
    if (!c->shards[i].started) write_shard(&c->shards[i]);
  for (size_t i = 0; i < c->count; i++)
    if (c->shards[i].started) pthread_join(c->shards[i].thread, NULL);
  return first_failure(c);
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
  gp_status status = write_shards(c, folder);
  if (!status) status = write_manifest(c, folder);
  return status ? gp_fail_prefix(status, c->target) : GP_OK;
}

static gp_status write_all(gp_checkpoint *c) {
  gp_folder folder = {0};
  gp_status status = gp_folder_open(&folder, c->target);
  if (!status) status = fill(c, &folder);
  if (!status) status = gp_folder_commit(&folder);
  gp_folder_close(&folder);
  return status;
}

static void *lead(void *context) {
  gp_checkpoint *c = context;
  c->status = write_all(c);
  if (c->status) keep_reason(&c->reason);
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
  gp_free(c->target);
  gp_free(c->state);
  gp_free(c->reason);
  gp_free(c);
}
