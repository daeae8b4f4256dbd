/* ranks/job/nodelist.c - SLURM's lists of hosts: names with commas between them, where a bracket
 * holds numbers and ranges, as in node[003-010,12],login1. Only the first host is wanted. */
#include <stdio.h>
#include <string.h>

#include "ranks/job/job.h"

/* Append n characters; false if they do not fit. */
static bool append(char host[GP_RANK_NAME], const char *text, size_t n) {
  const size_t length = strlen(host);
  if (length + n >= GP_RANK_NAME) return false;
  memcpy(host + length, text, n);
  host[length + n] = '\0';
  return true;
}

/* The first number of a bracket ends at a range, at the next number or at the bracket's end; its
 * zeros belong to the name. A name may have several brackets. */
gp_status gp_rank_first_host(const char *variable, const char *list, char host[GP_RANK_NAME]) {
  const char *at = list;
  bool fits = true;
  host[0] = '\0';
  while (fits && *at && *at != ',') {
    const size_t plain = strcspn(at, "[,");
    fits = append(host, at, plain);
    at += plain;
    if (*at != '[') continue;
    const size_t number = strspn(at + 1, "0123456789");
    const char *end = strchr(at, ']');
    if (!number || !end || !strchr("-,]", at[1 + number])) break;
    fits = fits && append(host, at + 1, number);
    at = end + 1;
  }
  if (fits && *host && (!*at || *at == ',')) return GP_OK;
  return gp_fail(GP_EINVAL, "ranks: %s is '%.200s', expected a list of hosts like node[003-010]",
                 variable, list);
}
