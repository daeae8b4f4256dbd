/* tests/c/io/serve_test.c - the server of pages: its answers, and that no client holds it up. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

enum { BIG = 8 << 20, ROUNDS = 2000 };

static gp_server *server;

static void open_server(void) { CHECK_STATUS(gp_server_open(0, &server), GP_OK); }

static void close_server(void) {
  gp_server_free(server);
  server = NULL;
}

static int connected(void) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)gp_server_port(server))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
  return fd;
}

static void send_text(int fd, const char *text) {
  CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* Lets the server work once; a request is answered with its path, "/big" with much more. */
static void serve(int milliseconds) {
  const char *path;
  CHECK_STATUS(gp_server_wait(server, milliseconds, &path), GP_OK);
  if (!path) return;
  static char big[BIG];
  bool much = strcmp(path, "/big") == 0;
  const void *body = much ? big : path;
  CHECK_STATUS(gp_server_answer(server, 200, "text/plain", body, much ? BIG : strlen(path)), GP_OK);
}

/* Reads until the server closes the connection; returns "" where it never does. */
static const char *answer_to(int fd) {
  static char text[4096];
  size_t size = 0;
  for (int i = 0; i < ROUNDS; i++) {
    serve(5);
    ssize_t got = recv(fd, text + size, sizeof text - 1 - size, MSG_DONTWAIT);
    if (got == 0) break;
    if (got > 0) size += (size_t)got;
    if (i == ROUNDS - 1) size = 0;
  }
  text[size] = '\0';
  close(fd);
  return text;
}

static const char *ask(const char *request) {
  int fd = connected();
  send_text(fd, request);
  return answer_to(fd);
}

/* Sends a request with the right host: "GET / HTTP/1.1". */
static const char *ask_line(const char *line) {
  static char request[8192];
  snprintf(request, sizeof request, "%s\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\n\r\n", line,
           gp_server_port(server));
  return ask(request);
}

static int code_of(const char *answer) {
  int code = 0;
  return sscanf(answer, "HTTP/1.1 %d ", &code) == 1 ? code : 0;
}

TEST(requests_get_what_they_deserve) {
  static const struct {
    const char *line;
    int code;
  } cases[] = {{"GET / HTTP/1.1", 200},
               {"GET /data.json?t=1 HTTP/1.0", 200},
               {"HEAD / HTTP/1.1", 200},
               {"POST / HTTP/1.1", 405},
               {"get / HTTP/1.1", 405},
               {"GET /../../etc/passwd HTTP/1.1", 400},
               {"GET /%2e%2e/ HTTP/1.1", 400},
               {"GET data HTTP/1.1", 400},
               {"GET http://elsewhere/ HTTP/1.1", 400},
               {"GET /", 400},
               {"GET / HTTP/2.0", 505},
               {"GET /\x01 HTTP/1.1", 400},
               {"", 405}};
  open_server();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int code = code_of(ask_line(cases[i].line));
    CHECK(code == cases[i].code);
    if (code != cases[i].code) printf("  '%s': %d\n", cases[i].line, code);
  }
  CHECK_TEXT(ask_line("GET /some/path HTTP/1.1"), "\r\n\r\n/some/path");
  CHECK(strstr(ask_line("HEAD /some/path HTTP/1.1"), "\r\n\r\n")[4] == '\0');
  char longest[6000];
  memset(longest, 'a', sizeof longest);
  memcpy(longest, "GET /", 5);
  longest[sizeof longest - 1] = '\0';
  CHECK(code_of(ask(longest)) == 431);
  close_server();
}

/* Another site's page may use a name that resolves to this machine. */
TEST(other_hosts_are_refused) {
  open_server();
  CHECK(code_of(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")) == 403);
  CHECK(code_of(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")) == 403);
  CHECK(code_of(ask("GET / HTTP/1.1\r\n\r\n")) == 400);
  CHECK(code_of(ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")) == 400);
  char request[128];
  snprintf(request, sizeof request, "GET / HTTP/1.1\nHost: localhost:%d\n\n",
           gp_server_port(server)); /* bare newlines end the head, too */
  CHECK(code_of(ask(request)) == 200);
  snprintf(request, sizeof request, "GET / HTTP/1.1\r\nhost:LocalHost:%d  \r\n\r\n",
           gp_server_port(server));
  CHECK(code_of(ask(request)) == 200);
  close_server();
}

TEST(slow_clients_hold_nobody_up) {
  open_server();
  int half = connected(), idle = connected(), big = connected();
  send_text(half, "GET / HT");
  char request[128];
  snprintf(request, sizeof request, "GET /big HTTP/1.1\r\nHost: localhost:%d\r\n\r\n",
           gp_server_port(server));
  send_text(big, request); /* and the client does not read */
  for (int i = 0; i < 20; i++) serve(1);
  CHECK(code_of(ask_line("GET / HTTP/1.1")) == 200);
  snprintf(request, sizeof request, "TP/1.1\r\nHost: localhost:%d\r\n\r\n", gp_server_port(server));
  send_text(half, request);
  CHECK(code_of(answer_to(half)) == 200);
  close(idle);
  close(big);
  for (int i = 0; i < 20; i++) serve(1);
  CHECK(code_of(ask_line("GET / HTTP/1.1")) == 200);
  close_server();
}

/* There are more connections than places, and none of them sends anything. */
TEST(idle_clients_give_way) {
  enum { MANY = 40 };
  int fd[MANY];
  open_server();
  for (int i = 0; i < MANY; i++) {
    fd[i] = connected();
    serve(1);
  }
  CHECK(code_of(ask_line("GET / HTTP/1.1")) == 200);
  for (int i = 0; i < MANY; i++) close(fd[i]);
  close_server();
}

TEST(a_port_that_is_taken_is_said) {
  gp_server *other = NULL;
  char number[16];
  open_server();
  snprintf(number, sizeof number, "%d", gp_server_port(server));
  CHECK_STATUS(gp_server_open(gp_server_port(server), &other), GP_EIO);
  CHECK_TEXT(gp_error_text(), number);
  CHECK_STATUS(gp_server_open(65536, &other), GP_ERANGE);
  CHECK_STATUS(gp_server_answer(server, 200, "text/plain", "", 0), GP_ESTATE);
  close_server();
}

TEST_MAIN(requests_get_what_they_deserve, other_hosts_are_refused, slow_clients_hold_nobody_up,
          idle_clients_give_way, a_port_that_is_taken_is_said)
