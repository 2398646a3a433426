#include "common/client/endpoints.h"

#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/support/temp_dir.h"

namespace assay::client {
namespace {

using ::testing::HasSubstr;

EndpointSetting At(int level, const std::string& value) {
  return {.value = value, .origin = "setting " + value, .level = level};
}

TEST(ResolveEndpointTest, TheStrongerOfServerAndSocketCounts) {
  EndpointSettings settings = {.server = At(1, "a:1"), .socket = At(0, "/run/a.sock")};
  EXPECT_EQ(ResolveEndpoint(settings)->target, "unix:/run/a.sock");

  settings.socket->level = 2;
  EXPECT_EQ(ResolveEndpoint(settings)->target, "a:1");

  settings.socket->level = 1;
  const absl::Status refused = ResolveEndpoint(settings).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), HasSubstr("setting a:1 and setting /run/a.sock"));
}

TEST(ResolveEndpointTest, DefaultSocketsStandBehindAllSettingsAndTakeNoToken) {
  const assay::testing::TempDir dir;
  CHECK_OK(WriteFileAtomic(dir.Path("b.sock"), ""));
  EndpointSettings settings = {.token = At(0, "secret"),
                               .default_sockets = {dir.Path("a.sock"), dir.Path("b.sock")}};

  EXPECT_EQ(ResolveEndpoint(settings)->target, "unix:" + dir.Path("b.sock"));
  EXPECT_EQ(ResolveEndpoint(settings)->token, "");

  settings.default_sockets.pop_back();
  EXPECT_TRUE(absl::IsUnavailable(ResolveEndpoint(settings).status()));
}

TEST(ResolveEndpointTest, ATokenComesFromWhereTheStrongerSettingSays) {
  const assay::testing::TempDir dir;
  CHECK_OK(WriteFileAtomic(dir.Path("token"), " from-file\n"));
  EndpointSettings settings = {
      .server = At(0, "a:1"), .token = At(1, "direct"), .token_file = At(0, dir.Path("token"))};
  EXPECT_EQ(ResolveEndpoint(settings)->token, "from-file");

  settings.token_file->level = 1;
  EXPECT_EQ(ResolveEndpoint(settings)->token, "direct");

  std::istringstream input("from-input\nrest");
  settings.token_file = At(0, "-");
  settings.standard_input = &input;
  EXPECT_EQ(ResolveEndpoint(settings)->token, "from-input");
}

TEST(ResolveEndpointTest, AFileThatCannotBeReadIsNamedByItsSetting) {
  EndpointSettings settings = {.server = At(0, "a:1"), .ca = At(0, "/no/ca.crt")};
  const absl::Status refused = ResolveEndpoint(settings).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), HasSubstr("CA certificate named by setting /no/ca.crt"));
}

}  // namespace
}  // namespace assay::client
