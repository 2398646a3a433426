#include "worker/comm/message_seals.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace assay::comm {
namespace {

constexpr Tag kTag = kFirstCollectiveTag + 5;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

MessageSeals SealsOf(int rank, const char* secret = "secret", const char* session = "session") {
  return MessageSeals({.rank = rank, .world_size = 3}, secret, session);
}

// Whether rank 1 takes `seal` for the first message of kTag from `peer`.
bool IsTaken(int peer, const std::string& text, const Seal& seal) {
  MessageSeals one = SealsOf(1);
  return one.IsFrom(peer, one.NumberNext({.peer = peer, .tag = kTag}), BytesOf(text), seal);
}

TEST(MessageSealsTest, TheOtherRankTakesThemInTheirOrder) {
  MessageSeals zero = SealsOf(0);
  MessageSeals one = SealsOf(1);
  for (const Tag tag : {Tag{1}, kTag, kTag, Tag{1}, kTag + 1}) {
    for (const std::string& text : {std::string(), std::string("a"), std::string(100'000, 'x')}) {
      const Seal seal = zero.Make({.peer = 1, .tag = tag}, BytesOf(text));
      const MessageNumber number = one.NumberNext({.peer = 0, .tag = tag});
      EXPECT_TRUE(one.IsFrom(0, number, BytesOf(text), seal)) << "tag " << tag;
    }
  }
}

TEST(MessageSealsTest, NothingElseIsTaken) {
  const std::string text = "gradients";
  const Seal seal = SealsOf(0).Make({.peer = 1, .tag = kTag}, BytesOf(text));
  ASSERT_TRUE(IsTaken(0, text, seal));

  EXPECT_FALSE(IsTaken(2, text, seal)) << "of another rank";
  EXPECT_FALSE(IsTaken(0, "gradiente", seal)) << "changed";
  EXPECT_FALSE(IsTaken(0, "gradient", seal)) << "shortened";
  EXPECT_FALSE(IsTaken(0, text, Seal{})) << "no seal";
  EXPECT_FALSE(IsTaken(0, text, SealsOf(0).Make({.peer = 2, .tag = kTag}, BytesOf(text))))
      << "to another rank";
  EXPECT_FALSE(IsTaken(0, text, SealsOf(1).Make({.peer = 0, .tag = kTag}, BytesOf(text))))
      << "sent back";
  EXPECT_FALSE(IsTaken(0, text, SealsOf(0).Make({.peer = 1, .tag = kTag + 1}, BytesOf(text))))
      << "of another operation";
  EXPECT_FALSE(IsTaken(0, text, SealsOf(0, "guess").Make({.peer = 1, .tag = kTag}, BytesOf(text))));
  EXPECT_FALSE(IsTaken(
      0, text, SealsOf(0, "secret", "earlier").Make({.peer = 1, .tag = kTag}, BytesOf(text))))
      << "recorded before";
  Seal flipped = seal;
  flipped[15] ^= std::byte{1};
  EXPECT_FALSE(IsTaken(0, text, flipped));
}

TEST(MessageSealsTest, ARepeatedMessageIsNotTaken) {
  MessageSeals one = SealsOf(1);
  const Seal seal = SealsOf(0).Make({.peer = 1, .tag = kTag}, BytesOf("x"));
  const Envelope from{.peer = 0, .tag = kTag};
  EXPECT_TRUE(one.IsFrom(0, one.NumberNext(from), BytesOf("x"), seal));
  EXPECT_FALSE(one.IsFrom(0, one.NumberNext(from), BytesOf("x"), seal));
}

// A nonce that comes twice would give the key away.
TEST(MessageCounterTest, NoNumberComesTwice) {
  MessageCounter counter;
  std::set<std::pair<Tag, uint64_t>> seen;
  for (int round = 0; round < 3; ++round) {  // of the tags
    for (const Tag tag : {kFirstCollectiveTag, kFirstCollectiveTag + 1, Tag{7}, ~Tag{0}}) {
      for (int i = 0; i < 4; ++i) {
        const MessageNumber number = counter.Next(tag);
        EXPECT_EQ(number.tag, tag);
        EXPECT_TRUE(seen.emplace(number.tag, number.count).second) << tag << " " << number.count;
      }
    }
  }
}

}  // namespace
}  // namespace assay::comm
