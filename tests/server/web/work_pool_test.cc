#include "server/web/work_pool.h"

#include <atomic>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/in_time.h"

namespace assay::web {
namespace {

using assay::testing::InTime;

TEST(WorkPoolTest, RefusesWhatItCannotHold) {
  WorkPool pool(1, 2);
  std::promise<void> started;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  ASSERT_TRUE(pool.Add([&started, released] {
    started.set_value();
    released.wait();
  }));
  started.get_future().wait();
  std::atomic<int> count = 0;

  EXPECT_TRUE(pool.Add([&count] { ++count; }));
  EXPECT_TRUE(pool.Add([&count] { ++count; }));
  EXPECT_FALSE(pool.Add([&count] { ++count; }));

  release.set_value();
  std::promise<int> last;
  while (!pool.Add([&] { last.set_value(count); })) {
  }
  EXPECT_EQ(InTime(last.get_future()), 2);
}

TEST(WorkPoolTest, DropsWhatWaitsWhenItStops) {
  WorkPool pool(1, 10);
  std::promise<void> started;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  pool.Add([&started, released] {
    started.set_value();
    released.wait();
  });
  started.get_future().wait();
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watched = held;
  pool.Add([kept = std::move(held)] {});

  std::thread stop([&pool] { pool.Stop(); });
  release.set_value();
  stop.join();

  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(pool.Add([] {}));
}

}  // namespace
}  // namespace assay::web
