// The event loop. One mutex guards the driver's own queues; it is never held while the library is
// called, so the library sees as many calls at once as there are threads.
#include "bench/replay/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>

#include "bench/replay/bad_input.hpp"
#include "bench/replay/event_queue.hpp"
#include "bench/replay/run.hpp"

namespace cairn::replay {
namespace {

std::int64_t virtual_us(std::uint64_t tokens, double rate) {
  return std::llround(static_cast<double>(tokens) / rate * 1e6);
}

class simulation {
 public:
  simulation(const trace& from, const simulation_options& opts, engine& on, forward* compute,
             simulation_progress* progress)
      : from_(from),
        opts_(opts),
        engine_(on),
        compute_(compute),
        progress_(progress),
        events_(opts.threads),
        runs_(opts.slots),
        counted_(from.requests.size(), false) {
    for (slot_id slot = 0; slot < opts.slots; ++slot) free_slots_.push_back(slot);
    for (std::size_t i = 0; i < from.requests.size(); ++i) {
      if (from.requests[i].final_units() <= opts.kv_units)
        events_.push({from.requests[i].arrival_us, true, i});
      else
        ++figures_.refused;
    }
  }

  simulation_figures run_all() {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < opts_.threads; ++i) others.emplace_back([this] { work(); });
    work();
    for (std::thread& each : others) each.join();
    if (failure_) std::rethrow_exception(failure_);
    if (!waiting_.empty() || live_ != 0) throw broken_run("the replay stopped with work left");
    return figures_;
  }

 private:
  using lock = std::unique_lock<std::mutex>;

