#include "common/client/ids.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/client/pages.h"
#include "common/status.h"

namespace assay::client {
namespace {

bool IsNumbered(absl::string_view id, absl::string_view prefix) {
  if (!absl::StartsWith(id, prefix) || id.size() == prefix.size()) return false;
  return std::all_of(id.begin() + static_cast<ptrdiff_t>(prefix.size()), id.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool IsPlainName(absl::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

absl::StatusOr<v1::Submission> LastEntry(const Client& client) {
  v1::ListSubmissionsRequest request;
  request.set_page_size(1);
  ASSIGN_OR_RETURN(const v1::ListSubmissionsResponse response, client.Call(request));
  if (response.submissions().empty())
    return absl::NotFoundError("@last: there is no entry yet; 'assay submit FILE' makes one");
  return response.submissions(0);
}

absl::StatusOr<std::string> PlainName(absl::string_view collection, absl::string_view what,
                                      absl::string_view id) {
  if (absl::StartsWith(id, collection)) id.remove_prefix(collection.size());
  if (IsPlainName(id)) return absl::StrCat(collection, id);
  return absl::InvalidArgumentError(absl::StrCat("'", id, "' cannot be the name of a ", what,
                                                 ": letters, digits, '-', '_' and '.' only"));
}

}  // namespace

std::string ShortId(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return std::string(slash == absl::string_view::npos ? name : name.substr(slash + 1));
}

std::string AuditObject(absl::string_view id) {
  if (id.empty() || absl::StrContains(id, '/')) return std::string(id);
  const absl::string_view kind = absl::StartsWith(id, "e-")   ? "submissions"
                                 : absl::StartsWith(id, "r-") ? "runs"
                                 : absl::StartsWith(id, "a-") ? "allocations"
                                 : absl::StartsWith(id, "t-") ? "tokens"
                                                              : "workers";
  return absl::StrCat(kind, "/", id);
}

absl::StatusOr<std::string> EntryName(const Client& client, absl::string_view id) {
  if (id == "@last" || id.empty()) {
    ASSIGN_OR_RETURN(const v1::Submission last, LastEntry(client));
    return last.name();
  }
  if (absl::StartsWith(id, "submissions/")) id.remove_prefix(12);
  if (IsNumbered(id, "e-") || IsNumbered(id, "s-"))
    return absl::StrCat("submissions/e-", id.substr(2));
  if (IsNumbered(id, "r-")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", id, "' is a run; an entry is wanted, as e-42 ('assay run show ", id, "' names it)"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", id, "' is no entry id; write e-42, its set s-42, or @last"));
}

absl::StatusOr<std::string> RunName(const Client& client, absl::string_view id) {
  if (id == "@last" || id.empty()) {
    ASSIGN_OR_RETURN(const v1::Submission last, LastEntry(client));
    if (last.runs().empty())
      return absl::NotFoundError(absl::StrCat("@last: ", ShortId(last.name()), " has no run"));
    ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, AllRunsOf(client, last.name()));
    const auto begun = std::find_if(runs.rbegin(), runs.rend(), [](const v1::Run& run) {
      return run.state() != v1::Run::QUEUED && run.state() != v1::Run::ASSIGNED;
    });
    return begun == runs.rend() ? last.runs(last.runs_size() - 1) : begun->name();
  }
  if (absl::StartsWith(id, "runs/")) id.remove_prefix(5);
  if (IsNumbered(id, "r-")) return absl::StrCat("runs/", id);
  if (IsNumbered(id, "e-") || IsNumbered(id, "s-")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", id, "' is an entry; a run is wanted, as r-901 ('assay run list --entry ",
                     id, "' lists its runs)"));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", id, "' is no run id; write r-901 or @last"));
}

absl::StatusOr<std::string> WorkerName(absl::string_view id) {
  return PlainName("workers/", "node", id);
}

absl::StatusOr<std::string> AllocationName(absl::string_view id) {
  absl::ConsumePrefix(&id, "allocations/");
  if (IsNumbered(id, "a-")) return absl::StrCat("allocations/", id);
  return absl::InvalidArgumentError(absl::StrCat("'", id, "' is no allocation id; write a-1"));
}

absl::StatusOr<std::string> DatasetName(absl::string_view id) {
  return PlainName("datasets/", "dataset", id);
}

}  // namespace assay::client
