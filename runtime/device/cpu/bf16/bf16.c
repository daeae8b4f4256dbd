/* device/cpu/bf16/bf16.c - chooses the path of products, and does what all paths share: it packs
 * panels, and cuts k into blocks that stay in the cache. */
#include "device/cpu/bf16/bf16.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/half.h"
#include "device/cpu/bf16/tiles.h"
#include "device/cpu/bf16/trial.h"

enum { DEPTH = 1024 }; /* rows of a panel that one call of a path multiplies: 96 KiB */

/* ---- the path ------------------------------------------------------------------------------ */

static const struct {
  const char *name, *wish;
  gp_bf16_tiles *tiles;
} paths[GP_BF16_PATHS] = {
    {"emulated", "emulate", gp_bf16_emulated},
    {"avx512_bf16", "avx512", gp_bf16_avx512},
    {"amx_bf16", "amx", gp_bf16_amx},
};

static struct {
  gp_bf16_path path;
  const char *why;
} chosen;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Say why a path cannot be taken; NULL if it can. The paths give different bits, so the choice
 * depends on the make of the processor and never on a measured time. */
static const char *objection(gp_bf16_path path, bool asked) {
  if (path == GP_BF16_AMX && !(gp_bf16_has_amx() && gp_bf16_try(gp_bf16_amx)))
    return "AMX is missing, or did not run in a child process";
  if (path == GP_BF16_AVX512 && !gp_bf16_has_avx512()) return "the processor lacks AVX512_BF16";
  if (path == GP_BF16_AVX512 && !asked && !gp_bf16_likes_avx512())
    return "AVX512_BF16 has half of f32's rate on this make of processor";
  return NULL;
}

/* Start at the best path, or at the one that GPIPE_CPU_BF16 names, and go down to the first that
 * can be taken. If the variable names a path, chosen.why also explains a missing AMX. */
static void choose(void) {
  const char *wish = getenv("GPIPE_CPU_BF16"), *why;
  int path = GP_BF16_AMX;
  bool asked = false;
  chosen.why = "";
  for (int p = 0; wish && p < GP_BF16_PATHS; p++)
    if (strcmp(wish, paths[p].wish) == 0) path = p, asked = true;
  if (asked && path == GP_BF16_EMULATED) chosen.why = "GPIPE_CPU_BF16 asks for it";
  const int first = path;
  for (; (why = objection((gp_bf16_path)path, asked && path == first)) != NULL; path--)
    if (asked || path == GP_BF16_AVX512) chosen.why = why;
  chosen.path = (gp_bf16_path)path;
}

gp_bf16_path gp_bf16_path_now(void) {
  pthread_once(&once, choose);
  return chosen.path;
}

const char *gp_bf16_path_name(const char **why) {
  const gp_bf16_path path = gp_bf16_path_now();
  *why = chosen.why;
  return paths[path].name;
}

/* ---- panels -------------------------------------------------------------------------------- */

size_t gp_bf16_packed_bytes(int64_t k, int64_t n) {
  const size_t panels = (size_t)((n + GP_BF16_COLUMNS - 1) / GP_BF16_COLUMNS);
  return panels * gp_bf16_panel_bytes(k);
}

/* Pack two rows of B at a time. The first loop reads adjacent elements, which compilers
 * vectorize. */
#define PACK(name, T, ROUNDED)                                                                     \
  static void name(const gp_bf16_source *from, int64_t k, int64_t count, uint32_t *to) {           \
    const T *b = from->data;                                                                       \
    const int64_t row = from->row, column = from->column;                                          \
    for (int64_t p = 0; p < k / 2; p++, b += 2 * row, to += GP_BF16_COLUMNS) {                     \
      if (column == 1 && count == GP_BF16_COLUMNS)                                                 \
        for (int64_t j = 0; j < GP_BF16_COLUMNS; j++)                                              \
          to[j] = (uint32_t)ROUNDED(b[j]) | (uint32_t)ROUNDED(b[j + row]) << 16;                   \
      else                                                                                         \
        for (int64_t j = 0; j < count; j++)                                                        \
          to[j] = (uint32_t)ROUNDED(b[j * column]) | (uint32_t)ROUNDED(b[j * column + row]) << 16; \
      for (int64_t j = count; j < GP_BF16_COLUMNS; j++) to[j] = 0;                                 \
    }                                                                                              \
    for (int64_t j = 0; k % 2 && j < GP_BF16_COLUMNS; j++)                                         \
      to[j] = j < count ? ROUNDED(b[j * column]) : 0;                                              \
  }
#define AS_IT_IS(x) (x)
PACK(pack_f32, float, gp_bf16_narrow)
PACK(pack_bf16, uint16_t, AS_IT_IS)

void gp_bf16_pack(const gp_bf16_source *from, int64_t k, int64_t first, int64_t count,
                  void *panel) {
  gp_bf16_source part = *from;
  const size_t size = from->f32 ? sizeof(float) : sizeof(uint16_t);
  part.data = (const char *)from->data + (size_t)(first * from->column) * size;
  (from->f32 ? pack_f32 : pack_bf16)(&part, k, count, panel);
}

/* ---- products ------------------------------------------------------------------------------ */

void gp_bf16_multiply(const gp_bf16_rows *rows, int64_t k, const void *panel,
                      float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  gp_bf16_tiles *tiles = paths[gp_bf16_path_now()].tiles;
  for (int64_t first = 0; first < k; first += DEPTH) {
    gp_bf16_rows part = *rows;
    part.a = (const char *)rows->a + first / 2 * rows->pair_bytes;
    const void *below = (const char *)panel + first / 2 * GP_BF16_COLUMNS * 4;
    tiles(&part, k - first < DEPTH ? k - first : DEPTH, below, out);
  }
}
