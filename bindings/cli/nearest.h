/* bindings/cli/nearest.h - the word that was probably meant. */
#ifndef GP_BINDINGS_CLI_NEAREST_H
#define GP_BINDINGS_CLI_NEAREST_H

enum { GP_NEAREST_LENGTH = 64 }; /* words of so many bytes are near nothing */

/* The number of letters to insert, leave out or change on the way from one text to the other. */
int gp_edit_distance(const char *a, const char *b);
/* Find the name in the folder of a missing file that was probably meant; `found` receives its path,
 * at most `size` bytes with the zero at the end, or "". */
void gp_nearest_file(const char *missing, char *found, unsigned size);

#endif
