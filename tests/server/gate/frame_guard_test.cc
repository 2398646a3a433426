#include "server/gate/frame_guard.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::gate {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kData = 0x0;
constexpr uint8_t kPing = 0x6;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, size_t payload_bytes) {
  std::string frame;
  for (const size_t byte :
       {payload_bytes >> 16, payload_bytes >> 8, payload_bytes, size_t{type}, size_t{flags},
        size_t{stream} >> 24, size_t{stream} >> 16, size_t{stream} >> 8, size_t{stream}})
    frame.push_back(static_cast<char>(byte & 0xff));
  return absl::StrCat(frame, std::string(payload_bytes, 'x'));
}

std::string OrderlyTraffic() {
  return absl::StrCat(
      kPreface, Frame(kSettingsFrame, 0, 0, 18), Frame(kHeadersFrame, kEndHeadersFlag, 1, 300),
      Frame(kData, 0, 1, 1 << 20), Frame(kPing, 0, 0, 8), Frame(kHeadersFrame, 0, 3, 8000),
      Frame(kContinuationFrame, kEndHeadersFlag, 3, 4000), Frame(kData, kEndStreamFlag, 3, 0));
}

TEST(FrameGuardTest, LetsOrderlyTrafficPassHoweverItIsCut) {
  const std::string bytes = OrderlyTraffic();
  EXPECT_THAT(FrameGuard().Check(bytes), IsOk());
  for (const size_t step : {size_t{1}, size_t{2}, size_t{7}, size_t{9}, size_t{4096}}) {
    FrameGuard guard;
    for (size_t at = 0; at < bytes.size(); at += step)
      ASSERT_THAT(guard.Check(absl::string_view(bytes).substr(at, step)), IsOk()) << step;
  }
}

TEST(FrameGuardTest, EndsAHeaderBlockOfManyFramesBeforeItIsHandedOn) {
  // The quadratic work of the parser behind begins with a header that spans CONTINUATION frames.
  for (const size_t payload : {size_t{1}, size_t{16384}}) {
    FrameGuard guard;
    ASSERT_THAT(guard.Check(absl::StrCat(kPreface, Frame(kHeadersFrame, 0, 1, 100))), IsOk());
    absl::Status status;
    int frames = 0;
    while (status.ok() && frames < 1000) {
      status = guard.Check(Frame(kContinuationFrame, 0, 1, payload));
      ++frames;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_LE(frames, FrameGuard::kHeaderBlockFramesMax);
  }
}

TEST(FrameGuardTest, EndsAHeaderBlockThatIsTooLongAtItsAnnouncement) {
  FrameGuard guard;
  const std::string frame = Frame(kHeadersFrame, 0, 1, FrameGuard::kHeaderBlockBytesMax + 1);
  EXPECT_THAT(guard.Check(absl::StrCat(kPreface, frame.substr(0, 9))),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(FrameGuardTest, ABlockMayNotBeInterruptedNorGoOnUnbegun) {
  FrameGuard interrupted;
  EXPECT_THAT(interrupted.Check(
                  absl::StrCat(kPreface, Frame(kHeadersFrame, 0, 1, 10), Frame(kData, 0, 1, 10))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  FrameGuard unbegun;
  EXPECT_THAT(unbegun.Check(absl::StrCat(kPreface, Frame(kContinuationFrame, 0, 1, 10))),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameGuardTest, WhatIsNotHttp2IsEndedAtItsFirstWrongByte) {
  EXPECT_THAT(FrameGuard().Check("GET / HTTP/1.1\r\n"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(FrameGuard().Check("PRX"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::gate
