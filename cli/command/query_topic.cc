// The help topic on questions to the history; its fields are those of the table that answers.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/command/help.h"
#include "common/filter.h"
#include "common/history_fields.h"

namespace assay::cli {
namespace {

constexpr char kLanguage[] =
    "Filters (AIP-160)\n"
    "  division=closed                equal; != differs; < <= > >= of numbers and times\n"
    "  system=\"dgx*\"                  * stands for any text\n"
    "  findings:R-HP-004              : a text within, or one of several\n"
    "  A B, A AND B                   both\n"
    "  A OR B                         one of them; binds tighter than AND: A B OR C is A (B OR C)\n"
    "  NOT A, -A                      not\n"
    "  created>ago(\"90d\")             times: 2026-11-23, 2026-11-23T10:00:00Z (UTC), "
    "ago(\"12h\")\n"
    "  hyperparameters.opt_name=sgd   by the key in the log; =* where there is one\n"
    "A comparison with what a row does not have is false; NOT of it is true. A table says how "
    "many\n"
    "rows are left out for that. '--explain' prints a filter with all its parentheses. At most\n";

constexpr char kRest[] =
    "\nOrder, groups\n"
    "  --order-by 'minutes desc, time'   rows without a value come last\n"
    "  --group-by benchmark,round --aggregate 'count,min(minutes),p50(minutes)'\n"
    "    of each group: count, count(F), min(F), max(F), mean(F), sum(F), and p0(F) to p100(F),\n"
    "    linear between the nearest values; --order-by takes a column of the groups\n"
    "  -o csv, --json, -o ndjson         for programs; column names end in their unit\n"
    "\nFilters are also taken by 'entry list', 'run list', 'compare' and 'history'.\n"
    "'--save NAME' keeps a question at the coordinator, '--view NAME' asks it again; 'history "
    "export'\nwrites a SQLite database.\n"
    "A question that takes more than 2 s is ended: narrow it by round, benchmark, system or time.\n"
    "What other organizations have not published is neither shown nor counted.\n"
    "\nExamples\n"
    "  assay query round=v1.0 division=closed minutes<30 --order-by minutes\n"
    "  assay query --kind run 'entry=e-42' --columns id,minutes,epochs,quality\n"
    "  assay query --kind finding severity=error --group-by rule\n";

}  // namespace

std::string QueryTopic() {
  std::string text = absl::StrCat(kLanguage, kFilterTermsMax, " terms and ", kFilterBytesMax,
                                  " bytes are read.\n");
  for (const HistoryKind kind : kHistoryKinds) {
    absl::StrAppend(&text, "\nFields of ", kind == HistoryKind::kEntry ? "an " : "a ",
                    ToString(kind), " (--kind ", ToString(kind), ")\n");
    for (const HistoryField& field : HistoryFields(kind)) {
      std::string help(field.help);
      if (!field.choices.empty()) help = absl::StrJoin(field.choices, ", ");
      if (!field.unit.empty()) help = absl::StrCat("[", field.unit, "] ", help);
      absl::StrAppendFormat(&text, "  %-19s %s",
                            absl::StrCat(field.name, field.type == HistoryType::kMap ? ".KEY" : ""),
                            help);
      while (!text.empty() && text.back() == ' ')
        text.pop_back();
      text.push_back('\n');
    }
  }
  return absl::StrCat(text, kRest);
}

}  // namespace assay::cli
