#include "common/client/cancellation.h"

#include "gtest/gtest.h"

namespace assay::client {
namespace {

TEST(CancellationTest, CallsWhatWasAddedAndNotWhatWasRemoved) {
  Cancellation cancellation;
  int kept = 0;
  int removed = 0;
  cancellation.Add([&kept] { ++kept; });
  cancellation.Remove(cancellation.Add([&removed] { ++removed; }));
  EXPECT_FALSE(cancellation.IsRaised());

  cancellation.Raise();

  EXPECT_TRUE(cancellation.IsRaised());
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(removed, 0);
}

TEST(CancellationTest, WhatComesLateIsCalledAtOnce) {
  Cancellation cancellation;
  cancellation.Raise();
  int calls = 0;

  const ScopedCancelAction action(&cancellation, [&calls] { ++calls; });

  EXPECT_EQ(calls, 1);
}

TEST(CancellationTest, AnActionEndsWithItsScope) {
  Cancellation cancellation;
  int calls = 0;
  {
    const ScopedCancelAction action(&cancellation, [&calls] { ++calls; });
  }

  cancellation.Raise();

  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace assay::client
