#include "cli/run/event_printer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/run/run_profile.h"
#include "common/client/log_line.h"
#include "common/client/resource_json.h"

namespace assay::cli {

void EventPrinter::Print(const v1::RunEvent& event) {
  if (context_->printer().IsJson()) {
    context_->printer().Item("assay.run_event/v1", client::RunEventJson(event)).IgnoreError();
  } else if (has_stamps_) {
    PrintStamped(event);
  } else if (event.kind() == v1::RunEvent::LOG_LINE && !event.is_late()) {
    *context_->env().exact_out() << event.text() << "\n" << std::flush;
  }
}

int64_t EventPrinter::StampOf(const v1::RunEvent& event) {
  if (event.wall_us() != 0 || event.kind() != v1::RunEvent::LOG_LINE) return event.wall_us();
  has_logs_stamps_ = true;
  const std::optional<client::LogLine> line = client::ParseLogLine(event.text());
  return line.has_value() ? line->time_ms * 1000 : 0;
}

void EventPrinter::PrintStamped(const v1::RunEvent& event) {
  const int64_t at_us = StampOf(event);
  if (!start_us_.has_value()) start_us_ = at_us;
  const absl::Time at = absl::FromUnixMicros(at_us);
  const double elapsed = static_cast<double>(at_us - *start_us_) / 1e6;
  const std::string what = event.is_late() ? DescribeLate(event) : Describe(event);
  if (what.empty()) return;
  context_->out() << absl::FormatTime("%H:%M:%E3S", at, context_->env().time_zone)
                  << absl::StrFormat(" %+10.3f  ", elapsed) << what << "\n"
                  << std::flush;
}

std::string EventPrinter::Describe(const v1::RunEvent& event) {
  switch (event.kind()) {
    case v1::RunEvent::LOG_LINE:
      return DescribeLogLine(event);
    case v1::RunEvent::FIRST_TOUCH:
      // What is only observed stands for the run's touch until that is known.
      if (!touch_us_.has_value() || event.is_attributed()) {
        touch_us_ = event.wall_us();
        is_attributed_ = event.is_attributed();
      }
      return absl::StrCat("first dataset touch of node ", event.node_rank(), ", ",
                          event.is_attributed() ? "" : "somebody's, ", "witnessed  ",
                          client::FormatTouch(event.text()), TouchVerdict());
    case v1::RunEvent::FINDING:
      return absl::StrCat(
          context_->style().Paint(absl::StrCat("finding ", event.finding().rule()), Tone::kWarn),
          "  ", event.finding().key(), "  expected ", event.finding().expected(), ", found ",
          event.finding().found());
    case v1::RunEvent::PROGRESS:
      return has_progress_ ? DescribeProgress(event.text()) : "";
    default:
      return absl::StrCat("(an event newer than this program: kind ",
                          static_cast<int>(event.kind()), ")");
  }
}

std::string EventPrinter::DescribeLate(const v1::RunEvent& event) const {
  return context_->style().Paint(absl::StrCat("late, not judged  ", event.text()), Tone::kFaint);
}

std::string EventPrinter::DescribeProgress(const std::string& text) const {
  const std::optional<client::TrainerProgress> progress = client::ParseProgress(text);
  const Json profile = ParseProfile(text);
  return context_->style().Paint(progress.has_value() ? client::FormatProgress(*progress)
                                 : profile.is_null()  ? text
                                                      : FormatProfile(profile),
                                 Tone::kFaint);
}

std::string EventPrinter::DescribeLogLine(const v1::RunEvent& event) {
  const std::optional<client::LogLine> line = client::ParseLogLine(event.text());
  if (!line.has_value()) return context_->style().Paint(event.text(), Tone::kFaint);
  std::string text = line->key;
  if (line->epoch > 0) absl::StrAppend(&text, "  epoch ", line->epoch);
  if (!line->value.empty()) absl::StrAppend(&text, "  ", line->value);
  if (line->key == "run_start") {
    run_start_us_ = line->time_ms * 1000;
    absl::StrAppend(&text, TouchVerdict());
  }
  return text;
}

std::string EventPrinter::TouchVerdict() const {
  if (!touch_us_.has_value() || !run_start_us_.has_value()) return "";
  const double after_ms = static_cast<double>(*touch_us_ - *run_start_us_) / 1000.0;
  const Style& style = context_->style();
  // run_start is logged in whole milliseconds, cut off.
  if (after_ms >= 0)
    return absl::StrFormat("  touch %.1f ms after run_start %s", after_ms, style.Mark(Tone::kGood));
  return absl::StrFormat("  touch %.1f ms BEFORE run_start %s", -after_ms,
                         style.Mark(is_attributed_ ? Tone::kBad : Tone::kWarn));
}

}  // namespace assay::cli
