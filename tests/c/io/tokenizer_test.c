/* tests/c/io/tokenizer_test.c - one tokenizer is shared by many threads, and nothing leaks when
 * memory ends. The ids themselves are compared with the original's in
 * tests/spec/data/tokenizer_spec.lua. */
#include <pthread.h>

#include "folder.h"
#include "test.h"

static const char small[] =
    "{\"added_tokens\": [{\"id\": 5, \"content\": \"<e>\", \"special\": true},"
    "{\"id\": 6, \"content\": \"<w>\", \"single_word\": true}],"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\","
    "\"pattern\": {\"Regex\": \"bb+\"}, \"behavior\": \"MergedWithNext\"},"
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}]},"
    "\"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"a\", 0], \"cls\": [\"b\", "
    "1]},"
    "\"model\": {\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"\xc4\xa0\": 3, \"abab\": 4},"
    "\"merges\": [\"a b\", [\"ab\", \"ab\"]]}}";

static gp_tokenizer *load_small(void) {
  gp_tokenizer *tokenizer = NULL;
  CHECK_STATUS(gp_tokenizer_load(folder_write("t.json", small, sizeof small - 1), NULL, &tokenizer),
               GP_OK);
  return tokenizer;
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, TEXTS = 200, LENGTH = 400 };

/* Writes text i: a's, b's and blanks. */
static void write_text(char *text, unsigned i) {
  for (int k = 0; k < LENGTH; k++, i = i * 1664525 + 1013904223) text[k] = "ababa b"[(i >> 20) % 7];
}

/* Sums the ids of all texts, each times its place. */
static void *sum_of(void *tokenizer) {
  int64_t sum = 0;
  for (unsigned i = 0; i < TEXTS; i++) {
    char text[LENGTH];
    gp_tensor *ids = NULL;
    write_text(text, i);
    if (gp_tokenizer_encode(tokenizer, text, sizeof text, NULL, &ids)) return NULL;
    for (int64_t k = 0; k < gp_tensor_numel(ids); k++) sum += (k + 1) * gp_tensor_get_int(ids, k);
    gp_tensor_free(ids);
  }
  gp_tokenizer_free(tokenizer);
  return (void *)(intptr_t)sum;
}

TEST(threads_share_a_tokenizer) {
  folder_make();
  gp_tokenizer *tokenizer = load_small();
  void *alone = sum_of(gp_tokenizer_retain(tokenizer)), *sum = NULL;
  CHECK(alone != NULL);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&thread[i], NULL, sum_of, gp_tokenizer_retain(tokenizer)));
  gp_tokenizer_free(tokenizer); /* the last thread frees it */
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], &sum);
    CHECK(sum == alone);
  }
  folder_remove();
}

/* ---- memory --------------------------------------------------------------------------------- */

static gp_status load_and_use(const char *path, gp_tensor **ids) {
  gp_tokenizer *tokenizer = NULL;
  gp_status status = gp_tokenizer_load(path, NULL, &tokenizer);
  if (status) return status;
  status = gp_tokenizer_encode(tokenizer, "abab<e> b\xff", 9, NULL, ids);
  gp_tokenizer_free(tokenizer);
  return status;
}

TEST(a_failed_allocation_loses_nothing) {
  folder_make();
  const char *path = folder_write("t.json", small, sizeof small - 1);
  size_t live = gp_memory().live;
  gp_status status = GP_ENOMEM;
  uint64_t n = 0;
  while (status == GP_ENOMEM) {
    gp_tensor *ids = NULL;
    gp_memory_fail_at(++n);
    status = load_and_use(path, &ids);
    gp_memory_fail_at(0);
    gp_tensor_free(ids);
    CHECK(gp_memory().live == live);
  }
  CHECK(status == GP_OK && n > 20);
  folder_remove();
}

/* ---- tokens --------------------------------------------------------------------------------- */

TEST(special_tokens_stand_around_texts) {
  static const struct {
    const char *text;
    gp_encode_options options;
    const char *ids; /* a digit each */
  } cases[] = {
      {"abab", {0}, "1340"},
      {"abab", {.no_bounds = true}, "34"},
      {"a<e>b", {0}, "1305310"},
      {"<w>", {.no_bounds = true}, "6"},
      {"a<w>", {.specials_as_text = true, .no_bounds = true}, ""},
  };
  folder_make();
  gp_tokenizer *tokenizer = load_small();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gp_tensor *ids = NULL;
    gp_status status = gp_tokenizer_encode(tokenizer, cases[i].text, strlen(cases[i].text),
                                           &cases[i].options, &ids);
    CHECK_STATUS(status, *cases[i].ids ? GP_OK : GP_EFORMAT); /* no token stands for '<' */
    char text[16] = "";
    for (int64_t k = 0; !status && k < gp_tensor_numel(ids) && k < 15; k++)
      text[k] = (char)('0' + gp_tensor_get_int(ids, k));
    CHECK_TEXT(text, cases[i].ids);
    gp_tensor_free(ids);
  }
  gp_tokenizer_free(tokenizer);
  folder_remove();
}

TEST_MAIN(threads_share_a_tokenizer, a_failed_allocation_loses_nothing,
          special_tokens_stand_around_texts)
