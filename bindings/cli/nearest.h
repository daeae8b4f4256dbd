/* bindings/cli/nearest.h - the word that was probably meant. */
#ifndef GP_BINDINGS_CLI_NEAREST_H
#define GP_BINDINGS_CLI_NEAREST_H

enum { GP_NEAREST_LENGTH = 64 }; /* longer words are near nothing */

/* The number of letters to insert, leave out or change between two texts. */
int gp_edit_distance(const char *a, const char *b);
/* Find the name that was probably meant in the folder of a missing file; `found` receives its path,
 * at most `size` bytes with the final zero, or "". */
void gp_nearest_file(const char *missing, char *found, unsigned size);

#endif
