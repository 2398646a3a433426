// A node whose certificates were revoked: it is out until an operator gives its agent a new token.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "tests/e2e/site.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kAsksMax = 2000;  // each takes the time of a process

std::string StateOf(const Site& site, const std::string& node) {
  const Outcome shown = site.Assay({"node", "show", node, "--json"});
  const Json json = Json::parse(shown.out, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json.value("state", "") : "";
}

bool AwaitState(const Site& site, const std::string& node, const std::string& state) {
  for (int i = 0; i < kAsksMax; ++i)
    if (StateOf(site, node) == state) return true;
  return false;
}

TEST(RevocationTest, ANodeComesBackWithANewTokenOnly) {
  Site site;
  Coordinator coordinator(&site, /*worker_count=*/1);
  ASSERT_TRUE(AwaitState(site, "local-0", "alive"));

  const Outcome revoked = site.Assay({"node", "revoke", "local-0", "--reason", "stolen"});
  ASSERT_EQ(revoked.exit_code, 0) << revoked.Text();
  EXPECT_EQ(StateOf(site, "local-0"), "gone");
  // Its agent ends, as its token was used, and is started again by the launcher.
  ASSERT_TRUE(coordinator.AwaitLogLine("agent started worker=local-0"));
  ASSERT_TRUE(coordinator.AwaitLogLine("agent started worker=local-0"));
  EXPECT_EQ(StateOf(site, "local-0"), "gone") << "the used token and the old key open nothing";

  const Outcome token = site.Assay({"admin", "enrol", "local-0"});
  ASSERT_EQ(token.exit_code, 0) << token.Text();
  WriteFile(site.Path("data/agents/local-0/enrolment.token"), token.out);

  EXPECT_TRUE(AwaitState(site, "local-0", "alive"));
  const Outcome audit = site.Assay({"admin", "audit"});
  EXPECT_THAT(audit.out, HasSubstr("WorkerRevoked"));
}

}  // namespace
}  // namespace assay::testing
