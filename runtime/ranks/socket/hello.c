/* ranks/socket/hello.c - the handshake: who is at the other end of a connection.
 *
 * The one that answers sends a challenge, the one that calls a hello with a proof, the one that
 * answers its own hello with a verdict. Each has a fixed size, and nothing else is read before they
 * fit. A process without the key learns the version of the program and a number, no more. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/sha256.h"
#include "gpipe/version.h"
#include "ranks/socket/socket.h"

enum { PROTOCOL = 3, BYTE_ORDER_MARK = 1 };

static const char magic[8] = {'g', 'p', 'i', 'p', 'e', 'r', 'n', 'k'};

/* ---- making ---------------------------------------------------------------------------------- */

/* A number that was never used before. Without the system's random numbers, which Linux has had
 * since 3.17, the handshake fails: the proofs then do not fit. */
static void draw(unsigned char nonce[16]) {
  if (getrandom(nonce, 16, 0) != 16) memset(nonce, 0, 16);
}

gp_challenge gp_challenge_new(void) {
  gp_challenge c = {.protocol = PROTOCOL, .order = BYTE_ORDER_MARK};
  memcpy(c.magic, magic, sizeof magic);
  draw(c.nonce);
  return c;
}

gp_hello gp_hello_new(const gp_net *net, const char *address) {
  gp_hello h = {.protocol = PROTOCOL,
                .rank = net->job.info.rank,
                .count = net->job.info.count,
                .process = (int32_t)getpid(),
                .version = GP_VERSION};
  memcpy(h.magic, magic, sizeof magic);
  snprintf(h.host, sizeof h.host, "%s", net->job.info.host);
  snprintf(h.address, sizeof h.address, "%s", address);
  draw(h.nonce);
  return h;
}

static void prove(const gp_net *net, const unsigned char nonce[16], const gp_hello *hello,
                  unsigned char proof[32]) {
  gp_proof(net->job.key, (gp_proof_text){nonce, 16},
           (gp_proof_text){hello, offsetof(gp_hello, proof)}, proof);
}

void gp_hello_sign(const gp_net *net, const unsigned char nonce[16], gp_hello *hello) {
  prove(net, nonce, hello, hello->proof);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Takes the same time wherever the two differ. */
static bool is_proven(const gp_net *net, const unsigned char nonce[16], const gp_hello *hello) {
  unsigned char proof[32], differ = 0;
  prove(net, nonce, hello, proof);
  for (size_t i = 0; i < sizeof proof; i++) differ |= proof[i] ^ hello->proof[i];
  return differ == 0;
}

static bool is_text(const char *text, size_t size) { return memchr(text, '\0', size) != NULL; }

gp_verdict gp_hello_judge(const gp_net *net, const unsigned char nonce[16], const gp_hello *h) {
  const gp_rank_info *own = &net->job.info;
  if (memcmp(h->magic, magic, sizeof magic) || !is_proven(net, nonce, h)) return GP_HELLO_KEY;
  if (!is_text(h->version, sizeof h->version) || !is_text(h->host, sizeof h->host) ||
      !is_text(h->address, sizeof h->address) || h->protocol != PROTOCOL ||
      strcmp(h->version, GP_VERSION))
    return GP_HELLO_VERSION;
  if (h->count != own->count || h->rank < 0 || h->rank >= own->count || h->rank == own->rank)
    return GP_HELLO_SIZE;
  return net->peers[h->rank].socket >= 0 ? GP_HELLO_TWICE : GP_HELLO_GOOD;
}

const char *gp_verdict_text(gp_verdict verdict) {
  static const char *const texts[] = {
      [GP_HELLO_GOOD] = "all is well",
      [GP_HELLO_KEY] = "it does not know the key of this job",
      [GP_HELLO_VERSION] = "it has another version of gpipe-lua",
      [GP_HELLO_SIZE] = "it says that it is a rank, or of a number of ranks, that does not fit",
      [GP_HELLO_TWICE] = "its rank is connected already"};
  return verdict <= GP_HELLO_TWICE ? texts[verdict] : "its verdict is not known";
}

gp_status gp_hello_check_challenge(const gp_challenge *c, const char *where) {
  if (memcmp(c->magic, magic, sizeof magic))
    return gp_fail(GP_ESTATE, "ranks: what listens at %s is no gpipe-lua, expected rank 0 of a job",
                   where);
  if (c->protocol != PROTOCOL || c->order != BYTE_ORDER_MARK)
    return gp_fail(GP_ESTATE,
                   "ranks: the gpipe-lua at %s speaks protocol %u with byte order %u, expected %d "
                   "and %d: the same version on all hosts",
                   where, (unsigned)c->protocol, (unsigned)c->order, (int)PROTOCOL,
                   (int)BYTE_ORDER_MARK);
  return GP_OK;
}

/* What differs is said on this side, which knows both. */
static gp_status refuse(const gp_net *net, const gp_hello *a, const char *where) {
  switch (a->verdict) {
  case GP_HELLO_KEY:
    return gp_fail(GP_ESTATE,
                   "ranks: the process at %s has another job key, expected the same GPIPE_JOB_KEY "
                   "(or the same job of the launcher) on all ranks",
                   where);
  case GP_HELLO_VERSION:
    return gp_fail(GP_ESTATE, "ranks: rank %d at %s has version %.23s, expected " GP_VERSION,
                   (int)a->rank, where, a->version);
  case GP_HELLO_SIZE:
    return gp_fail(GP_ESTATE,
                   "ranks: the process at %s is rank %d of %d, expected another than rank %d of %d",
                   where, (int)a->rank, (int)a->count, net->job.info.rank, net->job.info.count);
  default:
    return gp_fail(GP_ESTATE,
                   "ranks: the process at %s has a rank %d already, expected one of each", where,
                   net->job.info.rank);
  }
}

/* A verdict counts only with its proof: else anybody could end the job. Where the keys differ there
 * is none. */
gp_status gp_hello_check_answer(const gp_net *net, const unsigned char nonce[16],
                                const gp_hello *answer, const char *where) {
  gp_hello a = *answer;
  a.version[sizeof a.version - 1] = '\0';
  if (!is_proven(net, nonce, answer)) a.verdict = GP_HELLO_KEY;
  return a.verdict == GP_HELLO_GOOD ? GP_OK : refuse(net, &a, where);
}
