#include "cli/run/run_bytes.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::cli {
namespace {

std::string FirstPassText(const Json& pass) {
  if (!pass.value("is_known", false))
    return absl::StrCat("not known: ", pass.value("why", std::string()));
  const double share = pass.value("of_train_data", 0.0);
  return absl::StrCat(share >= 1 ? "all" : absl::StrFormat("%.1f %%", 100 * share), " of ",
                      FormatBytes(pass.value("train_bytes", 0.0)),
                      " of training data from storage by the end of epoch 1");
}

}  // namespace

void AddBytes(Json bytes, ShowView* view) {
  bytes["first_pass"]["text"] = FirstPassText(bytes["first_pass"]);
  for (Json& row : bytes["phases"]) {
    if (!row.contains("node")) row["node"] = "all";
    if (const auto share = row.find("of_train_data"); share != row.end())
      row["share"] = absl::StrFormat("%.1f %%", 100 * share->get<double>());
  }
  view->value["first_pass"] = std::move(bytes["first_pass"]);
  view->value["bytes"] = std::move(bytes["phases"]);
  view->fields.push_back({"first pass", "first_pass.text"});
  view->sections.push_back({"Bytes read, by anybody where the run's own are not known",
                            "bytes",
                            {{"NODE", "node"},
                             {"PHASE", "phase"},
                             {"SECONDS", "seconds", Format::kNumber},
                             {"STORAGE", "storage_bytes", Format::kBytes},
                             {"OF DATA", "share"},
                             {"DISKS", "disk_bytes", Format::kBytes},
                             {"SERVERS", "server_bytes", Format::kBytes},
                             {"NETWORK", "network_bytes", Format::kBytes}}});
}

}  // namespace assay::cli
