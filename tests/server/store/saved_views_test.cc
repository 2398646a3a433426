// Saved views in the database.

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/log.h"
#include "server/core/view.h"
#include "server/store/reader.h"
#include "tests/server/store/history_fixture.h"

namespace assay::store {
namespace {

using ::testing::ElementsAre;

class SavedViewsStoreTest : public HistoryFixture {};

// Whose views somebody is told of.
TEST_F(SavedViewsStoreTest, ListsThoseOfTheirAuthorAndThoseThatAreShared) {
  const auto save = [this](const std::string& name, const std::string& role,
                           const std::string& organization, bool is_shared) {
    core::SaveView command{.view = {.name = name, .is_shared = is_shared, .kind = "run"}};
    core::Command whole{.principal = "ann",
                        .body = std::move(command),
                        .standing = {.role = role, .organization = organization}};
    world_.Handle({std::move(whole)});
    CHECK_OK(world_.outcome().replies[0].status());
  };
  save("fjord-own", "submitter", "Fjord", false);
  save("fjord-shared", "submitter", "Fjord", true);
  save("rival-own", "submitter", "Rival", false);
  save("rival-shared", "submitter", "Rival", true);
  save("reviewer-shared", "reviewer", "", true);
  save("reviewer-own", "reviewer", "", false);
  save("operator-shared", "operator", "", true);
  const auto names = [this](const std::string& role, const std::string& organization,
                            const std::string& principal) {
    std::vector<std::string> found;
    const std::vector<core::View> views =
        *(*Reader::Open(path_))->ListViews({role, organization}, principal);
    for (const core::View& view : views)
      found.push_back(view.name);
    return found;
  };

  EXPECT_THAT(names("submitter", "Fjord", "ann"),
              ElementsAre("fjord-own", "fjord-shared", "operator-shared"));
  EXPECT_THAT(names("submitter", "Fjord", "bob"), ElementsAre("fjord-shared", "operator-shared"));
  EXPECT_THAT(names("reviewer", "", "rita"), ElementsAre("operator-shared", "reviewer-shared"));
  EXPECT_THAT(names("operator", "", "olga"), ElementsAre("operator-shared", "reviewer-shared"));
  EXPECT_THAT(names("public", "", ""), ElementsAre("operator-shared"));
  EXPECT_TRUE(*store_->Load() == world_.state());
}

}  // namespace
}  // namespace assay::store
