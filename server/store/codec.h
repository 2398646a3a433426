// The stored form of events and rows: JSON text, readable in the sqlite3 shell.
//
// Every member is written under its own name; ids as "e-42", states as "OPEN". A number that JSON
// cannot hold (NaN, infinity) is the string "nan", "inf" or "-inf". Reading never fails on unknown
// members; a missing or wrong one is DATA_LOSS with its name.

#ifndef SERVER_STORE_CODEC_H_
#define SERVER_STORE_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::store {

std::string EncodeEvent(const core::Event& event);

// DATA_LOSS for an unknown type or a body that does not fit; FAILED_PRECONDITION for a version
// newer than this program's.
absl::StatusOr<core::Event> DecodeEvent(absl::string_view type, int version,
                                        absl::string_view body);

// Rows. A run's nodes are not in it: they have a table of their own.
std::string Encode(const core::Submission& submission);
std::string Encode(const core::Run& run);
std::string Encode(const core::Worker& worker);
std::string Encode(const core::Dataset& dataset);
std::string Encode(const core::View& view);
std::string Encode(const core::Token& token);
std::string Encode(const core::Allocation& allocation);
std::string Encode(const core::Finding& finding);
std::string Encode(const core::Rates& rates);
std::string Encode(const core::Preflight& preflight);

absl::StatusOr<core::Submission> DecodeSubmission(absl::string_view body);
absl::StatusOr<core::Run> DecodeRun(absl::string_view body);
absl::StatusOr<core::Worker> DecodeWorker(absl::string_view body);
absl::StatusOr<core::Dataset> DecodeDataset(absl::string_view body);
absl::StatusOr<core::View> DecodeView(absl::string_view body);
absl::StatusOr<core::Token> DecodeToken(absl::string_view body);
absl::StatusOr<core::Allocation> DecodeAllocation(absl::string_view body);
absl::StatusOr<core::Finding> DecodeFinding(absl::string_view body);
absl::StatusOr<core::Rates> DecodeRates(absl::string_view body);
absl::StatusOr<core::Preflight> DecodePreflight(absl::string_view body);

}  // namespace assay::store

#endif  // SERVER_STORE_CODEC_H_
