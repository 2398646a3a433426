// The coordinator's entries as common/analysis/series.h and set_comparison.h look at them, and what
// these find as JSON. Nothing is cached. Functions that take a client block and fail as it does;
// the others are pure. Thread-safe.

#ifndef COMMON_CLIENT_SET_HISTORY_H_
#define COMMON_CLIENT_SET_HISTORY_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/analysis/history_note.h"
#include "common/analysis/series.h"
#include "common/analysis/set_comparison.h"
#include "common/analysis/trend.h"
#include "common/client/client.h"
#include "common/client/json.h"
#include "common/client/pages.h"

namespace assay::client {

// The runs that make up the entry's result (RunsThatCount): those with a time that counts in its
// round, which reached the target and say their epochs; the others are its failed ones.
analysis::RunSet RunSetOf(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// Which series the entry belongs to: its scale and batch are those that its first run has logged.
analysis::SeriesKey SeriesKeyOf(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// The entry as far as notes on it are understood.
analysis::NotedEntry NotedEntryOf(const v1::Submission& entry);

// "e-2 is 12 % faster than e-1 ...", and of each measure means, ratio, interval:
// assay.set_comparison/v1.
Json SetComparisonJson(const analysis::SetComparison& comparison);

// The runs of two entries (e-42) compared. nullopt if they are not of one benchmark and metric.
absl::StatusOr<std::optional<analysis::SetComparison>> CompareEntries(const Client& client,
                                                                      const std::string& a,
                                                                      const std::string& b);

// The runs of two groups of entries, each taken as one set, called "set A" and "set B".
// INVALID_ARGUMENT, which names an entry, if a group is empty, an entry is in both, or not all are
// of one benchmark and metric. Reads the runs of each; `progress` is told the id before.
absl::StatusOr<analysis::SetComparison> CompareGroups(
    const Client& client, std::span<const v1::Submission> a, std::span<const v1::Submission> b,
    absl::FunctionRef<void(const std::string&)> progress);

struct SetHistory {
  std::vector<analysis::Series> series;    // by key
  std::map<std::string, EntryView> views;  // of each set of a series, by id
};

// The series that `entries` belong to, as far as these make them up. Reads the runs of each.
// `progress` is told the id before it is read.
absl::StatusOr<SetHistory> ReadSetHistory(const Client& client,
                                          std::span<const v1::Submission> entries,
                                          const analysis::SeriesOptions& options,
                                          absl::FunctionRef<void(const std::string&)> progress);

// What two sets of a series were measured with that may explain a change between them: "field",
// "before" and "after" of hyperparameters, settings, workload, rules and nodes that differ.
Json WhatDiffers(const EntryView& before, const EntryView& after);

// A series as JSON: assay.series/v1. With all of its sets.
Json SeriesJson(const analysis::Series& series);

// The changes of a series, vetoed ones too, each with what differs: assay.change/v1.
Json ChangesJson(const analysis::Series& series, const std::map<std::string, EntryView>& views);

// Entries that have a result, under the names by which `aliases` knows them.
std::vector<analysis::RoundResult> RoundResultsOf(std::span<const v1::Submission> entries,
                                                  const analysis::Aliases& aliases);

// assay.trend/v1, one for each round of a trend.
Json TrendJson(const analysis::Trend& trend);

// assay.alias/v1
Json AliasJson(const analysis::NameAlias& alias);

}  // namespace assay::client

#endif  // COMMON_CLIENT_SET_HISTORY_H_
