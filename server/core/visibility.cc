#include "server/core/visibility.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace assay::core {

Disclosure DisclosureOf(const Submission& submission) {
  return {.organization = submission.spec.organization,
          .published_at_us = submission.published_at_us};
}

Sight SightOf(const VisibleTo& viewer, const Disclosure& disclosure) {
  if (viewer.sees_all || IsMember(viewer.organization, disclosure.organization))
    return Sight::kWhole;
  const bool is_published =
      disclosure.published_at_us > 0 && disclosure.published_at_us <= viewer.now_us;
  return viewer.sees_published && is_published ? Sight::kPublished : Sight::kNothing;
}

bool IsMember(absl::string_view organization, absl::string_view owner) {
  if (organization.empty()) return false;
  return absl::StrContains(absl::StrCat("+", owner, "+"), absl::StrCat("+", organization, "+"));
}

bool IsShownFile(Sight sight, absl::string_view file_name) {
  switch (sight) {
    case Sight::kNothing:
      return false;
    case Sight::kPublished:
      return absl::StartsWith(file_name, kResultPrefix) || file_name == kSourceFileName;
    case Sight::kWhole:
      return true;
  }
  return false;
}

}  // namespace assay::core
