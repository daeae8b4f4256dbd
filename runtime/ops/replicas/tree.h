/* ops/replicas/tree.h - the walk through the tree over replicas, the same on every device. */
#ifndef GP_OPS_REPLICAS_TREE_H
#define GP_OPS_REPLICAS_TREE_H

#include <stdint.h>

#ifdef __CUDACC__
#define GP_EVERYWHERE __host__ __device__
#else
#define GP_EVERYWHERE
#endif

enum { GP_REPLICA_BLOCKS = 64 }; /* of different sizes: enough for any number of replicas */

/* Count the merges of the two rightmost of `held` blocks behind replica r of `count`: blocks of one
 * size, and in the end all that are left. */
GP_EVERYWHERE static inline int gp_replica_merges(int64_t r, int64_t count, int held) {
  int merges = 0;
  if (r + 1 == count) return held - 1;
  while (!((r + 1) >> merges & 1)) merges++;
  return merges;
}

#undef GP_EVERYWHERE

#endif
