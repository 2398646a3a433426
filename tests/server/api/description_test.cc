// The lists of members (server/core/description.h) against the messages of the API.

#include "server/core/description.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

#include "assay/v1/resources.pb.h"

#include "server/api/convert.h"
#include "server/api/convert_allocation.h"
#include "server/api/convert_worker.h"
#include "server/api/proto_archive.h"
#include "server/core/node_figures.h"

namespace assay::api {
namespace {

using ::testing::ElementsAreArray;

// Collects the fields that a list names.
class FieldNames {
 public:
  template <typename T>
  void operator()(const char* name, const T& value, core::Shown shown = {}) {
    if (shown.how == core::Shown::How::kNot) return;
    if constexpr (requires { Fields(*this, value); }) {
      if (shown.how == core::Shown::How::kInPlace) return Fields(*this, value);
    }
    if constexpr (requires { value.valueless_by_exception(); }) {
      std::visit([this](const auto& kind) { names.insert(KindName(&kind)); }, value);
    } else {
      names.insert(shown.name == nullptr ? name : shown.name);
    }
  }
  template <typename T>
  void Added(const char* name, const T& value, core::Shown shown = {}) {
    (*this)(name, value, shown);
  }
  template <typename T>
  void Elsewhere(const T&) {}
  template <typename T>
  void Former(const T&) {}

  std::set<std::string> names;
};

// `by_hand`: the fields of M that convert fills in itself.
template <class M, typename T>
void ExpectAllFields(std::set<std::string> by_hand) {
  FieldNames listed;
  Fields(listed, static_cast<const T&>(T()));
  listed.names.merge(by_hand);
  std::set<std::string> fields;
  for (int i = 0; i < M::descriptor()->field_count(); ++i)
    fields.insert(M::descriptor()->field(i)->name());
  EXPECT_THAT(listed.names, ElementsAreArray(fields)) << M::descriptor()->full_name();
}

TEST(DescriptionTest, EveryFieldOfTheApiIsListedOrFilledInByHand) {
  ExpectAllFields<v1::Hyperparameter, core::Hyperparameter>({});
  ExpectAllFields<v1::HyperparameterBorrowing, core::Borrowing>({});
  ExpectAllFields<v1::BorrowedHyperparameter, core::BorrowedHyperparameter>({});
  ExpectAllFields<v1::BorrowingRecord, core::BorrowingRecord>({});
  ExpectAllFields<v1::TrainerWorkload, core::TrainerWorkload>({});
  ExpectAllFields<v1::CommandWorkload, core::CommandWorkload>({});
  ExpectAllFields<v1::SourceArchive, core::SourceArchive>({});
  // Of the kinds of workloads a spec has one.
  ExpectAllFields<v1::SubmissionSpec, core::SubmissionSpec>({"backend", "command"});
  ExpectAllFields<v1::ReferenceConvergence, core::Convergence>({});
  ExpectAllFields<v1::Throughput, core::Throughput>({"models_per_minute"});
  ExpectAllFields<v1::Note, core::Note>({});
  ExpectAllFields<v1::Scoring, rules::Scoring>({});
  ExpectAllFields<v1::Submission, core::Submission>({});
  ExpectAllFields<v1::NodeFigures, core::NodeFigures>({});
  ExpectAllFields<v1::ArtifactRef, core::ArtifactRef>({});
  ExpectAllFields<v1::Finding, core::Finding>({});
  ExpectAllFields<v1::Run, core::Run>(
      {"workers", "event_count", "first_touch_us", "observed_touch_us"});
  ExpectAllFields<v1::Capabilities, core::Capabilities>({});
  ExpectAllFields<v1::Worker, core::Worker>({"last_seen_time", "clock_offset_us",
                                             "clock_offset_uncertainty_us", "cache", "figures",
                                             "certificate_end_time"});
  ExpectAllFields<v1::CacheOrder, core::CacheOrder>({});
  ExpectAllFields<v1::CacheReport, core::CacheReport>({});
  ExpectAllFields<v1::CachedDataset, core::CachedDataset>({});
  ExpectAllFields<v1::Dataset, core::Dataset>({});
  ExpectAllFields<v1::View, core::View>({});
  ExpectAllFields<v1::Token, core::Token>({});
  ExpectAllFields<v1::Allocation, core::Allocation>({});
}

// The enumerators of a core type are looked up in the API's by name.
template <typename E>
void ExpectSameNames(const google::protobuf::EnumDescriptor* shown) {
  int count = 0;
  for (; !ToString(static_cast<E>(count)).empty(); ++count) {
    const std::string name(ToString(static_cast<E>(count)));
    EXPECT_NE(shown->FindValueByName(name), nullptr) << shown->full_name() << " " << name;
  }
  EXPECT_EQ(count + 1, shown->value_count()) << shown->full_name();  // and the unspecified one
}

TEST(DescriptionTest, EveryStateHasItsName) {
  ExpectSameNames<core::SubmissionState>(v1::Submission::State_descriptor());
  ExpectSameNames<core::RunState>(v1::Run::State_descriptor());
  ExpectSameNames<core::WorkerState>(v1::Worker::State_descriptor());
  ExpectSameNames<core::AllocationState>(v1::Allocation::State_descriptor());
  ExpectSameNames<core::CacheAction>(v1::CacheOrder::Action_descriptor());
  ExpectSameNames<core::CacheOrderState>(v1::CacheOrder::State_descriptor());
  ExpectSameNames<core::TokenKind>(v1::Token::Kind_descriptor());
  ExpectSameNames<core::Severity>(v1::Finding::Severity_descriptor());
}

TEST(DescriptionTest, WhatOnlyTheCoordinatorKnowsIsNotShown) {
  const core::Token token = {.id = core::TokenId{7}, .secret_sha256 = "5ec2e7"};
  EXPECT_EQ(ToProto(token).name(), "tokens/t-7");
  EXPECT_EQ(ToProto(token).ShortDebugString().find("5ec2e7"), std::string::npos);
  const core::Submission submission = {.id = core::SubmissionId{4}, .seeds = {4711}};
  EXPECT_EQ(ToProto(submission).ShortDebugString().find("4711"), std::string::npos);
}

TEST(DescriptionTest, TimesAreTimestampsAndUnknownOnesUnset) {
  core::Allocation allocation;
  allocation.spec.lifetime_us = 90'000'000;
  allocation.created_at_us = 1'234'567;
  allocation.workers = {"local-0", "local-1"};

  const v1::Allocation message = ToProto(allocation);

  EXPECT_EQ(message.create_time().seconds(), 1);
  EXPECT_EQ(message.create_time().nanos(), 234'567'000);
  EXPECT_FALSE(message.has_grant_time());
  EXPECT_EQ(message.lifetime().seconds(), 90);
  EXPECT_EQ(message.submission(), "");
  EXPECT_THAT(message.workers(), ElementsAreArray({"workers/local-0", "workers/local-1"}));
}

// Where there is no verdict, a reader must not find half of one.
TEST(DescriptionTest, AnEntryWithoutVerdictSaysWhyAndNoMore) {
  core::Submission submission;
  submission.convergence = core::Convergence{.error = "no reference points"};
  v1::ReferenceConvergence expected;
  expected.set_error("no reference points");
  EXPECT_EQ(ToProto(submission).reference().ShortDebugString(), expected.ShortDebugString());
}

}  // namespace
}  // namespace assay::api
