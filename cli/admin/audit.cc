#include "cli/admin/audit.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int32_t kPageSize = 1000;
constexpr int64_t kBookmarkBytesMax = 64;

// The number in the file of --bookmark; 0 if it is not there yet.
absl::StatusOr<int64_t> ReadBookmark(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kBookmarkBytesMax);
  if (absl::IsNotFound(text.status())) return 0;
  RETURN_IF_ERROR(text.status());
  int64_t seq = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &seq) || seq < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is no bookmark of the audit, which is one number; name another file"));
  return seq;
}

absl::StatusOr<v1::ListAuditRequest> AuditRequest(const Arguments& arguments) {
  v1::ListAuditRequest request;
  request.set_principal(arguments.Get("who"));
  request.set_with_bodies(arguments.Has("bodies"));
  request.set_object(client::AuditObject(arguments.Get("of")));
  if (arguments.Has("since")) {
    ASSIGN_OR_RETURN(const absl::Time since, SinceTime(arguments.Get("since")));
    *request.mutable_since_time() =
        TimeUtil::MicrosecondsToTimestamp(std::max<int64_t>(0, absl::ToUnixMicros(since)));
  }
  if (arguments.Has("bookmark")) {
    ASSIGN_OR_RETURN(const int64_t after, ReadBookmark(arguments.Get("bookmark")));
    request.set_after_seq(after);
  } else if (arguments.Has("after")) {
    ASSIGN_OR_RETURN(const int64_t after, arguments.Integer("after", 0));
    request.set_after_seq(after);
  } else {
    request.set_newest_first(true);
  }
  return request;
}

absl::StatusOr<std::vector<v1::AuditEntry>> AuditRows(const client::Client& client,
                                                      v1::ListAuditRequest request, int64_t limit) {
  std::vector<v1::AuditEntry> rows;
  while (std::ssize(rows) < limit) {
    request.set_page_size(
        static_cast<int32_t>(std::min<int64_t>(limit - std::ssize(rows), kPageSize)));
    ASSIGN_OR_RETURN(v1::ListAuditResponse response, client.Call(request));
    if (response.entries().empty()) break;
    for (v1::AuditEntry& row : *response.mutable_entries())
      rows.push_back(std::move(row));
    request.set_after_seq(rows.back().seq());
  }
  return rows;
}

absl::StatusOr<ExitStatus> RunAudit(Context* context, const Arguments& arguments) {
  if (arguments.Has("bookmark") && arguments.Has("after"))
    return absl::InvalidArgumentError("--bookmark and --after both say where to go on: give one");
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const int64_t limit, ListLimit(*context, arguments));
  ASSIGN_OR_RETURN(const v1::ListAuditRequest request, AuditRequest(arguments));
  ASSIGN_OR_RETURN(const std::vector<v1::AuditEntry> rows, AuditRows(*client, request, limit));
  ListView view{.schema = "assay.audit/v1",
                .columns = {{"SEQ", "seq", Format::kNumber},
                            {"TIME", "time", Format::kTime},
                            {"WHO", "principal"},
                            {"WHAT", "type"},
                            {"OBJECT", "object"},
                            {"OUTCOME", "outcome"},
                            {"DETAIL", "detail", Format::kText, 1}},
                .empty_text = "nothing in the audit answers to this"};
  if (arguments.Has("bodies")) view.columns.push_back({"BODY", "body", Format::kText, 1});
  for (const v1::AuditEntry& row : rows)
    view.items.push_back(client::AuditJson(row));
  RETURN_IF_ERROR(context->printer().List(view));
  if (std::ssize(rows) == limit) NoteCut(*context, limit, 0);
  if (arguments.Has("bookmark") && !rows.empty())
    RETURN_IF_ERROR(
        WriteFileAtomic(arguments.Get("bookmark"), absl::StrCat(rows.back().seq(), "\n")));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> AuditCommands() {
  return {
      {.path = "admin audit",
       .summary = "who changed what, who was refused, and when",
       .description =
           "Newest first; after a number or a bookmark oldest first, to go on where an "
           "earlier call ended. Each row names who asked, what was done, to what, and whether "
           "it was done or refused. Rows are never changed or removed, and chained by hash.",
       .options = {{.name = "who",
                    .kind = Option::Kind::kText,
                    .value = "NAME",
                    .help = "only what this person or node has done or was refused"},
                   {.name = "of",
                    .kind = Option::Kind::kText,
                    .value = "ID",
                    .help = "only what was done to it: e-42 (with its runs), r-901, a-3, t-7, a "
                            "node's name (also what the node did), datasets/NAME"},
                   SinceOption(),
                   {.name = "after",
                    .kind = Option::Kind::kInteger,
                    .value = "SEQ",
                    .help = "only what came after this number, oldest first",
                    .max = std::numeric_limits<int64_t>::max()},
                   {.name = "bookmark",
                    .kind = Option::Kind::kText,
                    .value = "FILE",
                    .help = "go on after the number in FILE, and keep there how far it came"},
                   {.name = "bodies", .help = "whole events, too, as JSON"},
                   ListLimitOption()},
       .examples = {{"assay admin audit", "what happened last"},
                    {"assay admin audit --who alice --since 7d", ""},
                    {"assay admin audit --of w0", "the history of a node"},
                    {"assay admin audit --of t-7 --bodies --json", ""},
                    {"assay admin audit --bookmark audit.seq -o ndjson | logger -t assay "
                     "-p authpriv.info",
                     "what is new, to syslog"}},
       .run = RunAudit}};
}

}  // namespace assay::cli
