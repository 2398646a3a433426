// Mutates what clients of HTTP/2, of the endpoint and of the certificate authority send, in a fixed
// number of reproducible ways; a broken property aborts. The libFuzzer targets (preset fuzz) search
// further from the same corpora.

#include <string>

#include "gtest/gtest.h"

#include "tests/fuzz/gate_properties.h"
#include "tests/fuzz/smoke.h"

namespace assay::testing {
namespace {

constexpr absl::string_view kPieces[] = {"\r\n",
                                         "\r\n\r\n",
                                         "\n",
                                         " ",
                                         ":",
                                         "HTTP/1.1",
                                         "HTTP/2.0",
                                         "Content-Length: 99999999999999999999\r\n",
                                         "Content-Length: -1\r\n",
                                         "Transfer-Encoding: chunked\r\n",
                                         "Expect: 100-continue\r\n",
                                         "Authorization: Bearer \r\n",
                                         "GET",
                                         "/../",
                                         "%00",
                                         "\xff\xff\xff",
                                         {"\0", 1},
                                         {"\0\0\0\x01\x04", 5},
                                         {"\0\x40\0\x09\0\0\0\0\x01", 9},
                                         {"\0\0\x08\x01\0\0\0\0\x01", 9},
                                         "-----BEGIN CERTIFICATE REQUEST-----\n"};

constexpr Smoke Mutants(int count) {
  return {.seed = 20261125, .pieces = kPieces, .mutant_count = count};
}

TEST(GateSmokeTest, FramesHold) {
  MutateAll(Mutants(20'000), "frames", CheckFrames);
}

// Each visit has a handshake.
TEST(GateSmokeTest, VisitsHold) {
  MutateAll(Mutants(500), "visit", CheckVisit);
}

TEST(GateSmokeTest, CertificateRequestsHold) {
  MutateAll(Mutants(500), "csr", CheckCertificateRequest);
}

TEST(GateSmokeTest, LongVisitsHold) {
  CheckVisit(std::string(100'000, 'a'));
  CheckVisit("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n");
  CheckVisit("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'a'));
}

}  // namespace
}  // namespace assay::testing
