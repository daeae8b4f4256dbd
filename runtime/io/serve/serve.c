/* io/serve/serve.c - the server: one listening socket and some connections; it never blocks on any
 * of them.
 *
 * A connection reads until its head is whole, waits for its answer, writes it, and is closed. A
 * connection that takes longer than SECONDS is closed early, or even sooner if all places are taken
 * and others wait in the system's queue. Invariant: at most one connection is `asked`, the one that
 * gp_server_wait returned. */
#include "gpipe/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h> /* snprintf */
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/serve/request.h"

enum {
  PLACES = 32,
  HEAD = 4096,  /* bytes of a request's head */
  SECONDS = 10, /* for a client to send its request, and again to read a part of the answer */
  PATIENCE = 1, /* seconds without a byte after which a client may lose its place */
  QUEUE = 16
};

typedef enum phase { FREE, READING, READY, ASKED, WRITING } phase;

typedef struct connection {
  phase phase;
  int fd;
  int64_t deadline; /* milliseconds */
  char head[HEAD];
  size_t read;
  gp_request request;
  char *answer; /* [size], owned */
  size_t size, written;
} connection;

struct gp_server {
  int fd, port;
  connection place[PLACES];
  connection *asked;
};

/* ---- the system ----------------------------------------------------------------------------- */

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static gp_status refused(const char *what) {
  return gp_fail(GP_EIO, "server: cannot %s: %s", what, strerrordesc_np(errno));
}

static bool is_later(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

static gp_status listen_on(gp_server *server, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  socklen_t length = sizeof address;
  int yes = 1;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (server->fd < 0) return refused("make a socket");
  setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(server->fd, (struct sockaddr *)&address, sizeof address))
    return gp_fail(GP_EIO, "server: port %d cannot be used: %s, expected a free one (0: any)", port,
                   strerrordesc_np(errno));
  if (listen(server->fd, QUEUE)) return refused("listen");
  if (getsockname(server->fd, (struct sockaddr *)&address, &length))
    return refused("learn the port");
  server->port = ntohs(address.sin_port);
  return GP_OK;
}

gp_status gp_server_open(int port, gp_server **server) {
  if (port < 0 || port > 65535)
    return gp_fail(GP_ERANGE, "server: port is %d, expected 0 to 65535", port);
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **server, &memory));
  gp_server *made = memory;
  gp_status status = listen_on(made, port);
  if (status) {
    gp_server_free(made);
    return status;
  }
  *server = made;
  return GP_OK;
}

int gp_server_port(const gp_server *server) { return server->port; }

/* ---- connections ---------------------------------------------------------------------------- */

static void end(connection *c) {
  if (c->phase == FREE) return;
  close(c->fd);
  gp_free(c->answer);
  *c = (connection){0};
}

void gp_server_free(gp_server *server) {
  if (!server) return;
  for (int i = 0; i < PLACES; i++) end(&server->place[i]);
  if (server->fd >= 0) close(server->fd);
  gp_free(server);
}

static bool is_active(const connection *c) { return c->phase == READING || c->phase == WRITING; }

/* A free place, or that of a client which did nothing for a while and loses its place. */
static connection *find_place(gp_server *server) {
  connection *idle = NULL;
  int64_t time = now() + (SECONDS - PATIENCE) * 1000;
  for (int i = 0; i < PLACES; i++) {
    connection *c = &server->place[i];
    if (c->phase == FREE) return c;
    if (is_active(c) && c->deadline < time && (!idle || c->deadline < idle->deadline)) idle = c;
  }
  return idle;
}

static void accept_new(gp_server *server) {
  connection *c;
  while ((c = find_place(server))) {
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return; /* none is waiting, or it has gone */
    end(c);
    c->phase = READING;
    c->fd = fd;
    c->deadline = now() + SECONDS * 1000;
  }
}

static const char *reason_of(int code) {
  switch (code) {
  case 200: return "OK";
  case 400: return "Bad Request";
  case 403: return "Forbidden";
  case 404: return "Not Found";
  case 405: return "Method Not Allowed";
  case 431: return "Request Header Fields Too Large";
  case 505: return "HTTP Version Not Supported";
  default: return "Internal Server Error";
  }
}

/* Join head and body; the connection writes from now on. */
static gp_status prepare(connection *c, int code, const char *type, const void *body, size_t size) {
  char head[512];
  int length =
      snprintf(head, sizeof head,
               "HTTP/1.1 %d %s\r\nContent-Type: %.100s\r\nContent-Length: %zu\r\n"
               "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
               "X-Frame-Options: DENY\r\n%s"
               "Connection: close\r\n\r\n",
               code, reason_of(code), type, size, code == 405 ? "Allow: GET, HEAD\r\n" : "");
  size_t total, shown = c->request.head_only ? 0 : size;
  void *memory = NULL;
  GP_TRY(gp_size_add((size_t)length, shown, &total));
  GP_TRY(gp_alloc(total, &memory));
  c->answer = memory;
  memcpy(c->answer, head, (size_t)length);
  if (shown) memcpy(c->answer + length, body, shown);
  c->size = total;
  c->phase = WRITING;
  c->deadline = now() + SECONDS * 1000;
  return GP_OK;
}

