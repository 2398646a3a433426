// Who may see a submission, and with it its runs, their logs, events and artifacts (RV-1): the one
// place that says so. Every read asks it, row by row or as the same condition in SQL
// (server/store/visible_rows.h). What nothing here allows is hidden.

#ifndef SERVER_CORE_VISIBILITY_H_
#define SERVER_CORE_VISIBILITY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "server/core/types.h"

namespace assay::core {

// Who asks, and when: plain data, so that a query can be made of it. As it is born, it sees
// nothing. It is made of an identity and the table of permissions (auth::VisibleThrough).
struct VisibleTo {
  bool sees_all = false;        // an operator or a reviewer
  std::string organization;     // a submitter's, whose own entries it sees; empty: it has none
  bool sees_published = false;  // also what is published
  int64_t now_us = 0;           // by the coordinator's clock
  bool operator==(const VisibleTo&) const = default;
};

// What of a submission decides who may see it.
struct Disclosure {
  std::string organization;     // A, or A+B of a joint entry
  int64_t published_at_us = 0;  // from when on anybody may see it; 0: never
  bool operator==(const Disclosure&) const = default;
};

Disclosure DisclosureOf(const Submission& submission);

// How much of it is seen.
enum class Sight {
  kNothing,    // not even that it exists
  kPublished,  // what everybody may see: without people's names, notes and the site's nodes
  kWhole,      // by its own organisation, reviewers and operators
};

// Pure.
Sight SightOf(const VisibleTo& viewer, const Disclosure& disclosure);

inline bool MaySee(const VisibleTo& viewer, const Disclosure& disclosure) {
  return SightOf(viewer, disclosure) != Sight::kNothing;
}

// True if `organization` is `owner` or a member of it: LBNL and NVIDIA are of LBNL+NVIDIA. Letters
// count as they are written. False for an empty one.
bool IsMember(absl::string_view organization, absl::string_view owner);

// True if a run's file of this name is shown to who sees so much of it. Everybody has its log and
// its program's source; what its nodes are and did is its owner's.
bool IsShownFile(Sight sight, absl::string_view file_name);

}  // namespace assay::core

#endif  // SERVER_CORE_VISIBILITY_H_
