/* io/grow.h - arrays that grow while a file is read. */
#ifndef GP_IO_GROW_H
#define GP_IO_GROW_H

#include "base/memory.h"

/* Make room for element `count` of `array`, which has room for `room` elements (both change when it
 * grows). On failure it returns from the calling function. */
#define GP_GROW(array, count, room)                                                                \
  do {                                                                                             \
    void *gp_grown_ = (array);                                                                     \
    GP_TRY(gp_grow_array((count), &(room), sizeof *(array), &gp_grown_));                          \
    (array) = gp_grown_;                                                                           \
  } while (0)

#endif
