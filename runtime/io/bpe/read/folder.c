/* io/bpe/read/folder.c - reads GPT-2's pair of files: vocab.json and merges.txt.
 *
 * Texts are cut by GPT-2's rule, which the files do not contain. */
#include <string.h>

#include "base/memory.h"
#include "io/bpe/read/draft.h"
#include "io/text/text.h"

/* Read a line "left right" at byte `at`, which ends with a zero byte already. */
static gp_status read_line(gp_draft *draft, const char *path, long line, char *text, size_t at) {
  char *space = strchr(text, ' ');
  if (space && space != text && space[1] && !strchr(space + 1, ' ')) {
    *space = '\0';
    return gp_draft_add_merge(draft, text, space + 1);
  }
  return gp_fail(GP_EFORMAT, "%s:%ld: byte %zu: '%.40s', expected two tokens and a space", path,
                 line, at, text);
}

/* Read merges.txt: the first line names the version, blank lines are skipped. */
static gp_status read_merges(gp_draft *draft, const char *path) {
  size_t start;
  GP_TRY(gp_draft_read(draft, path, &start));
  size_t end = draft->size - 1;
  long line = 1;
  for (size_t at = start; at < end; line++) {
    char *text = draft->text + at;
    size_t length = strcspn(text, "\n"), next = at + length + 1;
    text[length] = '\0';
    if (length && text[length - 1] == '\r') text[--length] = '\0';
    if (length && strncmp(text, "#version", 8) != 0)
      GP_TRY(read_line(draft, path, line, text, at - start));
    at = next;
  }
  return GP_OK;
}

/* Add a special token, which must be in the vocabulary; its text is borrowed from the options. */
static gp_status add_special(gp_draft *draft, const char *special) {
  for (size_t i = 0; i < draft->tokens; i++) {
    if (strcmp(draft->text + draft->token[i].at, special) != 0) continue;
    gp_added added = {
        .text = special, .size = strlen(special), .id = draft->token[i].id, .special = true};
    return gp_draft_add_added(draft, &added);
  }
  return gp_fail(GP_EINVAL, "special token '%.40s' is not in the vocabulary", special);
}

static gp_status finish(gp_draft *draft, const gp_tokenizer_options *options) {
  GP_TRY(gp_draft_add_bytes(draft, options && options->add_prefix_space, true));
  for (size_t i = 0; options && i < options->specials; i++) {
    if (!*options->special[i]) return gp_fail(GP_EINVAL, "special token %zu is empty", i + 1);
    GP_TRY(add_special(draft, options->special[i]));
  }
  if (!options || !options->special)
    if (add_special(draft, "<|endoftext|>") == GP_ENOMEM) return GP_ENOMEM; /* else there is none */
  return gp_draft_finish(draft);
}

/* Make "folder/name", with a zero byte at the end. */
static gp_status join_path(gp_text *path, const char *folder, const char *name) {
  GP_TRY(gp_text_string(path, folder));
  GP_TRY(gp_text_string(path, "/"));
  return gp_text_bytes(path, name, strlen(name) + 1);
}

gp_status gp_draft_read_folder(gp_draft *draft, const char *folder,
                               const gp_tokenizer_options *options) {
  gp_text vocabulary = {0}, merges = {0};
  gp_status status = join_path(&vocabulary, folder, "vocab.json");
  if (!status) status = join_path(&merges, folder, "merges.txt");
  if (!status) status = gp_draft_read_vocabulary(draft, vocabulary.data);
  if (!status) status = read_merges(draft, merges.data);
  if (!status) {
    status = finish(draft, options);
    if (status) gp_fail_prefix(status, folder);
  }
  gp_text_clear(&vocabulary);
  gp_text_clear(&merges);
  return status;
}
