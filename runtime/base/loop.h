/* base/loop.h - what a loop tells the compiler, in the words of gcc and of clang. */
#ifndef GP_BASE_LOOP_H
#define GP_BASE_LOOP_H

#define GP_PRAGMA(text) _Pragma(#text)

/* GP_UNROLL(n): make n copies of the body; 1: vectorise it, but do not unroll.
 * GP_INDEPENDENT: no iteration reads what another one writes. */
#if defined(__clang__)
#define GP_UNROLL(n)   GP_PRAGMA(clang loop unroll_count(n))
#define GP_INDEPENDENT GP_PRAGMA(clang loop vectorize(assume_safety))
#else
#define GP_UNROLL(n)   GP_PRAGMA(GCC unroll n)
#define GP_INDEPENDENT GP_PRAGMA(GCC ivdep)
#endif

#endif
