/* bindings/cli/nearest.c - guesses the word that was meant by an unknown one. */
#include "nearest.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The smallest of three: the ways to insert, leave out or change a letter. */
static int smallest(int a, int b, int c) {
  int m = a < b ? a : b;
  return m < c ? m : c;
}

/* The table of distances is kept one row at a time; `diagonal` is the entry above to the left.
 * Texts that are too long are far from everything. Source: Wagner and Fischer 1974. */
int gp_edit_distance(const char *a, const char *b) {
  int row[GP_NEAREST_LENGTH];
  int width = (int)strnlen(b, GP_NEAREST_LENGTH);
  if (width == GP_NEAREST_LENGTH || strnlen(a, GP_NEAREST_LENGTH) == GP_NEAREST_LENGTH)
    return GP_NEAREST_LENGTH;
  for (int j = 0; j <= width; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= width; j++) {
      int above = row[j];
      row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[width];
}

/* A name that only lacks its ending is nearer than any typing error. */
static int distance_of(const char *typed, const char *name) {
  size_t length = strlen(typed);
  if (strncmp(name, typed, length) == 0 && strcmp(name + length, ".lua") == 0) return 0;
  return gp_edit_distance(typed, name);
}

/* Hidden files are never suggested. Among equally near names the first in the alphabet wins, so
 * that the folder's order does not matter. */
void gp_nearest_file(const char *missing, char *found, unsigned size) {
  const char *slash = strrchr(missing, '/'), *typed = slash ? slash + 1 : missing;
  char folder[1024];
  int least = strlen(typed) > 4 ? 3 : 2; /* one error in a short name, two in a longer one */
  *found = 0;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - missing + 1) : 2,
           slash ? missing : "./");
  DIR *entries = opendir(folder);
  if (!entries) return;
  for (struct dirent *e; (e = readdir(entries));) {
    int distance = e->d_name[0] == '.' ? GP_NEAREST_LENGTH : distance_of(typed, e->d_name);
    const char *best = found + (slash && *found ? slash - missing + 1 : 0);
    bool first = distance == least && *found && strcmp(e->d_name, best) < 0; /* of equals */
    if (distance > least || (distance == least && !first)) continue;
    least = distance;
    snprintf(found, size, "%.*s%s", slash ? (int)(slash - missing + 1) : 0, missing, e->d_name);
  }
  closedir(entries);
}