  // ---- events ---------------------------------------------------------------------
  void work() {
    try {
      lock held(mutex_);
      for (;;) {
        changed_.wait(held, [&] {
          return stop_ || events_.may_take() || (events_.empty() && events_.idle());
        });
        if (stop_ || events_.empty()) break;
        handle_next(held);
      }
    } catch (...) {
      lock held(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
    changed_.notify_all();
  }

  void handle_next(lock& held) {
    std::uint64_t number = 0;
    const sim_event next = events_.take(number);
    run* of = nullptr;
    if (next.arrival) {
      waiting_.push_back(next.index);
    } else {
      of = &runs_[next.index];
      if (of->generation != next.generation) return events_.put_away(number);
      of->in_hand = true;
    }
    figures_.end_us = std::max(figures_.end_us, next.at_us);
    if (progress_ != nullptr) progress_->now_us.store(next.at_us, std::memory_order_relaxed);
    held.unlock();
    if (of == nullptr || !end_step(*of, next.at_us)) admit_waiting(next.at_us);
    held.lock();
    events_.put_away(number);
    changed_.notify_all();
  }

  /// Gives a run back to the queue: its step ends at `at_us`.
  void hand_back(run& of, std::int64_t at_us) {
    lock held(mutex_);
    of.in_hand = false;
    events_.push({at_us, false, of.slot, of.generation});
    changed_.notify_one();
  }

  // ---- admission ------------------------------------------------------------------
  void admit_waiting(std::int64_t now_us) {
    for (;;) {
      lock held(mutex_);
      if (waiting_.empty() && admitting_ == 0) tight_ = false;
      if (waiting_.empty() || live_ == opts_.live || blocked_) return;
      if (tight_ && admitting_ > 0) return;  // whoever is at it goes on with the next
      ++admitting_;
      const std::size_t index = waiting_.front();
      waiting_.pop_front();
      run& made = runs_[free_slots_.front()];
      made.slot = free_slots_.front();
      free_slots_.pop_front();
      const bool alone = ++live_ == 1;
      const std::uint64_t releases = releases_;
      made.id = ++runs_begun_;
      made.index = index;
      made.of = &from_.requests[index];
      held.unlock();

      std::optional<admitted> holds = admit(made, alone, now_us);
      if (holds) {
        // It may have arrived within the window in which threads overtake each other.
        start(made, *holds, std::max(now_us, made.of->arrival_us));
        held.lock();
        --admitting_;
        continue;
      }
      held.lock();
      --admitting_;
      tight_ = true;
      waiting_.push_front(index);
      free_slots_.push_front(made.slot);
      --live_;
      if (releases != releases_) continue;
      if (alone)
        throw broken_run("request " + std::to_string(index) + " finds no room in an idle pool");
      blocked_ = live_ != 0;
    }
  }

  std::optional<admitted> admit(run& made, bool alone, std::int64_t now_us) {
    const request& of = *made.of;
    const std::span<const checkpoint_key> keys(of.keys.data(), of.hit_limit());
    made.units.assign(of.prompt_units(), no_unit);
    const std::uint32_t fresh = of.prompt_units() - of.hit_limit();
    engine_.settle(now_us);
    auto holds = engine_.admit(made.id, made.slot, keys, fresh, made.units);
    if (holds || !alone) return holds;
    engine_.quiet(true);
    holds = engine_.admit(made.id, made.slot, keys, fresh, made.units);
    if (holds) return holds;
    // The checkpoint to resume from may itself be in the way of a very large request.
    holds = engine_.admit(made.id, made.slot, {}, of.prompt_units(), made.units);
    if (holds) {
      lock held(mutex_);
      ++figures_.cold;
    }
    return holds;
  }

  void start(run& made, const admitted& holds, std::int64_t now_us) {
    const request& of = *made.of;
    made.resumed = holds.resumed;
    made.context = std::uint64_t{holds.resumed} * block_tokens;
    made.begun = false;
    // The new units are held by now, so that room for the image is all that is left to ask for.
    std::uint32_t demanded = 0;
    if (opts_.place.demand && holds.resumed < holds.kv_hit) {
      const checkpoint_key* protect = holds.resumed > 0 ? &of.keys[holds.resumed - 1] : nullptr;
      if (engine_.has_available_units(opts_.image_units, protect)) demanded = holds.kv_hit;
    }
    made.wanted = placements(opts_.place, of, holds.resumed, demanded);
    std::uint64_t kv_hit = holds.kv_hit;
    if (kv_hit == of.hit_limit() && kv_hit < of.keys.size() && engine_.has_kv(of.keys[kv_hit]))
      ++kv_hit;
    {
      lock held(mutex_);
      made.active = true;
      made.in_hand = true;
      figures_.restores += holds.resumed > 0 ? 1 : 0;
      figures_.computed_tokens += of.input_tokens - made.context;
      if (!counted_[made.index]) {
        counted_[made.index] = true;
        figures_.total_tokens += of.input_tokens;
        figures_.kv_hit_tokens += kv_hit * block_tokens;
        figures_.wanted_tokens += std::uint64_t{holds.kv_hit} * block_tokens;
        figures_.resumed_tokens += made.context;
      }
    }
    proceed(made, now_us);
  }

  // ---- the life of a run ----------------------------------------------------------
  /// The step under way has ended. True while the run goes on.
  bool end_step(run& of, std::int64_t now_us) {
    if (!of.begun && of.resumed > 0 && !engine_.restored(of.id, of.slot)) {
      {
        lock held(mutex_);
        ++figures_.failed_restores;
      }
      leave(of, true);
      return false;
    }
    compute(of);
    const std::uint64_t before = of.context;
    const bool was_prompt = of.in_prompt();
    of.context = of.step_end;
    of.begun = true;
    if (was_prompt) {
      publish(of, before);
      if (!of.in_prompt()) of.prompt_end_us = now_us;
      if (const placement* at = of.reached(); at != nullptr) {
        engine_.reach(of.id, of.slot, of.of->keys[at->blocks - 1], at->hint, now_us);
        lock held(mutex_);
        ++figures_.boundaries;
      }
    }
    return proceed(of, now_us);
  }

  void compute(run& of) {
    if (compute_ == nullptr) return;
    thread_local std::vector<kv_content> claimed;
    thread_local std::vector<kv_content> computed;
    of.describe_step(claimed, computed);
    forward_step step;
    step.slot = of.slot;
    step.continues = of.context > 0;
    step.from = of.state_key(of.context);
    step.to = of.state_key(of.step_end);
    step.claimed = claimed;
    step.computed = computed;
    compute_->enqueue(step);
  }

  void publish(run& of, std::uint64_t before) {
    const std::uint64_t whole =
        std::min<std::uint64_t>(of.context / block_tokens, of.of->keys.size());
    for (std::uint64_t block = before / block_tokens; block < whole; ++block)
      engine_.publish(of.id, static_cast<std::uint32_t>(block), of.units[block],
                      of.of->keys[block]);
  }

  /// Begins the next step, or ends the run. True while the run goes on.
  bool proceed(run& of, std::int64_t now_us) {
    if (of.in_prompt()) {
      const bool cut = of.cut_chunk(opts_.chunk_tokens);
      {
        lock held(mutex_);
        ++figures_.chunks;
        figures_.chunk_cuts += cut ? 1 : 0;
      }
      hand_back(of, now_us + virtual_us(of.step_end - of.context, opts_.prefill_rate));
      return true;
    }
    if (of.context == of.target()) {
      leave(of, false);
      return false;
    }
    if (of.context == of.capacity() && !grow(of)) {
      leave(of, true);
      return false;
    }
    of.step_end = std::min(of.target(), of.capacity());
    hand_back(of, now_us + virtual_us(of.step_end - of.context, opts_.decode_rate));
    return true;
  }

  /// One more unit; preempts the youngest while there is none. False: that is `of` itself.
  bool grow(run& of) {
    bool waited = false;
    for (;;) {
      const unit_id unit = engine_.grow(of.id);
      if (unit != no_unit) {
        of.units.push_back(unit);
        return true;
      }
      if (!waited) {
        // Copies that end now may leave something to evict.
        engine_.quiet(false);
        waited = true;
        continue;
      }
      run* victim = take_youngest(of);
      if (victim == &of) return false;
      leave(*victim, true);
    }
  }

  /// The run admitted last among those that no other thread is working on.
  run* take_youngest(run& asking) {
    lock held(mutex_);
    run* youngest = &asking;
    for (run& each : runs_)
      if (each.active && !each.in_hand && each.id > youngest->id) youngest = &each;
    youngest->in_hand = true;
    return youngest;
  }

  /// Frees the units, last block first, and the slot; a preempted request is next in line.
  void leave(run& of, bool preempted) {
    std::vector<unit_id> units(of.units.rbegin(), of.units.rend());
    {
      // Its event, if it has one, is stale from now on.
      lock held(mutex_);
      ++of.generation;
      of.active = false;
    }
    engine_.release(of.id, of.slot, units, preempted);
    lock held(mutex_);
    of.in_hand = false;
    free_slots_.push_back(of.slot);
    --live_;
    ++releases_;
    if (preempted) {
      // Whoever made room takes it first: nobody is admitted until a run has ended.
      ++figures_.preempted;
      waiting_.push_front(of.index);
      blocked_ = live_ != 0;
      return;
    }
    blocked_ = false;
    ++figures_.requests;
    figures_.output_tokens += of.of->output_tokens;
    figures_.first_token_us += of.prompt_end_us - of.of->arrival_us;
    if (progress_ != nullptr) progress_->done.fetch_add(1, std::memory_order_relaxed);
  }

  const trace& from_;
  const simulation_options opts_;
  engine& engine_;
  forward* compute_;
  simulation_progress* progress_;

  std::mutex mutex_;
  std::condition_variable changed_;
  event_queue events_;
  std::deque<std::size_t> waiting_;
  std::vector<run> runs_;  // by slot
  std::deque<slot_id> free_slots_;
  std::uint32_t live_ = 0;
  bool blocked_ = false;  // no admission until a run has ended
  // Large admissions that overlap may evict and still be refused, all of them. Once one was
  // refused they come one at a time, in order, until nobody waits.
  bool tight_ = false;
  std::uint32_t admitting_ = 0;
  std::uint64_t releases_ = 0;  // an admission that failed before one is tried again
  run_id runs_begun_ = 0;
  std::vector<bool> counted_;
  simulation_figures figures_;
  std::exception_ptr failure_;
  bool stop_ = false;
};

}  // namespace

simulation_figures simulate(const trace& from, const simulation_options& opts, engine& on,
                            forward* compute, simulation_progress* progress) {
  return simulation(from, opts, on, compute, progress).run_all();
}

unaided_figures without_checkpoints(const trace& from, const simulation_options& opts) {
  unaided_figures found;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> places;
  for (std::uint32_t i = 0; i < opts.live; ++i) places.push(0);
  for (const request& each : from.requests) {
    if (each.final_units() > opts.kv_units) continue;
    const std::int64_t begin_us = std::max(places.top(), each.arrival_us);
    places.pop();
    const std::int64_t prompt_us = begin_us + virtual_us(each.input_tokens, opts.prefill_rate);
    const std::int64_t end_us = prompt_us + virtual_us(each.output_tokens, opts.decode_rate);
    found.first_token_us += prompt_us - each.arrival_us;
    found.end_us = std::max(found.end_us, end_us);
    places.push(end_us);
  }
  return found;
}

}  // namespace cairn::replay
