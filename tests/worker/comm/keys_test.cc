// Against the vectors of the documents that define them.

#include "worker/comm/keys.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

#include "worker/comm/handshake.h"

namespace assay::comm {
namespace {

TEST(ProofTest, IsTheHmacOfRfc4231) {
  // Test case 2.
  EXPECT_EQ(absl::BytesToHexString(Proof("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(DeriveKeyTest, IsTheHkdfOfRfc5869) {
  // Test case 1; its output is longer.
  const std::string secret(22, '\x0b');
  EXPECT_EQ(
      absl::BytesToHexString(DeriveKey(secret, absl::HexStringToBytes("000102030405060708090a0b0c"),
                                       absl::HexStringToBytes("f0f1f2f3f4f5f6f7f8f9"))),
      "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(SameBytesTest, ComparesLengthAndContent) {
  EXPECT_TRUE(SameBytes("", ""));
  EXPECT_TRUE(SameBytes("abc", "abc"));
  EXPECT_FALSE(SameBytes("abc", "abd"));
  EXPECT_FALSE(SameBytes("abc", "ab"));
}

// Whatever the two sides might mean differently makes other proofs and keys, and the four are never
// the same.
TEST(HandshakeTest, EverythingThatIsMeantIsProven) {
  const Handshake base{.token = "t",
                       .run = "runs/r-1",
                       .world_size = 2,
                       .rank = 1,
                       .rank_nonce = std::string(kNonceBytes, 'r'),
                       .server_nonce = std::string(kNonceBytes, 's')};
  std::vector<Handshake> all(7, base);
  all[1].token = "u";
  all[2].run = "runs/r-2";
  all[3].world_size = 3;
  all[4].rank = 0;
  all[5].rank_nonce[31] = 'x';
  all[6].server_nonce[0] = 'x';
  std::set<std::string> seen;
  for (const Handshake& one : all) {
    for (const std::string& bytes :
         {one.ServerProof(), one.RankProof(), one.KeyOfRank(), one.KeyOfServer()}) {
      EXPECT_TRUE(seen.insert(bytes).second);
    }
  }
}

}  // namespace
}  // namespace assay::comm
