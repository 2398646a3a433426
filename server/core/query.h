// Questions to the store that do not concern the core, and their answers: filters, pages, rows.

#ifndef SERVER_CORE_QUERY_H_
#define SERVER_CORE_QUERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/core/types.h"

namespace assay::core {

inline constexpr int32_t kPageSizeDefault = 50;
inline constexpr int32_t kPageSizeMax = 1000;

struct PageRequest {
  int32_t size = 0;   // 0 means kPageSizeDefault; capped at kPageSizeMax
  std::string token;  // empty: the first page; else next_page_token of the page before
};

template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_page_token;  // empty: this is the last page
};

// Empty fields match everything.
struct SubmissionFilter {
  std::string organization;
  std::string system;
  std::string benchmark;
  std::string division;
  std::string round;
  std::optional<SubmissionState> state;
};

struct RunFilter {
  SubmissionId submission;  // none: of all
  std::optional<RunState> state;
  std::string organization;  // of the submission; empty: of all
};

// One row of the event log, as an API shows it.
struct EventRow {
  int64_t seq = 0;
  int64_t at_us = 0;
  std::string type;
  int32_t version = 1;
  std::string principal;
  SubmissionId submission;
  RunId run;
  std::string body_json;
};

// What an artifact belongs to; the same bytes may be held by several runs, then the first counts.
struct ArtifactInfo {
  ArtifactRef artifact;
  RunId run;
  SubmissionId submission;
  std::string organization;
};

}  // namespace assay::core

#endif  // SERVER_CORE_QUERY_H_
