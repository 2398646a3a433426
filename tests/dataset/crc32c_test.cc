#include "common/dataset/crc32c.h"

#include <string>

#include "gtest/gtest.h"

#include "common/random.h"

namespace assay::dataset {
namespace {

std::string Counting(int from, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i)
    bytes.push_back(static_cast<char>(from + i * step));
  return bytes;
}

// RFC 3720, appendix B.4, and the polynomial's customary check value.
TEST(Crc32cTest, GivesThePublishedValues) {
  struct Case {
    std::string bytes;
    uint32_t crc;
  };
  const Case cases[] = {{"", 0},
                        {"123456789", 0xE3069283},
                        {std::string(32, '\0'), 0x8A9136AA},
                        {std::string(32, '\xFF'), 0x62A8AB43},
                        {Counting(0, 1), 0x46DD794E},
                        {Counting(31, -1), 0x113FDB5C}};

  for (const Case& c : cases) {
    EXPECT_EQ(Crc32c(c.bytes), c.crc);
    EXPECT_EQ(Crc32cByTable(c.bytes), c.crc);
  }
}

TEST(Crc32cTest, InstructionAndTableAgreeForAllLengthsAndAlignments) {
  const Stream stream(1, Purpose::kTest);
  std::string bytes;
  for (uint64_t i = 0; i < 300; ++i)
    bytes.push_back(static_cast<char>(stream.Bits(i)));

  for (size_t start = 0; start < 9; ++start)
    for (size_t size = 0; start + size <= bytes.size(); ++size) {
      const absl::string_view part = absl::string_view(bytes).substr(start, size);
      ASSERT_EQ(Crc32c(part), Crc32cByTable(part)) << start << " " << size;
    }
}

}  // namespace
}  // namespace assay::dataset
