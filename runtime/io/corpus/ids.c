/* io/corpus/ids.c - the ids of a corpus in as little memory as they need.
 *
 * The buffer is mapped memory, which grows by moving pages instead of copying them, and becomes the
 * tensor without a copy. So there are never two copies of the ids. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/corpus.h"
#include "io/bpe/tokenizer.h"

enum { FIRST_ROOM = 1 << 16 };

struct gp_corpus {
  gp_tokenizer *tokenizer;
  int width;
  char *data; /* mapped, NULL at first */
  size_t used, room;
};

static void release(void *context) {
  gp_corpus *pack = context;
  if (pack->data) munmap(pack->data, pack->room);
  gp_tokenizer_free(pack->tokenizer);
  gp_free(pack);
}

gp_status gp_corpus_new(gp_tokenizer *tokenizer, gp_corpus **pack) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **pack, &memory));
  *pack = memory;
  (*pack)->tokenizer = gp_tokenizer_retain(tokenizer);
  (*pack)->width = gp_tokenizer_count(tokenizer) <= 65536 ? 2 : 4;
  return GP_OK;
}

void gp_corpus_free(gp_corpus *pack) {
  if (pack) release(pack);
}

int gp_corpus_width(const gp_corpus *pack) { return pack->width; }

/* Make room for `more` further bytes. */
static gp_status reserve(gp_corpus *pack, size_t more) {
  size_t wanted, room = pack->room ? pack->room : FIRST_ROOM;
  GP_TRY(gp_size_add(pack->used, more, &wanted));
  if (wanted <= pack->room) return GP_OK;
  while (room < wanted) GP_TRY(gp_size_mul(room, 2, &room));
  void *data = pack->data ? mremap(pack->data, pack->room, room, MREMAP_MAYMOVE)
                          : mmap(NULL, room, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return gp_fail(GP_ENOMEM, "ids: no memory for %zu bytes: %s", room, strerrordesc_np(errno));
  pack->data = data;
  pack->room = room;
  return GP_OK;
}

static gp_status put(void *context, const uint32_t *ids, size_t count) {
  gp_corpus *pack = context;
  GP_TRY(reserve(pack, count * (size_t)pack->width));
  unsigned char *to = (unsigned char *)pack->data + pack->used;
  for (size_t i = 0; i < count; i++)
    for (int b = 0; b < pack->width; b++) *to++ = (unsigned char)(ids[i] >> 8 * b);
  pack->used += count * (size_t)pack->width;
  return GP_OK;
}

gp_status gp_corpus_text(gp_corpus *pack, const char *text, size_t size,
                         const gp_encode_options *options) {
  return gp_tokenizer_run(pack->tokenizer, text, size, options, put, pack);
}

gp_status gp_corpus_id(gp_corpus *pack, int64_t id) {
  if (id < 0 || (uint64_t)id >= gp_tokenizer_count(pack->tokenizer))
    return gp_fail(GP_ERANGE, "ids: %lld, expected 0 to %zu", (long long)id,
                   gp_tokenizer_count(pack->tokenizer) - 1);
  uint32_t one = (uint32_t)id;
  return put(pack, &one, 1);
}

/* Turn the ids into a tensor. A new gp_corpus takes the memory over, because the caller goes on
 * using its own. */
gp_status gp_corpus_take(gp_corpus *pack, gp_tensor **bytes) {
  gp_shape shape = {.rank = 1, .dim = {(int64_t)pack->used}};
  if (!pack->used) return gp_tensor_new(GP_U8, &shape, bytes);
  gp_meta meta;
  gp_corpus *keeper;
  GP_TRY(gp_meta_make(GP_U8, &shape, &meta));
  GP_TRY(gp_corpus_new(pack->tokenizer, &keeper));
  gp_extent extent = {.data = pack->data, .bytes = pack->used, .release = release};
  extent.context = keeper;
  gp_status status = gp_tensor_wrap(&meta, &extent, bytes);
  if (status) {
    gp_corpus_free(keeper);
    return status;
  }
  keeper->data = pack->data;
  keeper->room = pack->room;
  pack->data = NULL;
  pack->used = pack->room = 0;
  return GP_OK;
}
