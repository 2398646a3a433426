#include "tests/rules/log_mutator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace assay::testing {
namespace {

constexpr uint32_t kEditsMax = 4;

constexpr const char* kValues[] = {
    // Any type.
    "null", "true", "false", "\"\"", "[]", "{}", "[1]", "[0.9, 0.999]", "[1, 2, 3]", "{\"a\": 1}",
    "[[]]", "\"x\"", "\"None\"", "[\"closed\"]", "[NaN]",
    // Numbers at the edges of rules.
    "0", "1", "-1", "2", "4", "0.0", "-0.0", "1.0", "1.0000001", "0.9999", "0.5", "0.124",
    "0.12400000000000001", "0.124000001", "0.82", "0.8199999999999999", "0.8", "0.036", "0.0360001",
    "1e-6", "1e-06", "1.0000000009e-6", "1.00000001e-6", "121266", "121266.0", "121265", "15158",
    "594595", "180", "0.3", "0.01", "0.1", "1e-8", "5e-324",
    // Numbers at the edges of numbers.
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "9007199254740993", "9007199254740993.0",
    "10000000000000000000000000", "1e25", "1E5", "1e+2", "-0",
    // No JSON.
    "-NaN", "01", ".5", "1.", "+1", "True", "None", "'x'", "nan", "0x10", "[1,]", "{\"a\": 1,}",
    // Names.
    "\"closed\"", "\"open\"", "\"Closed\"", "\"cosmoflow\"", "\"deepcam\"", "\"oc20\"",
    "\"openfold\"", "\"resnet\"", "\"cloud\"", "\"onprem\"", "\"preview\"", "\"research\"",
    "\"sgd\"", "\"SGD\"", "\"Adam\"", "\"adam\"", "\"AdamW\"", "\"LAMB\"", "\"lamb\"",
    "\"multistep\"", "\"MULTISTEP\"", "\"cosine_annealing\"", "\"Cosine_Annealing\"", "\"poly\"",
    "\"deepcam_lamb\"", "\"InitialTrainingDataloaderPQ\"", "\"2021-09-16\"", "\"64\"", "\"1e3\"",
    // Text that is hard to read.
    "\"\\u00e9\"", "\"\xc3\xa9\"", "\"\xff\"", "\"\\ud800\"", "\"\\udc80\"", "\"\\ud83d\\ude00\"",
    "\"\\u0000\"", "\"a\\u0000\xe9\"", "\"\\\"\"", "\"\\x\"", "\"\t\"", "\"\x7f\"", "\"\\u0049\""};

constexpr const char* kMetadata[] = {"null",
                                     "{}",
                                     "[]",
                                     "\"\"",
                                     "1",
                                     "true",
                                     "\"xepoch_numx\"",
                                     "\"status\"",
                                     "[\"epoch_num\"]",
                                     "[\"status\"]",
                                     "{\"epoch_num\": null}",
                                     "{\"epoch_num\": 1}",
                                     "{\"status\": null}",
                                     "{\"status\": \"aborted\"}",
                                     "{\"first_epoch_num\": 1, \"epoch_count\": 1}",
                                     "{\"first_epoch_num\": 1, \"epoch_count\": 0}",
                                     R"({"first_epoch_num": 1, "epoch_count": "2"})",
                                     "{\"epoch_num\": 1, \"epoch_num\": 2}",
                                     "{\"first_epoch_num\": 1}",
                                     "{\"Epoch_num\": 1}"};

constexpr const char* kKeys[] = {"submission_org",
                                 "submission_platform",
                                 "submission_division",
                                 "submission_status",
                                 "submission_benchmark",
                                 "submission_poc_name",
                                 "cache_clear",
                                 "init_start",
                                 "init_stop",
                                 "staging_start",
                                 "staging_stop",
                                 "run_start",
                                 "run_stop",
                                 "block_start",
                                 "block_stop",
                                 "epoch_start",
                                 "epoch_stop",
                                 "eval_start",
                                 "eval_stop",
                                 "train_samples",
                                 "eval_samples",
                                 "gradient_accumulation_steps",
                                 "gradient_accumulation_frequency",
                                 "number_of_nodes",
                                 "accelerators_per_node",
                                 "eval_error",
                                 "eval_accuracy",
                                 "global_batch_size",
                                 "opt_name",
                                 "opt_base_learning_rate",
                                 "opt_weight_decay",
                                 "dropout",
                                 "seed",
                                 "batchnorm_group_size",
                                 "opt_lr",
                                 "opt_betas",
                                 "opt_eps",
                                 "scheduler_type",
                                 "scheduler_milestones",
                                 "scheduler_decay_rate",
                                 "scheduler_t_max",
                                 "scheduler_eta_min",
                                 "opt_bias_correction",
                                 "opt_grad_averaging",
                                 "opt_max_grad_norm",
                                 "scheduler_lr_warmup_steps",
                                 "scheduler_lr_warmup_factor",
                                 "opt_learning_rate_warmup_epochs",
                                 "swa_enabled",
                                 "initial_training_dataloader_type",
                                 "opt_amsgrad",
                                 "unheard_of"};

constexpr const char* kTimes[] = {"0",       "-1",          "1e999", "NaN",          "null", "true",
                                  "\"12\"",  "\" 1_0 \"",   "\"x\"", "[]",           "{}",   "1.5",
                                  "\"nan\"", "\"\\u0661\"", "\"\"",  "1700000000000"};

constexpr absl::string_view kPieces[] = {
    ":::MLLOG ", ":::MLLOG", ":::MLLOG\t", "{",   "}",   "[",    "]",    "\"",   "\\",
    ",",         ":",        " ",          "\t",  "\r",  "\n",   "\x85", "\x1c", "\xa0",
    "\x01",      "\x08",     "\xff",       "NaN", "1e5", "null", "e",    "0"};

template <size_t kSize>
std::string Pick(const char* const (&table)[kSize], uint32_t index) {
  return table[index % kSize];
}

}  // namespace

