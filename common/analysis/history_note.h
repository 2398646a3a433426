// What people say of the history itself, as notes of entries in a fixed form: that the level
// changes at an entry, or does not, and under which name an organisation or a system is to be
// known. A note is durable, audited, and has an author and a time already. Pure functions.
//
//   [history] change epoch_seconds: new firmware on all nodes
//   [history] no change all: two nodes were down for repair
//   [history] alias system "frontera-rtx" is "Frontera": one machine
//   [history] alias organization "TACC" is withdrawn: two institutions

#ifndef COMMON_ANALYSIS_HISTORY_NOTE_H_
#define COMMON_ANALYSIS_HISTORY_NOTE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/analysis/series.h"

namespace assay::analysis {

// That results of `name` are to be listed as those of `known_as`. The results keep their name.
struct NameAlias {
  enum class Kind { kOrganization, kSystem };
  Kind kind = Kind::kSystem;
  std::string name;
  std::string known_as;  // empty: withdrawn
  std::string reason, author;
  std::string organization;  // of an author who is a submitter
  int64_t time_ms = 0;
};

absl::string_view NameOf(NameAlias::Kind kind);  // "organization", "system"

// The text of the note. INVALID_ARGUMENT for an empty reason, or a name that is empty or has a
// quotation mark or a control character.
absl::StatusOr<std::string> NoteText(const ChangeDecision& decision);
absl::StatusOr<std::string> NoteText(const NameAlias& alias);

// A note of an entry.
struct EntryNote {
  std::string author;
  std::string organization;  // of a submitter; empty of others
  int64_t time_ms = 0;
  std::string text;
};

// An entry as far as notes on it are understood.
struct NotedEntry {
  std::string id;  // e-42
  std::string organization;
  std::string system;
  std::vector<EntryNote> notes;
};

// The decisions about changes at the entries.
std::vector<ChangeDecision> DecisionsOf(std::span<const NotedEntry> entries);

// The names under which organisations and systems are known. What an alias says holds for entries
// of the name's own organisation alone, and only if its note stands on an entry that bears the
// name; of several the last holds. Submitters can rename their systems, but not their organisation:
// so nobody takes another's name.
class Aliases {
 public:
  explicit Aliases(std::span<const NotedEntry> entries);

  // As it is known; itself without an alias. Aliases of aliases are not followed.
  std::string OrganizationOf(const std::string& organization) const;
  std::string SystemOf(const std::string& organization, const std::string& system) const;

  // Those that hold, by kind and name.
  std::vector<NameAlias> All() const;

 private:
  // Of organisation, and system; without a system of the organisation itself.
  std::map<std::pair<std::string, std::string>, NameAlias> aliases_;
};

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_HISTORY_NOTE_H_
