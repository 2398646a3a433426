#include "server/store/page_names.h"

#include <vector>

#include "absl/status/statusor.h"

namespace assay::store {
namespace {

constexpr char kSelectTrees[] = "SELECT name FROM sqlite_schema WHERE rootpage > 0";
constexpr char kSelectPages[] = "SELECT pageno FROM dbstat WHERE name = ?1";

std::vector<std::string> NamesOfTrees(Db* db) {
  std::vector<std::string> names = {"sqlite_schema"};
  absl::StatusOr<Stmt> select = db->Prepare(kSelectTrees);
  if (!select.ok()) return names;
  while (true) {
    const absl::StatusOr<bool> is_row = select->Step();
    if (!is_row.ok() || !*is_row) return names;
    names.emplace_back(select->Text(0));
  }
}

}  // namespace

std::map<uint32_t, std::string> NamesOfPages(Db* db, const std::set<uint32_t>& pages) {
  std::map<uint32_t, std::string> names;
  absl::StatusOr<Stmt> select = db->Prepare(kSelectPages);
  if (!select.ok()) return names;
  // Tree by tree: where one cannot be followed to its end, the others still can.
  for (const std::string& name : NamesOfTrees(db)) {
    if (!select->Bind(name).ok()) continue;
    while (true) {
      const absl::StatusOr<bool> is_row = select->Step();
      if (!is_row.ok() || !*is_row) break;
      const auto number = static_cast<uint32_t>(select->Int(0));
      if (pages.count(number) > 0) names.emplace(number, name);
    }
  }
  return names;
}

}  // namespace assay::store
