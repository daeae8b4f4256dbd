/* ranks/socket/interface.c - by which of its addresses a host takes part in a job.
 *
 * A host has several: loopback, one for each network, those of containers and tunnels. The wrong
 * one cannot be reached by the others, or is slow, so there is a rule: the one that GPIPE_INTERFACE
 * names; else loopback if all ranks are on it; else the one from which the master is reached. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks/socket/socket.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static int port_of(const gp_address *a) {
  return ntohs(a->at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&a->at)->sin6_port
                                           : ((const struct sockaddr_in *)&a->at)->sin_port);
}

static void write_text(gp_address *a) {
  char host[128];
  if (getnameinfo((const struct sockaddr *)&a->at, a->length, host, sizeof host, NULL, 0,
                  NI_NUMERICHOST))
    snprintf(host, sizeof host, "?");
  snprintf(a->text, sizeof a->text, a->at.ss_family == AF_INET6 ? "[%s]:%d" : "%s:%d", host,
           port_of(a));
}

static void set(gp_address *a, const struct sockaddr *at, socklen_t length) {
  *a = (gp_address){.length = length};
  memcpy(&a->at, at, length);
  write_text(a);
}

void gp_address_set_port(gp_address *a, int port) {
  if (a->at.ss_family == AF_INET6)
    ((struct sockaddr_in6 *)&a->at)->sin6_port = htons((uint16_t)port);
  else
    ((struct sockaddr_in *)&a->at)->sin_port = htons((uint16_t)port);
  write_text(a);
}

static int look_up(const char *host, int flags, gp_address *address) {
  const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
  struct addrinfo *found;
  const int fault = getaddrinfo(host, NULL, &wanted, &found);
  if (fault) return fault;
  set(address, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return 0;
}

gp_status gp_address_find(const char *host, int port, gp_address *address) {
  const int fault = look_up(host, 0, address);
  if (fault)
    return gp_fail(GP_EIO, "ranks: the host '%s' (MASTER_ADDR) is not known here: %s", host,
                   gai_strerror(fault));
  gp_address_set_port(address, port);
  return GP_OK;
}

static bool is_loopback(const gp_address *a) {
  if (a->at.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&a->at)->sin6_addr);
  return ntohl(((const struct sockaddr_in *)&a->at)->sin_addr.s_addr) >> 24 == 127;
}

bool gp_address_parse(const char *text, gp_address *address) {
  char host[64];
  const char *colon = strrchr(text, ':');
  if (!colon || (size_t)(colon - text) >= sizeof host) return false;
  const bool bracket = *text == '[';
  snprintf(host, sizeof host, "%.*s", (int)(colon - text) - 2 * bracket, text + bracket);
  const long port = strtol(colon + 1, NULL, 10);
  if (port < 1 || port > 65535 || look_up(host, AI_NUMERICHOST, address)) return false;
  gp_address_set_port(address, (int)port);
  return true;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

static socklen_t length_of(int family) {
  return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The address of an interface with this name (NULL: of any that is up and no loopback), of this
 * family. */
static bool find_interface(const char *name, int family, gp_address *own) {
  struct ifaddrs *all;
  bool found = false;
  if (getifaddrs(&all)) return false;
  for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != family) continue;
    if (name ? strcmp(i->ifa_name, name) != 0
             : !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
      continue;
    set(own, i->ifa_addr, length_of(family));
    found = true;
  }
  freeifaddrs(all);
  return found;
}

/* The address from which another one is reached: a datagram socket has it once it is connected, and
 * nothing is sent. */
static bool find_route(const gp_address *to, gp_address *own) {
  struct sockaddr_storage at;
  socklen_t length = sizeof at;
  int made = socket(to->at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool found = made >= 0 && !connect(made, (const struct sockaddr *)&to->at, to->length) &&
                     !getsockname(made, (struct sockaddr *)&at, &length);
  if (found) set(own, (struct sockaddr *)&at, length);
  if (made >= 0) close(made);
  return found;
}

/* Debian names a host 127.0.1.1 in its own /etc/hosts: no other host reaches it there. So rank 0
 * listens at the address of the default route, or of the first interface. */
static bool find_outside(int family, gp_address *own) {
  gp_address far;
  const char *documentation = family == AF_INET6 ? "2001:db8::1" : "192.0.2.1";
  if (look_up(documentation, AI_NUMERICHOST, &far)) return false;
  gp_address_set_port(&far, 9);
  return find_route(&far, own) || find_interface(NULL, family, own);
}

static gp_status choose_named(const char *named, int family, gp_address *own) {
  if (find_interface(named, family, own)) return GP_OK;
  if (!look_up(named, AI_NUMERICHOST, own)) return GP_OK;
  return gp_fail(GP_EINVAL,
                 "ranks: GPIPE_INTERFACE is '%s', expected the name of an interface with an "
                 "%s address, or an address of this host (ip addr)",
                 named, family == AF_INET6 ? "IPv6" : "IPv4");
}

gp_status gp_interface_choose(const gp_rank_job *job, const gp_address *master, gp_address *own) {
  const char *named = getenv("GPIPE_INTERFACE");
  const int family = master->at.ss_family;
  if (named && *named) return choose_named(named, family, own);
  if (gp_rank_is_loopback(job->master)) return *own = *master, GP_OK;
  const gp_address to = *master; /* own may be the same place */
  if (is_loopback(&to) && find_outside(family, own)) return GP_OK;
  if (find_route(&to, own)) return GP_OK;
  return gp_fail(GP_EIO, "ranks: there is no way from here to %s (MASTER_ADDR): %s", to.text,
                 strerror(errno));
}

gp_status gp_master_find(const gp_rank_job *job, gp_address *master) {
  GP_TRY(gp_address_find(job->master, job->port, master));
  if (gp_rank_is_loopback(job->master) || !is_loopback(master)) return GP_OK;
  GP_TRY(gp_interface_choose(job, master, master));
  gp_address_set_port(master, job->port);
  return GP_OK;
}
