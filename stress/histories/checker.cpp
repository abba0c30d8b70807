// The search of checker.hpp.
#include "stress/histories/checker.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cinttypes>
#include <cstdio>

namespace cairn::histories {

const char* to_string(call what) noexcept {
  constexpr const char* names[] = {"store",  "publish",  "restore",  "pin",    "unpin",
                                   "lookup", "contains", "occupied", "forget", "clear"};
  return names[static_cast<std::size_t>(what)];
}

const char* to_string(answer said) noexcept {
  constexpr const char* names[] = {"ok", "no", "duplicate", "refused", "failed"};
  return names[static_cast<std::size_t>(said)];
}

void check_figures::merge(const check_figures& other) noexcept {
  calls += other.calls;
  overlapped += other.overlapped;
  longest = std::max(longest, other.longest);
  widest = std::max(widest, other.widest);
  configurations = std::max(configurations, other.configurations);
}

void key_checker::reset() {
  now_.assign(1, {});
  open_ = 0;
  clears_ = 0;
}

void key_checker::open(const entry& e) {
  assert(~open_ != 0);
  const auto bit = static_cast<std::uint32_t>(std::countr_one(open_));
  under_way& mine = slots_[bit];
  mine = {&e, false, ended_};
  if (e.what == call::store) {
    const bool further = e.said != answer::duplicate;
    for (std::uint64_t left = open_; left != 0; left &= left - 1) {
      under_way& other = slots_[std::countr_zero(left)];
      if (other.what->what != call::store) continue;
      if (further) other.crowded = true;
      if (other.what->said != answer::duplicate) mine.crowded = true;
    }
  }
  open_ |= std::uint64_t{1} << bit;
  if (e.what == call::clear) clears_ |= std::uint64_t{1} << bit;
  const auto width = static_cast<std::uint64_t>(std::popcount(open_));
  figures_.widest = std::max(figures_.widest, width);
}

/// The end of a store, and the fall of a pin, come after its beginning, though both may be under
/// way at once where a runtime ends ops by itself.
bool key_checker::may_precede(const entry& e, const configuration& at) const {
  if (e.what != call::publish && e.what != call::unpin) return true;
  const call first = e.what == call::publish ? call::store : call::restore;
  for (std::uint64_t left = open_ & ~at.done; left != 0; left &= left - 1) {
    const entry& other = *slots_[std::countr_zero(left)].what;
    if (other.what == first && other.thread == e.thread && other.begin == e.begin) return false;
  }
  return true;
}

void key_checker::keep(const configuration& c) {
  if (std::find(next_.begin(), next_.end(), c) == next_.end()) next_.push_back(c);
}

void key_checker::explore(const configuration& from, std::uint32_t must, const rules& with) {
  if (std::find(seen_.begin(), seen_.end(), from) != seen_.end()) return;
  seen_.push_back(from);
  for (std::uint64_t left = open_ & (~from.done | clears_); left != 0; left &= left - 1) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(left));
    const under_way& tried = slots_[bit];
    if (!may_precede(*tried.what, from)) continue;
    configuration to = from;
    if (!apply(to.state, *tried.what, with, tried.crowded)) continue;
    if (bit == must) {
      to.done &= ~(std::uint64_t{1} << bit);
      keep(to);
      continue;
    }
    to.done |= std::uint64_t{1} << bit;
    explore(to, must, with);
  }
}

bool key_checker::close(const entry& e, const rules& with) {
  std::uint32_t bit = 0;
  while ((open_ >> bit & 1) == 0 || slots_[bit].what != &e) ++bit;
  const std::uint64_t mask = std::uint64_t{1} << bit;
  next_.clear();
  seen_.clear();
  for (configuration c : now_) {
    // A clear may have one more effect before it ends, behind what else takes effect till then.
    if ((c.done & mask) == 0 || e.what == call::clear) explore(c, bit, with);
    if ((c.done & mask) == 0) continue;
    c.done &= ~mask;
    keep(c);
  }
  if (next_.empty()) return false;
  now_.swap(next_);
  open_ &= ~mask;
  clears_ &= ~mask;
  const std::uint64_t meanwhile = ended_ - slots_[bit].ended_before;
  if (meanwhile != 0 || open_ != 0) ++figures_.overlapped;
  figures_.longest = std::max(figures_.longest, meanwhile);
  figures_.configurations = std::max<std::uint64_t>(figures_.configurations, now_.size());
  ++figures_.calls;
  ++ended_;
  return true;
}

bool key_checker::check(std::vector<entry>& calls, const rules& with, std::string& why) {
  std::sort(calls.begin(), calls.end(),
            [](const entry& a, const entry& b) { return a.begin < b.begin; });
  std::vector<const entry*> ends;
  ends.reserve(calls.size());
  for (const entry& e : calls) ends.push_back(&e);
  std::sort(ends.begin(), ends.end(),
            [](const entry* a, const entry* b) { return a->end < b->end; });
  std::size_t begun = 0;
  for (const entry* over : ends) {
    // Of equal stamps the beginning goes first: it widens.
    for (; begun < calls.size() && calls[begun].begin <= over->end; ++begun) open(calls[begun]);
    if (close(*over, with)) continue;
    why = tell(calls, *over);
    return false;
  }
  return true;
}

std::string key_checker::tell(const std::vector<entry>& calls, const entry& at) const {
  std::string text = "the answer to this call fits no order of effects:\n";
  const auto line = [&text, &at](const entry& e) {
    char out[256];
    std::snprintf(out, sizeof out,
                  "  %c thread %2u  %20" PRIu64 " to %20" PRIu64 "  %-8s %-9s image %" PRIu64
                  " handle %" PRIx64 "\n",
                  &e == &at ? '>' : ' ', e.thread, e.begin, e.end, to_string(e.what),
                  to_string(e.said), e.image, e.handle);
    text += out;
  };
  line(at);
  text += "what could be before it:\n";
  for (const configuration& c : now_) {
    constexpr const char* phases[] = {"absent", "COPYING", "READY"};
    char out[160];
    std::snprintf(out, sizeof out,
                  "  %s image %" PRIu64 " handle %" PRIx64 " (before: %" PRIx64 ") pins %u\n",
                  phases[static_cast<std::size_t>(c.state.now)], c.state.image, c.state.handle,
                  c.state.last_handle, c.state.pins);
    text += out;
  }
  text += "the key's history around it, by beginning:\n";
  const auto place = static_cast<std::size_t>(&at - calls.data());
  const std::size_t from = place < 24 ? 0 : place - 24;
  for (std::size_t i = from; i < std::min(calls.size(), place + 8); ++i) line(calls[i]);
  return text;
}

}  // namespace cairn::histories
