// The value of a future, awaited with a deadline: a hang ends the program here, by name, and not
// when the patience of whoever runs all tests is over.

#ifndef TESTS_SUPPORT_IN_TIME_H_
#define TESTS_SUPPORT_IN_TIME_H_

#include <chrono>
#include <future>

#include "common/log.h"

namespace assay::testing {

template <typename T>
T InTime(std::future<T> future) {
  // Far more than anything takes; only a hang gets there.
  constexpr std::chrono::minutes kPatience(2);
  CHECK(future.wait_for(kPatience) == std::future_status::ready) << "never came";
  return future.get();
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_IN_TIME_H_
