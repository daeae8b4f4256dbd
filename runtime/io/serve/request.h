/* io/serve/request.h - the head of a request. */
#ifndef GP_IO_SERVE_REQUEST_H
#define GP_IO_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum { GP_REQUEST_PATH = 256 };

typedef struct gp_request {
  char path[GP_REQUEST_PATH];
  bool head_only; /* HEAD: the answer has no body */
} gp_request;

/* Does text[size] hold a whole head? It ends with an empty line. */
bool gp_request_is_whole(const char *text, size_t size);
/* Read a whole head. Returns 0, or the code with which to answer a bad request: 400, 403 for
 * another host, 405, 505. */
int gp_request_read(const char *text, size_t size, int port, gp_request *request);

#endif
