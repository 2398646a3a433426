#include "common/rules/round_file.h"

namespace assay::rules {
namespace {

constexpr RoundFileKey kKeys[] = {
    {"round", "name", "\"words-mini\"",
     "required: lower-case letters, digits, - and .; not hpc..."},
    {"round", "base", "\"hpc-3.0.0\"",
     "required: the round whose order of records, timing, staging and scoring it has"},
    {"round", "label", "\"Facility round words-mini: not an MLPerf result\"",
     "required: what stands beside its scores"},
    {"round", "init_limit_s", "1800", "programs that take longer before run_start are stopped"},
    {"round", "first_pass_from_storage", "true",
     "R-IOB-001, that the first epoch is read from storage, is an error and no warning"},
    {"round", "data_cold_at_start", "true",
     "data in memory when the clock starts (R-TIM-004, -005, -007) is an error and no warning"},
    {"round", "first_touch_assurance", "\"observed\"",
     "or \"proven\": less on any node is an error (R-TIM-008)"},
    {"benchmark", "name", "\"words\"",
     "required: one of the base's, or a new one, which programs train"},
    {"benchmark", "runs", "3", "required: of a set; at least 3 for a score"},
    {"benchmark", "target", "2.076", "required: the quality at which a run has converged"},
    {"benchmark", "quality_key", "\"eval_perplexity\"",
     "of a new one, and required then: the key of its quality in the log"},
    {"benchmark", "better", "\"lower\"", "likewise: or \"higher\""},
    {"rule", "id", "\"R-FAC-001\"", "required: R-FAC- and digits"},
    {"rule", "key", "\"train_samples\"",
     "required: the key of the log; a rule of the base for it is replaced"},
    {"rule", "occurrence", "\"exactly_one\"",
     "of records with the key: exactly_one (if not given), at_least_one, optional"},
    {"rule", "equals", "250000", "what its value must be; any of these six, all must hold"},
    {"rule", "one_of", "[\"sgd\", \"SGD\"]", "one of these values"},
    {"rule", "above", "0", "more than this"},
    {"rule", "below", "1", "less than this"},
    {"rule", "at_least", "1", "this or more"},
    {"rule", "at_most", "64", "this or less"},
    {"rule", "hyperparameter", "true", "it is judged by 'assay plan', too; false if not given"},
    {"rule", "divisions", "[\"closed\"]", "where it holds; both if not given"},
    {"rule", "section", "\"words-mini, Data set\"", "where it stands, for the finding"},
    {"rule", "remedy", "\"train on all of the text\"", "what to do, for the finding"},
};

}  // namespace

std::span<const RoundFileKey> RoundFileKeys() {
  return kKeys;
}

std::vector<std::string> RoundFileTables() {
  std::vector<std::string> tables;
  for (const RoundFileKey& key : kKeys)
    if (tables.empty() || tables.back() != key.table) tables.emplace_back(key.table);
  return tables;
}

std::vector<std::string> RoundFileKeysOf(absl::string_view table) {
  std::vector<std::string> names;
  for (const RoundFileKey& key : kKeys)
    if (key.table == table) names.emplace_back(key.name);
  return names;
}

}  // namespace assay::rules
