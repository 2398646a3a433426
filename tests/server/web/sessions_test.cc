#include "server/web/sessions.h"

#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/fake_clock.h"

namespace assay::web {
namespace {

using assay::testing::FakeClock;
using ::testing::IsNull;
using ::testing::MatchesRegex;
using ::testing::NotNull;

class SessionsTest : public ::testing::Test {
 protected:
  std::string Open(const std::string& principal, absl::Duration token_life = absl::Hours(24)) {
    return sessions_.Open({.principal = principal, .role = "reviewer"}, nullptr,
                          clock_.Wall() + token_life);
  }
  FakeClock clock_;
  Sessions sessions_{&clock_};
};

TEST_F(SessionsTest, AnIdIs128RandomBits) {
  const std::string id = Open("alice");

  EXPECT_THAT(id, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(id, Open("alice"));
  ASSERT_THAT(sessions_.Find(id), NotNull());
  EXPECT_EQ(sessions_.Find(id)->visitor.principal, "alice");
}

TEST_F(SessionsTest, EndsAfterTwelveHoursHoweverMuchItIsUsed) {
  const std::string id = Open("alice");

  clock_.Advance(absl::Hours(12) - absl::Seconds(1));
  EXPECT_THAT(sessions_.Find(id), NotNull());
  clock_.Advance(absl::Seconds(1));

  EXPECT_THAT(sessions_.Find(id), IsNull());
  EXPECT_EQ(sessions_.size(), 0u);
}

TEST_F(SessionsTest, EndsWithItsTokenIfThatIsSooner) {
  const std::string id = Open("alice", absl::Minutes(10));

  clock_.Advance(absl::Minutes(10));

  EXPECT_THAT(sessions_.Find(id), IsNull());
}

TEST_F(SessionsTest, AClockThatIsSetBackProlongsNone) {
  const std::string id = Open("alice");

  clock_.StepWall(-absl::Hours(48));
  clock_.Advance(absl::Hours(12));

  EXPECT_THAT(sessions_.Find(id), IsNull());
}

TEST_F(SessionsTest, IsOverOnceClosed) {
  const std::string id = Open("alice");
  const std::string other = Open("alice");

  sessions_.Close(id);
  sessions_.Close("nobody's");

  EXPECT_THAT(sessions_.Find(id), IsNull());
  EXPECT_THAT(sessions_.Find(other), NotNull());
}

TEST_F(SessionsTest, OnePersonPushesOutNobodyElse) {
  const std::string bob = Open("bob");
  const std::string first = Open("alice");
  for (size_t i = 0; i < Sessions::kOfPrincipalMax; ++i) {
    clock_.Advance(absl::Seconds(1));
    Open("alice");
  }

  EXPECT_THAT(sessions_.Find(first), IsNull()) << "the one that was used longest ago goes";
  EXPECT_THAT(sessions_.Find(bob), NotNull());
  EXPECT_EQ(sessions_.size(), Sessions::kOfPrincipalMax + 1);
}

TEST_F(SessionsTest, TheirNumberIsBounded) {
  const std::string used = Open("used");
  for (size_t i = 0; i < Sessions::kAllMax + 10; ++i) {
    clock_.Advance(absl::Seconds(1));
    ASSERT_THAT(sessions_.Find(used), NotNull()) << i;
    Open(absl::StrCat("person-", i));
  }

  EXPECT_EQ(sessions_.size(), Sessions::kAllMax);
}

TEST(FormTokensTest, FitsItsCookieAndNoOther) {
  const FormTokens forms;
  const std::string cookie = MakeCookieValue();
  const std::string token = forms.Make(cookie);

  EXPECT_TRUE(forms.Check(cookie, token));
  EXPECT_FALSE(forms.Check(MakeCookieValue(), token));
  EXPECT_FALSE(forms.Check("", forms.Make("")));
  EXPECT_FALSE(FormTokens().Check(cookie, token)) << "another process has another key";
}

TEST(FormTokensTest, LooksDifferentOnEachPage) {
  const FormTokens forms;
  const std::string cookie = MakeCookieValue();
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i)
    tokens.insert(forms.Make(cookie));

  EXPECT_EQ(tokens.size(), 100u);
  for (const std::string& token : tokens)
    EXPECT_TRUE(forms.Check(cookie, token));
}

TEST(FormTokensTest, EveryFlippedBitIsFound) {
  const FormTokens forms;
  const std::string cookie = MakeCookieValue();
  const std::string token = forms.Make(cookie);
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == '0' ? '1' : '0';
    EXPECT_FALSE(forms.Check(cookie, changed)) << i;
  }
  for (const std::string& wrong :
       {std::string(), token.substr(1), token + "0", std::string(128, 'g')})
    EXPECT_FALSE(forms.Check(cookie, wrong));
}

TEST(CookieTest, IsFoundAmongOthersAndNeverBelieved) {
  const std::string id(32, 'a');
  const struct {
    const char* name;
    std::string header;
    std::string value;
  } cases[] = {
      {"alone", "__Host-assay=" + id, id},
      {"among others", "theme=dark; __Host-assay=" + id + "; x=y", id},
      {"longer name", "__Host-assay-form=" + id, ""},
      {"prefixed name", "x__Host-assay=" + id, ""},
      {"too short", "__Host-assay=abc", ""},
      {"too long", "__Host-assay=" + id + "a", ""},
      {"no digits", "__Host-assay=" + std::string(32, '/'), ""},
      {"the first counts", "__Host-assay=zzz; __Host-assay=" + id, ""},
      {"none", "", ""},
  };
  for (const auto& c : cases)
    EXPECT_EQ(CookieValue(c.header, "__Host-assay"), c.value) << c.name;
}

}  // namespace
}  // namespace assay::web
