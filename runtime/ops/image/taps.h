/* ops/image/taps.h - the taps of a pooling window, by which its largest element is remembered.
 *
 * A window of kernel elements along an axis has as many taps, `dilation` apart; in two dimensions
 * they are counted row by row. A window of up to GP_TAPS_MOST taps keeps the number of its largest
 * element's tap in a byte, GP_TAPS_NONE if it has no element; others, and windows whose sizes
 * differ, keep the element's position in the image in 8 bytes, -1 for none. */
#ifndef GP_OPS_IMAGE_TAPS_H
#define GP_OPS_IMAGE_TAPS_H

#include "ops/image/lines.h"

enum { GP_TAPS_MOST = 255, GP_TAPS_NONE = 255 };

/* Do windows of this height and width keep bytes? */
GP_LINES_CALL int32_t gp_taps_fit(const gp_lines *h, const gp_lines *w) {
  return h->mode == GP_RESAMPLE_WINDOW && h->kernel <= GP_TAPS_MOST && w->kernel <= GP_TAPS_MOST &&
         h->kernel * w->kernel <= GP_TAPS_MOST;
}

/* Return how many taps lie before the image. */
GP_LINES_CALL gp_line gp_taps_hidden(const gp_lines *l, gp_line made) {
  const gp_line first = gp_lines_first(l, made);
  return first < 0 ? gp_lines_up(-first, l->dilation) : 0;
}

/* Return the tap of window `made` that lies on `read`; -1: none. */
GP_LINES_CALL gp_line gp_taps_of(const gp_lines *l, gp_line made, gp_line read) {
  const gp_line distance = read - gp_lines_first(l, made), tap = distance / l->dilation;
  if (distance < 0 || tap >= l->kernel || tap * l->dilation != distance) return -1;
  return tap;
}

#endif
