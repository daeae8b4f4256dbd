/* device/cpu/bf16/tiles.h - the inner loop of each path: m <= 64 rows of A times a panel, added to
 * out. */
#ifndef GP_DEVICE_CPU_BF16_TILES_H
#define GP_DEVICE_CPU_BF16_TILES_H

#include "device/cpu/bf16/bf16.h"

typedef void gp_bf16_tiles(const gp_bf16_rows *rows, int64_t k, const void *panel,
                           float out[GP_BF16_ROWS][GP_BF16_COLUMNS]);

gp_bf16_tiles gp_bf16_emulated;
/* Call these only if the processor runs them; on processors other than x86 they use the
 * emulation. */
gp_bf16_tiles gp_bf16_avx512, gp_bf16_amx;
bool gp_bf16_has_avx512(void);
/* Is vdpbf16ps twice as fast as f32 on this processor? Intel's run it at half of f32's rate. */
bool gp_bf16_likes_avx512(void);
/* Does the processor report AMX, and does the system let this process use it? */
bool gp_bf16_has_amx(void);

/* Read pair p of a row; the last pair of an odd k has one element. */
static inline uint32_t gp_bf16_pair(const char *at, bool both) {
  uint32_t pair = 0;
  __builtin_memcpy(&pair, at, both ? 4 : 2);
  return pair;
}

#endif
