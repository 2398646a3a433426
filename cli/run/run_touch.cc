#include "cli/run/run_touch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::cli {

void AddTouches(Json touches, ShowView* view) {
  const Json& weakest = client::WeakestTouch(touches);
  view->value["touch"] =
      absl::StrCat("node ", weakest.value("node", 0), ": ", weakest.value("sentence", ""));
  view->value["touch_assurance"] = weakest["assurance"];
  view->value["touch_holes"] = client::TouchHolesOf(touches);
  view->value["touches"] = std::move(touches);
  view->fields.push_back({"touch", "touch"});
  view->sections.push_back({"First touch of the data",
                            "touches",
                            {{"NODE", "node"},
                             {"ASSURANCE", "assurance"},
                             {"OFF BY", "off_by"},
                             {"BY", "by"},
                             {"SEEN BY", "mechanism"},
                             {"WATCHING", "watched"},
                             {"FILE", "path", Format::kText, 1},
                             {"HOLES", "codes", Format::kWords}}});
  view->sections.push_back({"What could have been before it, unseen",
                            "touch_holes",
                            {{"NODE", "node"}, {"CODE", "code"}, {"WHY", "why"}}});
}

}  // namespace assay::cli
