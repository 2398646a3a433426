// Decisions about saved views.

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/filter.h"
#include "common/history_fields.h"
#include "common/status.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

std::string RoundAsWritten(absl::string_view round) {
  return std::string(round);
}

// Columns and orders are judged when they are asked for; a filter nobody could ask is refused here.
absl::Status CheckQuestion(const View& view, int64_t now_us) {
  const std::optional<HistoryKind> kind = ParseHistoryKind(view.kind);
  if (!kind.has_value())
    return absl::InvalidArgumentError(absl::StrCat(
        "kind: expected entry, run, finding, worker or hyperparameter, found \"", view.kind, "\""));
  return ParseFilter(view.filter, HistorySchema(*kind, RoundAsWritten),
                     absl::FromUnixMicros(now_us))
      .status();
}

// How many views the author of `key` has.
size_t CountOf(const State& state, const ViewKey& key) {
  const auto is_of_author = [&key](const auto& entry) {
    return entry.first.standing == key.standing && entry.first.author == key.author;
  };
  auto it = state.views.lower_bound({key.standing, key.author, ""});
  size_t count = 0;
  for (; it != state.views.end() && is_of_author(*it); ++it)
    ++count;
  return count;
}

}  // namespace

absl::StatusOr<Decision> Decide(const Context& context, const SaveView& command) {
  View view = command.view;
  view.author = context.principal;
  view.standing = context.standing;
  view.saved_at_us = context.now_us;
  RETURN_IF_ERROR(CheckName("view", view.name));
  RETURN_IF_ERROR(CheckQuestion(view, context.now_us));
  if (!context.state.views.contains(view.key()) &&
      CountOf(context.state, view.key()) >= kViewCountMax)
    return absl::ResourceExhaustedError(absl::StrCat(
        view.author, " has ", kViewCountMax, " views, and no more: remove one that is not used"));
  return Decision{.events = {ViewSaved{.view = view}}, .reply = view};
}

absl::StatusOr<Decision> Decide(const Context& context, const RemoveView& command) {
  const auto it = context.state.views.find({context.standing, context.principal, command.name});
  if (it == context.state.views.end())
    return absl::NotFoundError(
        absl::StrCat(context.principal, " has no view '", command.name, "'"));
  return Decision{.events = {ViewRemoved{.view = command.name, .standing = context.standing}},
                  .reply = it->second};
}

}  // namespace assay::core
