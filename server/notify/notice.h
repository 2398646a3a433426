// What people are told of: which events of the log, and the document that says one.

#ifndef SERVER_NOTIFY_NOTICE_H_
#define SERVER_NOTIFY_NOTICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/core/query.h"
#include "server/store/reader.h"

namespace assay::notify {

struct Notice {
  std::string kind;  // "entry.ended"
  int64_t seq = 0;   // of its event: by it whoever is told twice knows that
  int64_t at_us = 0;
  std::string document;  // JSON of schema assay.notice/v1 in one line, with a line end
};

// Nodes that runs do not get, and why: the kind of the notice that told it. With them an event that
// says where a node has come to says also where it came from.
using AwayNodes = std::map<std::string, std::string>;

// Of all notices, as docs/operator.md lists them.
std::vector<std::string> NoticeKinds();

// True if `pattern` is `kind`, or its first word and a star: "entry.*".
bool IsKindOf(absl::string_view pattern, absl::string_view kind);

// Makes notices of events in their order. Not thread-safe.
class NoticeMaker {
 public:
  //   is_wanted: whether anybody is told of a kind; of the others nothing is made.
  //   web_url: of the site; empty: there is none.
  //   reader: what entries and runs are asked of; must outlive this.
  NoticeMaker(std::function<bool(absl::string_view kind)> is_wanted, std::string web_url,
              store::Reader* reader);

  // What `row` has to tell; most have nothing. Keeps `away` up to date whatever is wanted. Errors
  // of the codec and of Reader.
  absl::StatusOr<std::optional<Notice>> Make(const core::EventRow& row, AwayNodes* away);

 private:
  struct Draft;
  class Drafter;
  absl::Status AddEntry(const core::EventRow& row, Draft* draft);
  absl::Status AddRun(const core::EventRow& row, Draft* draft);
  // RunStarted is also the start of the run's entry, if no other run of it has started before.
  absl::StatusOr<bool> IsFirstRun(const core::EventRow& row);

  std::string DocumentOf(const core::EventRow& row, const Draft& draft) const;

  const std::function<bool(absl::string_view)> is_wanted_;
  const std::string web_url_;
  store::Reader& reader_;
};

}  // namespace assay::notify

#endif  // SERVER_NOTIFY_NOTICE_H_
