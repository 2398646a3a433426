#include "server/core/transitions.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace assay::core {
namespace {

// Every pair of states is tried; the legal ones are spelled here once more, as a person would.
template <typename State>
std::set<std::string> LegalMoves(const std::vector<State>& states) {
  std::set<std::string> legal;
  for (const State source : states)
    for (const State target : states)
      if (source != target && CheckMove(source, target).ok())
        legal.insert(absl::StrCat(ToString(source), ">", ToString(target)));
  return legal;
}

TEST(TransitionsTest, SubmissionsMoveForwardOnly) {
  using S = SubmissionState;

  const std::set<std::string> legal =
      LegalMoves<S>({S::kOpen, S::kRunning, S::kChecking, S::kValid, S::kInvalid, S::kCancelled});

  EXPECT_EQ(legal,
            (std::set<std::string>{"OPEN>RUNNING", "OPEN>INVALID", "OPEN>CANCELLED",
                                   "RUNNING>CHECKING", "RUNNING>INVALID", "RUNNING>CANCELLED",
                                   "CHECKING>VALID", "CHECKING>INVALID", "CHECKING>CANCELLED"}));
  EXPECT_FALSE(CheckMove(S::kOpen, S::kOpen).ok());
}

TEST(TransitionsTest, RunsNeverStartAgain) {
  using S = RunState;

  const std::set<std::string> legal =
      LegalMoves<S>({S::kQueued, S::kAssigned, S::kRunning, S::kUploading, S::kSucceeded,
                     S::kFailed, S::kCancelled});

  EXPECT_EQ(legal,
            (std::set<std::string>{"QUEUED>ASSIGNED", "QUEUED>CANCELLED", "ASSIGNED>RUNNING",
                                   "ASSIGNED>FAILED", "ASSIGNED>CANCELLED", "RUNNING>UPLOADING",
                                   "RUNNING>FAILED", "RUNNING>CANCELLED", "UPLOADING>SUCCEEDED",
                                   "UPLOADING>FAILED", "UPLOADING>CANCELLED"}));
  EXPECT_FALSE(CheckMove(S::kRunning, S::kRunning).ok());
}

TEST(TransitionsTest, WorkersComeBack) {
  using S = WorkerState;

  const std::set<std::string> legal =
      LegalMoves<S>({S::kAlive, S::kSuspect, S::kLost, S::kDraining, S::kGone});

  EXPECT_EQ(legal,
            (std::set<std::string>{"ALIVE>SUSPECT", "ALIVE>DRAINING", "ALIVE>GONE", "SUSPECT>ALIVE",
                                   "SUSPECT>LOST", "SUSPECT>DRAINING", "SUSPECT>GONE", "LOST>ALIVE",
                                   "LOST>DRAINING", "LOST>GONE", "DRAINING>ALIVE", "DRAINING>LOST",
                                   "DRAINING>GONE", "GONE>ALIVE", "GONE>DRAINING"}));
  EXPECT_TRUE(CheckMove(S::kAlive, S::kAlive).ok());
}

}  // namespace
}  // namespace assay::core
