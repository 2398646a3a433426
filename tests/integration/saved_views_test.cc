// Saved views against a real coordinator, by the command line of several people.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "nlohmann/json.hpp"

#include "tests/cli/invocation.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using cli::ExitStatus;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SavedViewsTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    for (const char* const system : {"Small", "Large"}) {
      v1::SubmissionSpec spec = TinySpec("Ours", system == std::string("Small") ? 1 : 2);
      spec.set_system(system);
      ImportEntry(spec, system, absl::Now() - absl::Hours(1));
    }
  }

  // The command line of somebody with a token; each has their own home.
  Invocation& As(const std::string& principal, const std::string& role,
                 const std::string& organization = "") {
    std::unique_ptr<Invocation>& run = people_[principal];
    if (run != nullptr) return *run;
    v1::CreateTokenRequest request;
    request.set_request_id(MakeUuid());
    request.mutable_token()->set_kind(v1::Token::ACCESS);
    request.mutable_token()->set_role(role);
    request.mutable_token()->set_principal(principal);
    request.mutable_token()->set_organization(organization);
    const auto created = root_->Call(root_->admin(), &Admin::CreateToken, request);
    EXPECT_THAT(created, IsOk());
    run = std::make_unique<Invocation>();
    run->env.variables["ASSAY_SERVER"] = deployment_.Tls().target;
    run->env.variables["ASSAY_CA"] = run->Write("ca.pem", deployment_.ca().certificate_pem);
    run->env.variables["ASSAY_TOKEN"] = created->secret();
    return *run;
  }

  static json Items(Invocation* run, const std::string& line) {
    EXPECT_EQ(run->Run(line + " -o json"), ExitStatus::kDone) << run->err;
    return json::parse(run->out, nullptr, false)["items"];
  }

  std::map<std::string, std::unique_ptr<Invocation>> people_;
};

TEST_F(SavedViewsTest, AreAskedAgainAndSurviveARestart) {
  Invocation& ann = As("ann", "submitter", "Ours");
  const json asked =
      Items(&ann, "query nodes>=1 --order-by nodes --columns system,nodes --save sizes");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(ann.err, HasSubstr("assay query --view sizes"));

  EXPECT_EQ(Items(&ann, "query --view sizes"), asked);
  const json narrowed = Items(&ann, "query --view sizes system=Large --columns id,system");
  ASSERT_EQ(narrowed.size(), 1U);
  EXPECT_EQ(narrowed[0]["system"], "Large");
  EXPECT_FALSE(narrowed[0].contains("nodes"));
  // Groups, too, and the kind.
  const json groups =
      Items(&ann, "query --kind run --group-by system --aggregate count --save groups");
  deployment_.Kill();
  ASSERT_THAT(deployment_.Start(), IsOk());
  ann.env.variables["ASSAY_SERVER"] = deployment_.Tls().target;

  EXPECT_EQ(Items(&ann, "query --view groups"), groups);
  EXPECT_EQ(Items(&ann, "query --view sizes"), asked);
  EXPECT_EQ(ann.Run("query --view groups --kind entry"), ExitStatus::kUsage);
  EXPECT_THAT(ann.err, HasSubstr("the view 'groups' asks for run"));
  const json views = Items(&ann, "history view list");
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[1]["name"], "sizes");
  EXPECT_EQ(views[1]["columns"], json::array({"system", "nodes"}));

  ASSERT_EQ(ann.Run("history view remove sizes"), ExitStatus::kDone) << ann.err;
  EXPECT_EQ(ann.Run("query --view size"), ExitStatus::kNotFound);
  EXPECT_THAT(ann.err, AllOf(HasSubstr("there is no view 'size'"), HasSubstr("groups")));
}

TEST_F(SavedViewsTest, AreSharedWithThoseWhoMaySeeThem) {
  Invocation& ann = As("ann", "submitter", "Ours");
  Invocation& rival = As("rival", "submitter", "Rival");
  Invocation& mate = As("mate", "submitter", "Ours");
  Items(&ann, "query system=Small --columns id --save mine");
  Items(&ann, "query system=Large --columns id --save team --shared");
  Items(&mate, "query system=Small --columns id --save team");

  EXPECT_EQ(rival.Run("query --view team"), ExitStatus::kNotFound);
  EXPECT_EQ(Items(&rival, "history view list").size(), 0U);
  EXPECT_EQ(mate.Run("query --view mine"), ExitStatus::kNotFound);
  // One's own goes before another's of the same name.
  const json own = Items(&mate, "query --view team");
  const json shared = Items(&mate, "query --view ann/team");
  ASSERT_EQ(own.size(), 1U);
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_NE(own[0]["id"], shared[0]["id"]);
  EXPECT_EQ(mate.Run("history view remove mine"), ExitStatus::kNotFound);

  EXPECT_EQ(ann.Run("query --shared"), ExitStatus::kUsage);
  EXPECT_EQ(ann.Run("query nodes>0 --save Bad/Name"), ExitStatus::kUsage);
  EXPECT_THAT(ann.err, HasSubstr("cannot name a view"));
}

}  // namespace
}  // namespace assay::testing
