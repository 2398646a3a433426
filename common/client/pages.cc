#include "common/client/pages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"

#include "assay/v1/submission_service.pb.h"

#include "common/client/ids.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr int kPageSize = 200;

}  // namespace

absl::StatusOr<std::vector<v1::Submission>> ListEntries(const Client& client,
                                                        v1::ListSubmissionsRequest request,
                                                        int64_t limit) {
  std::vector<v1::Submission> entries;
  while (static_cast<int64_t>(entries.size()) < limit) {
    request.set_page_size(static_cast<int32_t>(
        std::min<int64_t>(kPageSize, limit - static_cast<int64_t>(entries.size()))));
    ASSIGN_OR_RETURN(v1::ListSubmissionsResponse page, client.Call(request));
    for (v1::Submission& entry : *page.mutable_submissions())
      entries.push_back(std::move(entry));
    if (page.next_page_token().empty()) break;
    request.set_page_token(page.next_page_token());
  }
  return entries;
}

absl::StatusOr<std::vector<v1::Run>> ListRunsOf(const Client& client, const std::string& entry,
                                                const std::string& state, int64_t limit) {
  v1::ListRunsRequest request;
  request.set_submission(entry);
  request.set_state(absl::AsciiStrToUpper(state));
  std::vector<v1::Run> runs;
  while (static_cast<int64_t>(runs.size()) < limit) {
    request.set_page_size(static_cast<int32_t>(
        std::min<int64_t>(kPageSize, limit - static_cast<int64_t>(runs.size()))));
    ASSIGN_OR_RETURN(v1::ListRunsResponse page, client.Call(request));
    for (v1::Run& run : *page.mutable_runs())
      runs.push_back(std::move(run));
    if (page.next_page_token().empty()) break;
    request.set_page_token(page.next_page_token());
  }
  return runs;
}

absl::StatusOr<std::vector<v1::Run>> AllRunsOf(const Client& client, const std::string& entry) {
  return ListRunsOf(client, entry, "", std::numeric_limits<int64_t>::max());
}

absl::StatusOr<v1::Submission> GetEntry(const Client& client, const std::string& id) {
  v1::GetSubmissionRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), EntryName(client, id));
  return client.Call(request);
}

absl::StatusOr<v1::Run> GetRun(const Client& client, const std::string& id) {
  v1::GetRunRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), RunName(client, id));
  return client.Call(request);
}

absl::StatusOr<EntryView> ReadEntry(const Client& client, const std::string& name) {
  EntryView view;
  v1::GetSubmissionRequest request;
  request.set_name(name);
  ASSIGN_OR_RETURN(view.entry, client.CallRetrying(request));
  ASSIGN_OR_RETURN(view.runs, AllRunsOf(client, name));
  return view;
}

}  // namespace assay::client