static void refuse(connection *c, int code) {
  const char *text = reason_of(code);
  if (prepare(c, code, "text/plain; charset=utf-8", text, strlen(text))) end(c);
}

static void read_more(const gp_server *server, connection *c) {
  ssize_t got = recv(c->fd, c->head + c->read, HEAD - c->read, 0);
  if (got < 0 && is_later()) return;
  if (got <= 0) {
    end(c);
    return;
  }
  c->read += (size_t)got;
  if (gp_request_is_whole(c->head, c->read)) {
    int code = gp_request_read(c->head, c->read, server->port, &c->request);
    if (code)
      refuse(c, code);
    else
      c->phase = READY;
  } else if (c->read == HEAD) {
    refuse(c, 431);
  }
}

/* Read what the client still sends: unread bytes would make the system cut the answer off. */
static void drain(const connection *c) {
  char rest[HEAD];
  for (int i = 0; i < 16 && recv(c->fd, rest, sizeof rest, 0) > 0; i++) continue;
}

/* Write more of the answer. A client that reads a part of it gets new time. */
static void write_more(connection *c) {
  ssize_t sent = send(c->fd, c->answer + c->written, c->size - c->written, MSG_NOSIGNAL);
  if (sent < 0 && is_later()) return;
  if (sent > 0) {
    c->written += (size_t)sent;
    c->deadline = now() + SECONDS * 1000;
  }
  if (sent <= 0 || c->written == c->size) {
    shutdown(c->fd, SHUT_WR);
    drain(c);
    end(c);
  }
}

/* ---- waiting -------------------------------------------------------------------------------- */

static connection *ready_place(gp_server *server) {
  for (int i = 0; i < PLACES; i++)
    if (server->place[i].phase == READY) return &server->place[i];
  return NULL;
}

/* List what to wait for, polls[i + 1] for place i; returns the milliseconds to wait. */
static int set_polls(gp_server *server, struct pollfd *polls, int milliseconds) {
  int64_t time = now(), wait = milliseconds;
  bool room = find_place(server) != NULL;
  if (!room && wait > 100) wait = 100; /* by then a client may be idle */
  polls[0] = (struct pollfd){.fd = room ? server->fd : -1, .events = POLLIN};
  for (int i = 0; i < PLACES; i++) {
    connection *c = &server->place[i];
    bool active = is_active(c);
    if (active && c->deadline <= time) {
      end(c);
      active = false;
    }
    short events = c->phase == READING ? POLLIN : POLLOUT;
    polls[i + 1] = (struct pollfd){.fd = active ? c->fd : -1, .events = events};
    if (active && c->deadline - time < wait) wait = c->deadline - time;
  }
  return (int)wait;
}

static void serve(gp_server *server, const struct pollfd *polls) {
  if (polls[0].revents) accept_new(server);
  for (int i = 0; i < PLACES; i++) {
    connection *c = &server->place[i];
    if (polls[i + 1].fd < 0 || !polls[i + 1].revents) continue;
    if (c->phase == READING)
      read_more(server, c);
    else if (c->phase == WRITING)
      write_more(c);
  }
}

gp_status gp_server_wait(gp_server *server, int milliseconds, const char **path) {
  int64_t stop = now() + milliseconds;
  *path = NULL;
  if (server->asked) return gp_fail(GP_ESTATE, "server: the last request was not answered");
  for (int64_t left = milliseconds; left >= 0; left = stop - now()) {
    struct pollfd polls[PLACES + 1];
    connection *ready = ready_place(server);
    if (ready) {
      ready->phase = ASKED;
      server->asked = ready;
      *path = ready->request.path;
      return GP_OK;
    }
    int got = poll(polls, PLACES + 1, set_polls(server, polls, (int)left));
    if (got < 0 && errno == EINTR) return GP_OK;
    if (got < 0) return refused("wait");
    serve(server, polls);
    if (left == 0 && got == 0) break;
  }
  return GP_OK;
}

gp_status gp_server_answer(gp_server *server, int code, const char *type, const void *body,
                           size_t size) {
  connection *c = server->asked;
  if (!c) return gp_fail(GP_ESTATE, "server: there is no request to answer");
  server->asked = NULL;
  gp_status status = prepare(c, code, type, body, size);
  if (status) end(c);
  return status;
}
