#include "common/ed25519.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;

// RFC 8032, section 7.1, TEST 2.
constexpr char kSecret[] = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
constexpr char kPublic[] = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
constexpr char kMessage[] = "r";
constexpr char kSignature[] =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

// The DER of RFC 8410 around a raw key, as PEM.
std::string Pem(const char* kind, const char* der_prefix, const char* key) {
  const std::string der = absl::HexStringToBytes(absl::StrCat(der_prefix, key));
  return absl::StrCat("-----BEGIN ", kind, "-----\n", absl::Base64Escape(der), "\n-----END ", kind,
                      "-----\n");
}
std::string PrivatePem() {
  return Pem("PRIVATE KEY", "302e020100300506032b657004220420", kSecret);
}
std::string PublicPem() {
  return Pem("PUBLIC KEY", "302a300506032b6570032100", kPublic);
}

TEST(Ed25519Test, MakesThePublishedSignature) {
  EXPECT_THAT(Ed25519Sign(PrivatePem(), kMessage),
              IsOkAndHolds(absl::HexStringToBytes(kSignature)));
}

TEST(Ed25519Test, TakesOnlyTheSignatureOfThisMessageByThisKey) {
  const std::string signature = absl::HexStringToBytes(kSignature);
  EXPECT_THAT(Ed25519Verify(PublicPem(), kMessage, signature), IsOk());

  std::string other = signature;
  other[0] = static_cast<char>(other[0] ^ 1);
  for (const auto& [message, bytes] : {std::pair<std::string, std::string>{"s", signature},
                                       {kMessage, other},
                                       {kMessage, ""},
                                       {kMessage, signature + "x"}}) {
    EXPECT_THAT(Ed25519Verify(PublicPem(), message, bytes), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(Ed25519Test, OtherKeysAreRefused) {
  for (const std::string& key : {std::string(), std::string("no PEM"), PublicPem()})
    EXPECT_THAT(Ed25519Sign(key, kMessage), StatusIs(absl::StatusCode::kInvalidArgument));
  for (const std::string& key : {std::string(), PrivatePem(), std::string(5000, 'x')})
    EXPECT_THAT(Ed25519Verify(key, kMessage, ""), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay
