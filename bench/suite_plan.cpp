// Suite `plan`: host time per op to describe a batch of 64 ops and hand it to the device. What the
// reference did in 44 microseconds for each op: to find which bytes go where.
//
// The copier is pumped by this thread, over a device that takes a launch and does nothing: measured
// is the pass of the copy thread from 64 ops in its queue to the launched batch. A pass also ends
// what the last one launched; that counts, too. Processor time.
//
// Not measured: the words that name an image to a GPU's kernel, one per unit, which a launch of the
// HIP backend writes (kernels/image_words.hpp).
//
// What an op costs depends on how its units follow one another, for their ids are checked to be
// distinct. So there are three cases: rising ids, as a pool hands out units without keys; those of
// a pool in which requests came and went; and ids drawn at random, which no pool gives.
#include <algorithm>

#include "bench/harness/team.hpp"
#include "bench/peers/hollow_copier.hpp"
#include "bench/suites.hpp"

namespace cairn::bench {
namespace {

constexpr const char* suite_name = "plan";
constexpr double reference_ns = 44'000;
constexpr double most_ns = 100;

const char* name_of(id_order order) {
  switch (order) {
    case id_order::rising:
      return "";
    case id_order::used:
      return ", used pool";
    case id_order::shuffled:
      break;
  }
  return ", shuffled ids";
}

void measure(const suite_options& how, const char* geometry, id_order order,
             std::vector<row>& into) {
  hollow_copier on(geometry, false, order);
  constexpr std::uint32_t batch = 64;
  const int batches = how.small() ? 3 : 100;
  const int rounds = how.small() ? 1 : 21;
  std::vector<double> describing;
  std::vector<double> submitting;
  for (int round = 0; round < rounds; ++round) {
    std::int64_t submit_ns = 0;
    std::int64_t pass_ns = 0;
    for (int i = 0; i < batches; ++i) {
      const std::uint64_t before = on.device().launched();
      const std::int64_t begin = thread_cpu_ns();
      for (slot_id slot = 0; slot < batch; ++slot) on.submit(slot);
      const std::int64_t submitted = thread_cpu_ns();
      while (on.device().launched() < before + batch) (void)on.get().pump();
      pass_ns += thread_cpu_ns() - submitted;
      submit_ns += submitted - begin;
      while (on.get().pump()) {
      }
    }
    const double ops = static_cast<double>(batches) * batch;
    describing.push_back(static_cast<double>(pass_ns) / ops);
    submitting.push_back(static_cast<double>(submit_ns) / ops);
  }
  const std::string what = std::string(geometry) + ", batch of 64" + name_of(order);
  into.push_back(times_faster(suite_name, what + ", queue to launch", median(describing),
                              "the reference", reference_ns, "ns/op", reference_ns / most_ns));
  if (order == id_order::rising)
    into.push_back(
        less_is_better(suite_name, what + ", submit", median(submitting), "", 0, "ns/op"));
}

}  // namespace

void measure_plan(const suite_options& how, std::vector<row>& into) {
  for (const char* geometry : {"dsv4_flash", "gdn_36"})
    for (const id_order order : {id_order::rising, id_order::used, id_order::shuffled})
      measure(how, geometry, order, into);
}

}  // namespace cairn::bench
