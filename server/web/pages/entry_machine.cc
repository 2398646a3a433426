// The sections of an entry's page on what ran: hyperparameters, system, materials, every attempt.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "assay/v1/admin_service.pb.h"

#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/json_value.h"
#include "server/web/pages/entry_reading.h"

namespace assay::web {
namespace {

// Members of an object as rows of name and value, with objects in it opened.
void AddMembers(const std::string& prefix, const Json& object, Json* rows) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      AddMembers(absl::StrCat(prefix, name, "."), value, rows);
    } else if (std::string text = client::RawText(value); !text.empty()) {
      rows->push_back({{"name", prefix + name}, {"value", std::move(text)}});
    }
  }
}

Json ReferenceValues(const EntryReading& reading) {
  Json values = Json::object();
  if (reading.benchmark == nullptr) return values;
  for (const auto& [key, value] : reading.benchmark->reference_values)
    values[key] = client::JsonOrText(DumpJson(value));
  return values;
}

Json MaterialsOf(const EntryReading& reading) {
  Json rows = Json::array();
  const auto add = [&rows](const char* kind, const std::string& name, const std::string& digest) {
    if (!name.empty() || !digest.empty())
      rows.push_back({{"kind", kind}, {"name", name}, {"digest", digest}});
  };
  add("rules", reading.entry.spec().round(), reading.entry.rules_digest());
  const Json& workload = MemberAt(reading.json, "workload");
  if (workload.is_object()) {
    Json members = Json::array();
    AddMembers("", workload, &members);
    for (const Json& member : members)
      add("program", absl::StrCat(TextOf(member, "name"), " = ", TextOf(member, "value")), "");
  } else {
    add("trainer", TextOf(reading.json, "backend"), "");
  }
  add("results repository", reading.entry.source_path(), "");
  for (const v1::Run& run : reading.runs)
    if (const v1::ArtifactRef* const log = client::ResultFile(run))
      add("log", absl::StrCat(client::ShortId(run.name()), " ", log->file_name()), log->sha256());
  return rows;
}

}  // namespace

Html HyperparametersSection(const EntryReading& reading) {
  Html html;
  html.Raw("<h2 id=\"hyperparameters\">Hyperparameters</h2>");
  const Json reference = ReferenceValues(reading);
  const Json& own = MemberAt(reading.json, "hyperparameters");
  std::map<std::string, Json> changes;
  for (const Json& change : MemberAt(reading.json, "borrowed_values"))
    changes[TextOf(change, "key")] = change;
  std::set<std::string> keys;
  for (const Json* const values : {&own, &reference})
    if (values->is_object())
      for (const auto& [key, value] : values->items())
        keys.insert(key);
  Table table{
      .caption = "As submitted, beside the reference's",
      .empty = "It names no hyperparameters.",
      .columns = {{.title = "Key", .member = "key", .format = CellFormat::kCode},
                  {.title = "This entry", .member = "value", .format = CellFormat::kCode},
                  {.title = "Reference", .member = "reference", .format = CellFormat::kCode},
                  {.title = "Differs", .member = "differs", .format = CellFormat::kYesNo}}};
  if (!changes.empty()) {
    table.columns.push_back({.title = "Before borrowing", .member = "own"});
    table.columns.push_back({.title = "Standing", .member = "standing"});
  }
  for (const std::string& key : keys) {
    Json row = {{"key", key}};
    const Json& value = MemberAt(own, key);
    const Json& expected = MemberAt(reference, key);
    if (!value.is_null()) row["value"] = client::RawText(value);
    if (!expected.is_null()) row["reference"] = client::RawText(expected);
    if (!value.is_null() && !expected.is_null()) row["differs"] = value != expected;
    if (const auto change = changes.find(key); change != changes.end()) {
      row["own"] = client::RawText(MemberAt(change->second, "own"));
      row["standing"] = TextOf(change->second, "standing");
    }
    table.rows.push_back(std::move(row));
  }
  if (const std::string lender = TextOf(reading.json, "borrowed_from"); !lender.empty())
    html.Raw("<p>Borrowed from ").Link(EntryPath(lender), lender).Raw(".</p>");
  return html.Add(TableHtml(table));
}

