/* gpipe/serve.h - pages for a browser on this machine. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_SERVE_H
#define GP_PUBLIC_SERVE_H

#include "gpipe/status.h"

/* A server of HTTP/1.1 that only this machine reaches: it listens on 127.0.0.1. It knows GET and
 * HEAD, answers one request a connection, and never waits for a client: those that send or read
 * slowly have no effect on the others, and are given up after some seconds. Source: RFC 9112. */
typedef struct gp_server gp_server;

/* port 0: any free port. Errors: GP_EIO, also if another program has the port. */
gp_status gp_server_open(int port, gp_server **server);
void gp_server_free(gp_server *server);
int gp_server_port(const gp_server *server);

/* Move bytes for at most so many milliseconds, or until a request is there or a signal comes.
 * *path receives the path that is asked for ("/", "/data.json": letters, digits and . _ - /
 * only, never ".."), borrowed until the answer; NULL if there is no request. The server itself
 * answers requests that it does not understand, or that name another host than this one (DNS
 * rebinding: a name of a page elsewhere made to point here). Errors: GP_EIO, GP_ESTATE before
 * the last request was answered. */
gp_status gp_server_wait(gp_server *server, int milliseconds, const char **path);
/* Answer the request that gp_server_wait returned last. code: 200, 404, 500. */
gp_status gp_server_answer(gp_server *server, int code, const char *type, const void *body,
                           size_t size);

#endif