uint32_t LogMutator::Below(size_t bound) {
  return stream_.Below(index_++, static_cast<uint32_t>(bound));
}

void LogMutator::Note(absl::string_view what, size_t line) {
  absl::StrAppend(&story_, story_.empty() ? "" : ", ", what, " at ", line);
}

std::string LogMutator::Value() {
  const uint32_t kind = Below(40);
  // Integers of as many digits as Python still reads, and one more; depth that it does not mind,
  // and depth that it does.
  if (kind == 0) return std::string(4300, '7');
  if (kind == 1) return std::string(4301, '7');
  if (kind == 2) return absl::StrCat("1", std::string(400, '0'));
  if (kind == 3) return absl::StrCat(std::string(200, '['), std::string(200, ']'));
  if (kind == 4) return absl::StrCat(std::string(3000, '['), std::string(3000, ']'));
  if (kind == 5) return absl::StrCat("\"", std::string(300, 'n'), "\"");
  return Pick(kValues, Below(std::size(kValues)));
}

std::string LogMutator::Metadata() {
  return Pick(kMetadata, Below(std::size(kMetadata)));
}

std::string LogMutator::Time(const std::string& line) {
  const size_t digits = line.find("\"time_ms\": ") + 11;
  int64_t time = 0;
  for (size_t i = digits; i < line.size() && line[i] >= '0' && line[i] <= '9' && i < digits + 15;
       ++i)
    time = time * 10 + (line[i] - '0');
  // Either side of the limits on initialisation, or no time at all.
  switch (Below(5)) {
    case 0:
      return absl::StrCat(time + 1'800'000);
    case 1:
      return absl::StrCat(time - 1'800'000);
    case 2:
      return absl::StrCat(time - 1 - Below(1000));
    default:
      return Pick(kTimes, Below(std::size(kTimes)));
  }
}

bool LogMutator::SetMember(std::string* line, absl::string_view member, const std::string& json) {
  const std::string start = absl::StrCat("\"", member, "\": ");
  const size_t at = line->find(start);
  if (at == std::string::npos) return false;
  const size_t begin = at + start.size();
  // The writer's order: what follows a member begins with one of these, or the record ends.
  size_t end = line->rfind('}');
  for (const char* next :
       {", \"event_type\": ", ", \"key\": ", ", \"value\": ", ", \"metadata\": "})
    end = std::min(end, line->find(next, begin));
  if (end == std::string::npos || end < begin) return false;
  line->replace(begin, end - begin, json);
  return true;
}

