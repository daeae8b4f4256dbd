/* ops/convolution/walk/conv_tiles.h - the positions of a convolution's result in tiles, for
 * products that read the source where it lies.
 *
 * At the edge of an image some taps fall beside it. Positions that meet the same taps are a region,
 * a smaller lattice; tiles are of one region each, so that no product with the zeros outside is
 * made: of an image of 7 x 7 and a kernel of 3 x 3 that saves 18 % of all products. It also makes
 * the source of a position lie at the same distance for every tap. */
#ifndef GP_OPS_CONVOLUTION_WALK_CONV_TILES_H
#define GP_OPS_CONVOLUTION_WALK_CONV_TILES_H

#include "device/cpu/scattered.h"
#include "ops/convolution/walk/conv_walk.h"

enum { GP_CONV_TILES = 16 }; /* of a block, at most: the weight is read once for them */

/* Tiles of all regions of all lattices. */
int64_t gp_conv_count_tiles(const gp_conv *c, bool transposed);

/* Neighbours in that order. */
typedef struct gp_conv_tiles {
  int64_t count, regions;
  gp_scattered_tile tile[GP_CONV_TILES];
  int64_t region_of[GP_CONV_TILES];
  gp_conv_lattice region[GP_CONV_TILES];
} gp_conv_tiles;

/* Tiles [first, last), at most GP_CONV_TILES, with the addresses of the source (the region's first
 * tap) and of the result. */
void gp_conv_find_tiles(const gp_conv_job *job, int64_t first, int64_t last, gp_conv_tiles *to);

#endif
