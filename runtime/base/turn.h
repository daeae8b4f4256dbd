/* base/turn.h - transpose tiles of a matrix, for values that are read in one order and written in
 * another.
 *
 * Elements of two and four bytes, which most values have, are turned in registers: squares of eight
 * by eight, or of four by four. What is left at the edges goes element by element. All of it is
 * inline, because a pitch that the compiler knows is worth a tenth of the time. */
#ifndef GP_BASE_TURN_H
#define GP_BASE_TURN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A matrix in memory: elements of a line lie side by side, lines `pitch` elements apart. */
typedef struct gp_turn {
  size_t size; /* bytes of an element: 1, 2, 4 or 8 */
  const char *from;
  int64_t from_pitch;
  char *to;
  int64_t to_pitch;
  int64_t lines, width; /* of what is written */
} gp_turn;

typedef uint32_t gp_turn_line __attribute__((vector_size(16)));
typedef uint16_t gp_turn_halves __attribute__((vector_size(16)));
/* ---- squares --------------------------------------------------------------------------------- */

/* Four lines of four words. */
typedef struct gp_turn_square {
  gp_turn_line a, b, c, d;
} gp_turn_square;

static inline gp_turn_square gp_turn_words(gp_turn_square s) {
  const gp_turn_line ab = __builtin_shufflevector(s.a, s.b, 0, 4, 1, 5);
  const gp_turn_line cd = __builtin_shufflevector(s.c, s.d, 0, 4, 1, 5);
  const gp_turn_line ef = __builtin_shufflevector(s.a, s.b, 2, 6, 3, 7);
  const gp_turn_line gh = __builtin_shufflevector(s.c, s.d, 2, 6, 3, 7);
  return (gp_turn_square){
      __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
      __builtin_shufflevector(ef, gh, 0, 1, 4, 5), __builtin_shufflevector(ef, gh, 2, 3, 6, 7)};
}

static inline void gp_turn_put(char *to, int64_t pitch, gp_turn_square s) {
  memcpy(to, &s.a, sizeof s.a);
  memcpy(to + pitch, &s.b, sizeof s.b);
  memcpy(to + 2 * pitch, &s.c, sizeof s.c);
  memcpy(to + 3 * pitch, &s.d, sizeof s.d);
}

static inline void gp_turn_4x4(const uint32_t *from, int64_t from_pitch, uint32_t *to,
                               int64_t to_pitch) {
  gp_turn_square s;
  memcpy(&s.a, from, sizeof s.a);
  memcpy(&s.b, from + from_pitch, sizeof s.b);
  memcpy(&s.c, from + 2 * from_pitch, sizeof s.c);
  memcpy(&s.d, from + 3 * from_pitch, sizeof s.d);
  gp_turn_put((char *)to, 4 * to_pitch, gp_turn_words(s));
}

/* Make a line of pairs of the first halves of two lines, and one of the second halves. */
static inline void gp_turn_pair(const uint16_t *from, int64_t pitch, gp_turn_line *low,
                                gp_turn_line *high) {
  gp_turn_halves a, b;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + pitch, sizeof b);
  *low = (gp_turn_line)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  *high = (gp_turn_line)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/* Pairs are words. */
static inline void gp_turn_8x8(const uint16_t *from, int64_t from_pitch, uint16_t *to,
                               int64_t to_pitch) {
  gp_turn_square low, high;
  gp_turn_pair(from, from_pitch, &low.a, &high.a);
  gp_turn_pair(from + 2 * from_pitch, from_pitch, &low.b, &high.b);
  gp_turn_pair(from + 4 * from_pitch, from_pitch, &low.c, &high.c);
  gp_turn_pair(from + 6 * from_pitch, from_pitch, &low.d, &high.d);
  gp_turn_put((char *)to, 2 * to_pitch, gp_turn_words(low));
  gp_turn_put((char *)(to + 4 * to_pitch), 2 * to_pitch, gp_turn_words(high));
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Define gp_turn_<T>: whole squares of so many elements a side, then the edges. Pitches are read
 * once, because what is written might be where they lie. */
#define GP_TURN(T, SQUARE, turn)                                                                   \
  __attribute__((always_inline)) static inline void gp_turn_##T(const gp_turn *t) {                \
    const T *from = (const T *)(const void *)t->from;                                              \
    T *to = (T *)(void *)t->to;                                                                    \
    const int64_t far = t->from_pitch, apart = t->to_pitch, wide = t->width, high = t->lines;      \
    const int64_t lines = high / SQUARE * SQUARE, width = wide / SQUARE * SQUARE;                  \
    for (int64_t c = 0; c < width; c += SQUARE)                                                    \
      for (int64_t r = 0; r < lines; r += SQUARE)                                                  \
        turn(from + c * far + r, far, to + r * apart + c, apart);                                  \
    for (int64_t c = 0; c < wide; c++)                                                             \
      for (int64_t r = c < width ? lines : 0; r < high; r++)                                       \
        to[r * apart + c] = from[c * far + r];                                                     \
  }
#define GP_TURN_ONE(from, from_pitch, to, to_pitch)                                                \
  (void)(from_pitch), (void)(to_pitch), *(to) = *(from)

GP_TURN(uint8_t, 1, GP_TURN_ONE)
GP_TURN(uint16_t, 8, gp_turn_8x8)
GP_TURN(uint32_t, 4, gp_turn_4x4)
GP_TURN(uint64_t, 1, GP_TURN_ONE)

/* Write element c of line r from element r of line c. */
__attribute__((always_inline)) static inline void gp_turn_tile(const gp_turn *t) {
  if (t->size == 4) gp_turn_uint32_t(t);
  if (t->size == 2) gp_turn_uint16_t(t);
  if (t->size == 1) gp_turn_uint8_t(t);
  if (t->size == 8) gp_turn_uint64_t(t);
}

#endif