void LogMutator::EditOrder(Lines* lines, const Lines& other) {
  const size_t at = Below(lines->size());
  const size_t to = Below(lines->size());
  const auto begin = lines->begin();
  switch (Below(6)) {
    case 0:
      Note("drop", at);
      lines->erase(begin + static_cast<std::ptrdiff_t>(at));
      return;
    case 1: {
      Note("repeat", at);
      const std::string copy = (*lines)[at];
      lines->insert(begin + static_cast<std::ptrdiff_t>(to), copy);
      return;
    }
    case 2:
      Note("swap", at);
      std::swap((*lines)[at], (*lines)[to]);
      return;
    case 3:
      Note("move", at);
      std::rotate(begin + static_cast<std::ptrdiff_t>(std::min(at, to)),
                  begin + static_cast<std::ptrdiff_t>(at),
                  begin + static_cast<std::ptrdiff_t>(at) + 1);
      return;
    case 4:
      Note("borrow", at);
      lines->insert(begin + static_cast<std::ptrdiff_t>(at), other[Below(other.size())]);
      return;
    default:
      Note("cut after", at);
      if (Below(4) == 0) lines->resize(at + 1);
      return;
  }
}

void LogMutator::EditRecord(Lines* lines) {
  const size_t at = Below(lines->size());
  std::string& line = (*lines)[at];
  switch (Below(9)) {
    case 0:
    case 1:
    case 2:
      Note("value", at);
      SetMember(&line, "value", Value());
      return;
    case 3: {
      Note("repeat with another value", at);
      std::string copy = line;
      SetMember(&copy, "value", Value());
      lines->insert(lines->begin() + static_cast<std::ptrdiff_t>(Below(lines->size())), copy);
      return;
    }
    case 4:
      Note("metadata", at);
      SetMember(&line, "metadata", Metadata());
      return;
    case 5:
      Note("time", at);
      SetMember(&line, "time_ms", Time(line));
      return;
    case 6:
      Note("key", at);
      SetMember(&line, "key", absl::StrCat("\"", Pick(kKeys, Below(std::size(kKeys))), "\""));
      return;
    case 7: {
      Note("new record", at);
      const std::string record = absl::StrCat(
          ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1600000000000, \"event_type\": \"X\", "
          "\"key\": \"",
          Pick(kKeys, Below(std::size(kKeys))), "\", \"value\": ", Value(),
          ", \"metadata\": ", Metadata(), "}");
      lines->insert(lines->begin() + static_cast<std::ptrdiff_t>(at), record);
      return;
    }
    default: {
      Note("member dropped", at);
      const char* const kMembers[] = {"\"namespace\"", "\"time_ms\"", "\"key\"", "\"value\"",
                                      "\"metadata\""};
      const std::string member = Pick(kMembers, Below(std::size(kMembers)));
      const size_t name = line.find(member);
      if (name != std::string::npos) line.replace(name, member.size(), "\"dropped\"");
      return;
    }
  }
}

void LogMutator::EditBytes(Lines* lines) {
  const size_t at = Below(lines->size());
  std::string& line = (*lines)[at];
  const size_t byte = Below(line.size() + 1);
  switch (Below(4)) {
    case 0:
      Note("byte", at);
      if (byte < line.size()) line[byte] = static_cast<char>(Below(256));
      return;
    case 1:
      Note("piece", at);
      line.insert(byte, std::string(kPieces[Below(std::size(kPieces))]));
      return;
    case 2:
      Note("torn", at);
      line.resize(byte);
      return;
    default:
      Note("joined", at);
      if (at + 1 < lines->size()) {
        line += (*lines)[at + 1];
        lines->erase(lines->begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      return;
  }
}

void LogMutator::Edit(Lines* lines, const Lines& other) {
  const uint32_t kind = Below(10);
  if (kind < 3) {
    EditOrder(lines, other);
  } else if (kind < 9) {
    EditRecord(lines);
  } else {
    EditBytes(lines);
  }
}

std::string LogMutator::Mutate(Lines lines, const Lines& other) {
  story_.clear();
  const uint32_t edits = 1 + Below(kEditsMax);
  for (uint32_t i = 0; i < edits && !lines.empty(); ++i)
    Edit(&lines, other);
  const char* const kEnds[] = {"\n", "\n", "\n", "\n", "\n", "\n", "\r\n", "\r"};
  return absl::StrJoin(lines, Pick(kEnds, Below(std::size(kEnds))));
}

}  // namespace assay::testing
