#include "cli/command/completes.h"

#include "absl/strings/ascii.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/help.h"
#include "cli/terminal/print.h"

namespace assay::cli {
namespace {

// The names of an enumeration of the API as people write them, without the unspecified one.
std::vector<std::string> NamesOf(const google::protobuf::EnumDescriptor& states) {
  std::vector<std::string> names;
  for (int i = 0; i < states.value_count(); ++i)
    if (states.value(i)->number() != 0)
      names.push_back(absl::AsciiStrToLower(states.value(i)->name()));
  return names;
}

std::vector<std::string> Topics() {
  std::vector<std::string> names;
  for (const HelpTopic& topic : HelpTopics())
    names.push_back(topic.name);
  return names;
}

}  // namespace

Offer OfferOf(Completes completes) {
  switch (completes) {
    case Completes::kNothing:
      return {};
    case Completes::kFile:
    case Completes::kDirectory:
      return {.has_files = true};
    case Completes::kTopic:
      return {.words = Topics()};
    case Completes::kShell:
      return {.words = {"bash", "zsh", "fish"}};
    case Completes::kFormat:
      return {.words = OutputNames()};
    case Completes::kColor:
      return {.words = {"auto", "always", "never"}};
    case Completes::kDivision:
      return {.words = {"closed", "open"}};
    case Completes::kEntryState:
      return {.words = NamesOf(*v1::Submission::State_descriptor())};
    case Completes::kRunState:
      return {.words = NamesOf(*v1::Run::State_descriptor())};
    // The newest ones of what there may be very many of.
    case Completes::kEntry:
      return {.ask = "entry list -n 200"};
    case Completes::kEntryOrDirectory:
      return {.ask = "entry list -n 200", .has_files = true};
    case Completes::kSet:
      return {.ask = "set list -n 200"};
    case Completes::kRun:
      return {.ask = "run list -n 200"};
    case Completes::kNode:
      return {.ask = "node list"};
    case Completes::kDataset:
      return {.ask = "dataset list"};
    case Completes::kAllocation:
      return {.ask = "allocation list"};
    case Completes::kRound:
      return {.ask = "rules list"};
    case Completes::kBenchmark:
      return {.ask = "rules list --jq .items[].benchmarks[]"};
  }
  return {};
}

}  // namespace assay::cli
