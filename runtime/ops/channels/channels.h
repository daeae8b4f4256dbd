/* ops/channels/channels.h - how the positions of an image are cut into parts to normalise its
 * channels: the same on every device, since the cut decides the order of the sums.
 *
 * An image N x C x H x W lies as rows of C channels, one a position. Its rows are one set, or one
 * set a sample; a set is cut into parts of neighbouring rows, which threads take. A part begins
 * with its own first row as an estimate of the mean: n rows then have a sum of squared distances
 * that is exact to n roundings, however far the mean is from 0. */
#ifndef GP_OPS_CHANNELS_CHANNELS_H
#define GP_OPS_CHANNELS_CHANNELS_H

#include "gpipe/op.h"

enum { GP_CHANNEL_ROWS = 64 }; /* per part: its sums keep a precision of 2^-18 in f32 */

typedef struct gp_channels {
  int64_t sets, rows, parts;      /* rows and parts of a set */
  int64_t channels, groups, each; /* each: channels of a group */
} gp_channels;

static inline int64_t gp_channel_parts(int64_t rows) {
  return rows / GP_CHANNEL_ROWS + (rows % GP_CHANNEL_ROWS > 0);
}

/* sets: 1, or as many as the image has samples. */
static inline gp_channels gp_channels_of(const gp_shape *image, int64_t sets, int64_t groups) {
  gp_channels c;
  const int64_t positions = image->dim[2] * image->dim[3];
  c.sets = sets;
  c.rows = sets == image->dim[0] ? positions : image->dim[0] * positions;
  c.parts = gp_channel_parts(c.rows);
  c.channels = image->dim[1], c.groups = groups;
  c.each = groups > 0 ? c.channels / groups : 0;
  return c;
}

#endif
