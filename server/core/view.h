// Saved views: questions to the history under a name, and the events that they are made of.

#ifndef SERVER_CORE_VIEW_H_
#define SERVER_CORE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/request.h"

namespace assay::core {

inline constexpr size_t kViewCountMax = 100;  // of an author

// Names a view: authors do not get in each other's way.
struct ViewKey {
  Standing standing;
  std::string author;
  std::string name;

  auto Parts() const { return std::tie(standing.role, standing.organization, author, name); }
  bool operator==(const ViewKey&) const = default;
  bool operator<(const ViewKey& other) const { return Parts() < other.Parts(); }
};

struct View {
  std::string name;
  std::string author;  // the principal who has saved it
  Standing standing;   // as what
  bool is_shared = false;
  std::string kind;    // entry (common/history_fields.h)
  std::string filter;  // this and what follows as in HistoryQuestion
  std::string order_by;
  std::vector<std::string> columns;
  std::vector<std::string> group_by;
  std::vector<std::string> aggregates;
  int64_t saved_at_us = 0;

  ViewKey key() const { return {standing, author, name}; }
  bool operator==(const View&) const = default;
};

struct ViewSaved {
  static constexpr absl::string_view kType = "ViewSaved";
  static constexpr int kVersion = 1;
  View view;  // in the place of one of its key
  bool operator==(const ViewSaved&) const = default;
};

struct ViewRemoved {
  static constexpr absl::string_view kType = "ViewRemoved";
  static constexpr int kVersion = 1;
  std::string view;
  Standing standing;  // of its author, who is the principal
  bool operator==(const ViewRemoved&) const = default;
};

}  // namespace assay::core

#endif  // SERVER_CORE_VIEW_H_