Html SystemSection(const Context& context, const EntryReading& reading, Json* json) {
  Html html;
  html.Raw("<h2 id=\"system\">System</h2>");
  html.Add(FactsHtml(reading.json, {{.title = "System", .member = "system"},
                                    {.title = "Nodes", .member = "nodes"},
                                    {.title = "Ranks on a node", .member = "ranks_per_node"},
                                    {.title = "Category", .member = "status"},
                                    {.title = "Dataset", .member = "dataset"},
                                    {.title = "Labels of its nodes", .member = "labels"}}));
  if (const Json published = MemberAt(reading.json, "system_description"); published.is_object()) {
    (*json)["system_description"] = published;
  } else if (const auto node = client::NodeDescription(context.client, reading.runs);
             node.ok() && node->has_value()) {
    (*json)["system_description"] = client::SystemJson(reading.entry, **node);
  }
  Json rows = Json::array();
  AddMembers("", MemberAt(*json, "system_description"), &rows);
  return html.Add(TableHtml(
      {.caption = "System description",
       .empty = reading.entry.is_imported()
                    ? "It was imported without one."
                    : "None of its nodes says yet what it is, or that is not for you to see.",
       .columns = {{.title = "Member", .member = "name"},
                   {.title = "Value", .member = "value", .format = CellFormat::kWords}},
       .rows = rows}));
}

Html MaterialsSection(const Context& context, const EntryReading& reading, Json* json) {
  Html html;
  html.Raw("<h2 id=\"materials\">Bill of materials</h2>");
  Json rows = MaterialsOf(reading);
  // Who may not see datasets sees the name alone.
  const absl::StatusOr<v1::ListDatasetsResponse> datasets =
      context.client.Call(v1::ListDatasetsRequest());
  std::string digest;
  if (datasets.ok())
    for (const v1::Dataset& dataset : datasets->datasets())
      if (client::ShortId(dataset.name()) == reading.entry.spec().dataset())
        digest = dataset.digest();
  if (const std::string& name = reading.entry.spec().dataset(); !name.empty())
    rows.insert(rows.begin(), Json{{"kind", "dataset"}, {"name", name}, {"digest", digest}});
  (*json)["materials"] = rows;
  return html.Add(
      TableHtml({.caption = "What went into it, by SHA-256",
                 .columns = {{.title = "Kind", .member = "kind"},
                             {.title = "Name", .member = "name", .format = CellFormat::kWords},
                             {.title = "Digest", .member = "digest", .format = CellFormat::kCode}},
                 .rows = rows}));
}

Html LedgerSection(const EntryReading& reading) {
  Html html;
  html.Raw(
      "<h2 id=\"ledger\">Every attempt</h2><p class=\"note\">A failed run stays as evidence; "
      "nothing is deleted.</p>");
  html.Add(TableHtml(
      {.caption = "All runs that were ever queued for the entry, in order",
       .empty = "No run has been queued yet.",
       .columns = {RunColumn(),
                   {.title = "Number", .member = "number", .format = CellFormat::kInteger},
                   StateColumn(),
                   {.title = "Why", .member = "state_reason", .format = CellFormat::kWords},
                   {.title = "In the score", .member = "part"},
                   {.title = "Nodes", .member = "nodes", .format = CellFormat::kWords},
                   {.title = "Created", .member = "created", .format = CellFormat::kTime},
                   {.title = "Started", .member = "started", .format = CellFormat::kTime},
                   {.title = "Ended", .member = "ended", .format = CellFormat::kTime},
                   {.title = "Exit code", .member = "exit_code"}},
       .rows = reading.run_rows}));
  const Json& notes = MemberAt(reading.json, "notes");
  if (notes.empty()) return html;
  html.Raw("<h2 id=\"notes\">Notes</h2>");
  return html.Add(
      TableHtml({.caption = "What was said about it",
                 .columns = {{.title = "By", .member = "author"},
                             {.title = "When", .member = "time", .format = CellFormat::kTime},
                             {.title = "Note", .member = "text", .format = CellFormat::kWords}},
                 .rows = notes}));
}

}  // namespace assay::web
