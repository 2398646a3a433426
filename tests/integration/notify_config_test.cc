// The hooks of a coordinator's configuration.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/config.h"
#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<v1::ServerConfig> Parse(const std::string& text) {
  return ParseServerConfig(
      "data_directory: '/d' unix_socket_path: '/s' launcher { kind: 'attach' } " + text,
      "/etc/assay/assayd.textproto");
}

TEST(NotifyConfigTest, EachProblemIsNamedWithTheRemedy) {
  EXPECT_THAT(
      Parse("notify { name: 'a/b' command: 'mail' timeout_s: -1 retry_for_s: 99999999 } "
            "notify { name: 'x' command: '/bin/true' on: ['entry.ended', 'entry.finished', '*'] } "
            "notify { name: 'x' on: 'run.*' }")
          .status(),
      testing::StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("/etc/assay/assayd.textproto: notify { name: \"a/b\" }: name is not"),
                HasSubstr("\"a/b\" }: command does not begin with the absolute path"),
                HasSubstr("\"a/b\" }: on is empty: choose among entry.submitted"),
                HasSubstr("\"a/b\" }: timeout_s is -1: give 1 to 3600"),
                HasSubstr("\"a/b\" }: retry_for_s is 99999999"),
                HasSubstr("nothing is called \"entry.finished\"; choose among"),
                HasSubstr("nothing is called \"*\""), HasSubstr("\"x\" }: command does not begin"),
                HasSubstr("\"x\" }: is there twice"))));
}

// A mailer that is missing keeps no coordinator from starting.
TEST(NotifyConfigTest, AProgramThatIsNotThereIsAWarning) {
  const auto config = Parse(
      "notify { name: 'there' command: '/bin/sh' on: 'entry.*' } "
      "notify { name: 'gone' command: '/no/such/program' on: ['run.failed', 'node.lost'] }");
  ASSERT_THAT(config.status(), testing::IsOk());
  EXPECT_THAT(ServerConfigWarnings(*config),
              ElementsAre(AllOf(HasSubstr("gone"), HasSubstr("cannot run /no/such/program"))));
}

}  // namespace
}  // namespace assay
