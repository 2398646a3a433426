#include "common/analysis/history_note.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay::analysis {
namespace {

constexpr absl::string_view kForm = "[history] ";
constexpr absl::string_view kBoth = "all";

absl::Status CheckReason(const std::string& reason) {
  if (!absl::StripAsciiWhitespace(reason).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("a reason is needed: others read it years later");
}

absl::Status CheckName(absl::string_view name) {
  const bool is_plain = std::none_of(name.begin(), name.end(), [](char c) {
    return c == '"' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (is_plain && !name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the name '", name, "' is empty or has a quotation mark or control character"));
}

// Takes `text` up to `end` off its front, and `end`; nullopt if it is not there.
std::optional<std::string> TakeUntil(absl::string_view end, absl::string_view* text) {
  const size_t place = text->find(end);
  if (place == absl::string_view::npos) return std::nullopt;
  std::string taken(text->substr(0, place));
  text->remove_prefix(place + end.size());
  return taken;
}

std::optional<ChangeDecision> ReadDecision(absl::string_view text) {
  ChangeDecision decision;
  if (!absl::ConsumePrefix(&text, kForm)) return std::nullopt;
  if (absl::ConsumePrefix(&text, "no ")) decision.kind = ChangeDecision::Kind::kVeto;
  if (!absl::ConsumePrefix(&text, "change ")) return std::nullopt;
  const std::optional<std::string> measure = TakeUntil(": ", &text);
  if (!measure) return std::nullopt;
  decision.measure = MeasureOf(*measure);
  if (!decision.measure && *measure != kBoth) return std::nullopt;
  decision.reason = std::string(text);
  return decision;
}

std::optional<NameAlias> ReadAlias(absl::string_view text) {
  NameAlias alias;
  if (!absl::ConsumePrefix(&text, kForm) || !absl::ConsumePrefix(&text, "alias "))
    return std::nullopt;
  const std::optional<std::string> kind = TakeUntil(" \"", &text);
  if (kind == NameOf(NameAlias::Kind::kOrganization))
    alias.kind = NameAlias::Kind::kOrganization;
  else if (kind != NameOf(NameAlias::Kind::kSystem))
    return std::nullopt;
  const std::optional<std::string> name = TakeUntil("\" is ", &text);
  if (!name) return std::nullopt;
  alias.name = *name;
  if (absl::ConsumePrefix(&text, "\"")) {
    const std::optional<std::string> known_as = TakeUntil("\": ", &text);
    if (!known_as || known_as->empty()) return std::nullopt;
    alias.known_as = *known_as;
  } else if (!absl::ConsumePrefix(&text, "withdrawn: ")) {
    return std::nullopt;
  }
  alias.reason = std::string(text);
  return alias;
}

template <typename Statement>
void Sign(const EntryNote& note, Statement* statement) {
  statement->author = note.author;
  statement->organization = note.organization;
  statement->time_ms = note.time_ms;
}

// Whether the author of a note on `entry` may say so.
bool Holds(const NameAlias& alias, const NotedEntry& entry) {
  switch (alias.kind) {
    case NameAlias::Kind::kOrganization:
      return alias.name == entry.organization && alias.organization.empty();
    case NameAlias::Kind::kSystem:
      return alias.name == entry.system;
  }
  return false;
}

}  // namespace

absl::string_view NameOf(NameAlias::Kind kind) {
  switch (kind) {
    case NameAlias::Kind::kOrganization:
      return "organization";
    case NameAlias::Kind::kSystem:
      return "system";
  }
  return "";
}

absl::StatusOr<std::string> NoteText(const ChangeDecision& decision) {
  RETURN_IF_ERROR(CheckReason(decision.reason));
  return absl::StrCat(kForm, decision.kind == ChangeDecision::Kind::kVeto ? "no " : "", "change ",
                      decision.measure ? NameOf(*decision.measure) : kBoth, ": ", decision.reason);
}

absl::StatusOr<std::string> NoteText(const NameAlias& alias) {
  RETURN_IF_ERROR(CheckReason(alias.reason));
  RETURN_IF_ERROR(CheckName(alias.name));
  std::string known_as = "withdrawn";
  if (!alias.known_as.empty()) {
    RETURN_IF_ERROR(CheckName(alias.known_as));
    known_as = absl::StrCat("\"", alias.known_as, "\"");
  }
  return absl::StrCat(kForm, "alias ", NameOf(alias.kind), " \"", alias.name, "\" is ", known_as,
                      ": ", alias.reason);
}

std::vector<ChangeDecision> DecisionsOf(std::span<const NotedEntry> entries) {
  std::vector<ChangeDecision> decisions;
  for (const NotedEntry& entry : entries) {
    for (const EntryNote& note : entry.notes) {
      std::optional<ChangeDecision> decision = ReadDecision(note.text);
      if (!decision) continue;
      decision->set = entry.id;
      Sign(note, &*decision);
      decisions.push_back(*std::move(decision));
    }
  }
  return decisions;
}

Aliases::Aliases(std::span<const NotedEntry> entries) {
  for (const NotedEntry& entry : entries) {
    for (const EntryNote& note : entry.notes) {
      std::optional<NameAlias> alias = ReadAlias(note.text);
      if (!alias) continue;
      Sign(note, &*alias);
      if (!Holds(*alias, entry)) continue;
      const bool is_system = alias->kind == NameAlias::Kind::kSystem;
      NameAlias& last = aliases_[{entry.organization, is_system ? alias->name : ""}];
      if (last.name.empty() || last.time_ms <= alias->time_ms) last = *std::move(alias);
    }
  }
  std::erase_if(aliases_, [](const auto& item) { return item.second.known_as.empty(); });
}

std::string Aliases::OrganizationOf(const std::string& organization) const {
  const auto found = aliases_.find({organization, ""});
  return found == aliases_.end() ? organization : found->second.known_as;
}

std::string Aliases::SystemOf(const std::string& organization, const std::string& system) const {
  const auto found = system.empty() ? aliases_.end() : aliases_.find({organization, system});
  return found == aliases_.end() ? system : found->second.known_as;
}

std::vector<NameAlias> Aliases::All() const {
  std::vector<NameAlias> all;
  for (const auto& [key, alias] : aliases_)
    all.push_back(alias);
  std::stable_sort(all.begin(), all.end(), [](const NameAlias& a, const NameAlias& b) {
    return std::pair(a.kind, a.name) < std::pair(b.kind, b.name);
  });
  return all;
}

}  // namespace assay::analysis
