// Mutates what clients of HTTP/2, of the endpoint and of the certificate authority send, in a fixed
// number of reproducible ways; a broken property aborts. The libFuzzer targets (preset fuzz) search
// further from the same corpora.

#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/fuzz/gate_properties.h"
#include "tests/fuzz/mutator.h"

namespace assay::testing {
namespace {

constexpr uint64_t kSeed = 20261125;

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

void MutateAll(const std::string& corpus_name, int mutant_count, void (*check)(absl::string_view)) {
  const std::vector<std::string> corpus = ReadCorpus(corpus_name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus)
    check(bytes);
  std::cout << "seed " << kSeed << "\n";
  Mutator mutator(kSeed, kPieces);
  for (int i = 0; i < mutant_count; ++i) {
    const std::string& bytes = mutator.Pick(corpus);
    check(mutator.Mutate(bytes, mutator.Pick(corpus)));
  }
}

TEST(GateSmokeTest, FramesHold) {
  MutateAll("frames", 20'000, CheckFrames);
}

// Each visit has a handshake.
TEST(GateSmokeTest, VisitsHold) {
  MutateAll("visit", 500, CheckVisit);
}

TEST(GateSmokeTest, CertificateRequestsHold) {
  MutateAll("csr", 500, CheckCertificateRequest);
}

TEST(GateSmokeTest, LongVisitsHold) {
  CheckVisit(std::string(100'000, 'a'));
  CheckVisit("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n");
  CheckVisit("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'a'));
}

}  // namespace
}  // namespace assay::testing
