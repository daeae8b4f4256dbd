/* tests/c/base/sha256_test.c - the examples of the standards. */
#include "base/sha256.h"

#include "test.h"

static const char *hex(const unsigned char *digest) {
  static char text[2 * GP_SHA256_BYTES + 1];
  for (int i = 0; i < GP_SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return text;
}

static const char *sum_of(const char *text, int times) {
  unsigned char digest[GP_SHA256_BYTES];
  gp_sha256 sum = gp_sha256_begin();
  for (int i = 0; i < times; i++) gp_sha256_put(&sum, text, strlen(text));
  gp_sha256_end(&sum, digest);
  return hex(digest);
}

static const char *proof_of(const char *key, const char *first, const char *second) {
  unsigned char digest[GP_SHA256_BYTES];
  gp_proof(key, (gp_proof_text){first, strlen(first)}, (gp_proof_text){second, strlen(second)},
           digest);
  return hex(digest);
}

/* Source: FIPS 180-4, examples of NIST. */
TEST(sums_are_those_of_the_standard) {
  CHECK_TEXT(sum_of("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_TEXT(sum_of("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_TEXT(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1),
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK_TEXT(sum_of("aaaaaaaaaa", 100000),
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Source: RFC 4231, cases 2 and (with a key of 131 bytes) 6. */
TEST(keyed_sums_are_those_of_the_standard) {
  char key[132] = {0};
  memset(key, 0xaa, 131);
  CHECK_TEXT(proof_of("Jefe", "what do ya want ", "for nothing?"),
             "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK_TEXT(proof_of(key, "Test Using Larger Than Block-Size Key - ", "Hash Key First"),
             "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_MAIN(sums_are_those_of_the_standard, keyed_sums_are_those_of_the_standard)
