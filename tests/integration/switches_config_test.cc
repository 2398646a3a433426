// The switches of a coordinator's configuration.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "server/config.h"
#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<v1::ServerConfig> Parse(const std::string& text) {
  return ParseServerConfig(
      "data_directory: '/d' unix_socket_path: '/s' launcher { kind: 'attach' } " + text,
      "/etc/assay/assayd.textproto");
}

TEST(SwitchesConfigTest, EachHasANameAndARating) {
  EXPECT_THAT(
      Parse("switches { watts: 100 } switches { name: 'leaf' watts: 0 } "
            "switches { name: 'leaf' watts: inf }")
          .status(),
      testing::StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("say which switch this is"), HasSubstr("\"leaf\" }: watts is 0"),
                HasSubstr("\"leaf\" }: watts is inf"), HasSubstr("\"leaf\" }: is there twice"))));
}

TEST(SwitchesConfigTest, TheExampleHoldsAndReachesTheRuntime) {
  const absl::StatusOr<std::string> text = ReadFile(EXAMPLES "/meters/assayd.textproto");
  ASSERT_THAT(text.status(), testing::IsOk());
  const absl::StatusOr<v1::ServerConfig> config = Parse("\n" + *text);
  ASSERT_THAT(config.status(), testing::IsOk());
  const runtime::RuntimeOptions options = RuntimeOptionsOf(*config);
  ASSERT_EQ(options.switches.size(), size_t{3});
  EXPECT_EQ(options.switches[2], (core::SwitchPower{.name = "ib-spine-1", .watts = 404}));
}

}  // namespace
}  // namespace assay
