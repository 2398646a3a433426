#include "worker/comm/registry.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/world.h"
#include "worker/comm/collective.h"
#include "worker/comm/ring.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Soon;

TEST(RegistryTest, EveryNameOpensAWorldOfOneThatWorks) {
  EXPECT_THAT(CollectiveNames(), ElementsAre("single", "ucx"));
  const RealClock clock;
  for (const std::string& name : CollectiveNames()) {
    const CollectiveOptions options{.rendezvous_address = "127.0.0.1:0", .token = "secret"};
    const absl::StatusOr<std::unique_ptr<Collective>> comm =
        OpenCollective(name, options, &clock, Soon());
    ASSERT_THAT(comm, IsOk()) << name;
    EXPECT_THAT(Barrier(comm->get(), Soon()), IsOk());
    EXPECT_THAT((*comm)->Close(Soon()), IsOk());
  }
}

TEST(RegistryTest, WrongOptionsAreToldWithTheRemedy) {
  const RealClock clock;
  EXPECT_THAT(OpenCollective("mpi", {}, &clock, Soon()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("single, ucx")));
  EXPECT_THAT(OpenCollective("single", {.world_size = 2}, &clock, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use \"ucx\"")));
  EXPECT_THAT(OpenCollective("ucx", {.rank = 2, .world_size = 2}, &clock, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 2")));
  EXPECT_THAT(OpenCollective("ucx", {.rendezvous_address = "127.0.0.1:0"}, &clock, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")));
}

}  // namespace
}  // namespace assay::comm
