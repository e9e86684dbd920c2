// Operations of groups: what every rank has afterwards, for each operation, size and dtype.
#include <atomic>
#include <numeric>

#include <doctest/doctest.h>

#include "kiln/distributed/error.h"
#include "kiln/distributed/mesh.h"
#include "kiln/kiln.h"
#include "tests/distributed/ranks.h"

using namespace kiln;
using namespace kiln::distributed;
using namespace std::chrono_literals;
using test::in_group;

namespace {

// What rank r gives in these tests: numbers that floats add exactly.
Tensor values(int rank, int64_t n, DType dtype = f32) {
  Tensor x = arange(n, {f64}).remainder(7) + 1.0 + rank;
  return x.to(dtype);
}

std::vector<double> numbers(const Tensor& x) { return x.to(f64).to_vector<double>(); }

}  // namespace

TEST_CASE("all_reduce, for sizes on both sides of every path") {
  for (const int size : {1, 2, 3, 5}) {
    in_group(size, [size](ProcessGroup& group) {
      CHECK(group.size() == size);
      for (const int64_t n : {0, 1, 2, 4096, 4097, 70'001, 400'003}) {
        Tensor expected = zeros({n}, {f64});
        for (int r = 0; r < size; ++r) expected = expected + values(r, n, f64);
        Tensor x = values(group.rank(), n);
        const uint32_t version = x.version();
        group.all_reduce(x);
        CHECK(numbers(x) == numbers(expected));
        CHECK((size == 1 || x.version() > version));
        // The mean rounds once, so that 1/3 of a sum is what division gives.
        Tensor y = values(group.rank(), n);
        group.all_reduce(y, ReduceOp::avg);
        CHECK(numbers(y) == numbers(expected.to(f32) / static_cast<double>(size)));
      }
    });
  }
}

TEST_CASE("all ways to join, and the dtypes that have them") {
  in_group(3, [](ProcessGroup& group) {
    const int r = group.rank();
    const auto joined = [&](Tensor x, ReduceOp op) {
      group.all_reduce(x, op);
      return x;
    };
    for (const DType dtype : {f64, f32, f16, bf16, i64, i32, i16, i8, u8}) {
      const Tensor x = tensor({1 + r, 5 - r, 3}).to(dtype);
      CHECK(numbers(joined(x.clone(), ReduceOp::sum)) == std::vector<double>{6, 12, 9});
      CHECK(numbers(joined(x.clone(), ReduceOp::product)) == std::vector<double>{6, 60, 27});
      CHECK(numbers(joined(x.clone(), ReduceOp::min)) == std::vector<double>{1, 3, 3});
      CHECK(numbers(joined(x.clone(), ReduceOp::max)) == std::vector<double>{3, 5, 3});
      if (is_floating_point(dtype)) {
        CHECK(numbers(joined(x.clone(), ReduceOp::avg)) == std::vector<double>{2, 4, 3});
        CHECK_THROWS_AS(group.all_reduce(x, ReduceOp::band), DTypeError);
      } else {
        CHECK(numbers(joined(x.clone(), ReduceOp::bor)) == std::vector<double>{3, 7, 3});
        CHECK(numbers(joined(x.clone(), ReduceOp::band)) == std::vector<double>{0, 0, 3});
        CHECK(numbers(joined(x.clone(), ReduceOp::bxor)) == std::vector<double>{0, 2, 3});
        CHECK_THROWS_AS(group.all_reduce(x, ReduceOp::avg), DTypeError);
      }
    }
    const Tensor b = tensor({r == 1, true, false});
    CHECK(numbers(joined(b.clone(), ReduceOp::sum)) == std::vector<double>{1, 1, 0});
    CHECK(numbers(joined(b.clone(), ReduceOp::product)) == std::vector<double>{0, 1, 0});
    CHECK(numbers(joined(b.clone(), ReduceOp::bxor)) == std::vector<double>{1, 1, 0});
    const Tensor c = joined(complex(tensor({1.0f + r}), tensor({2.0f * r})), ReduceOp::avg);
    CHECK(numbers(view_as_real(c)) == std::vector<double>{2, 2});
    CHECK_THROWS_AS(group.all_reduce(c, ReduceOp::max), DTypeError);
    CHECK_THROWS_AS(group.all_reduce(Tensor()), ValueError);
  });
}

TEST_CASE("sums of 16-bit numbers round once, and sums have an order") {
  in_group(4, [](ProcessGroup& group) {
    // One after the other in bf16, 256 + 1 + 1 + 1 stays 256.
    Tensor x = tensor({group.rank() == 0 ? 256.0f : 1.0f}).to(bf16);
    group.all_reduce(x);
    CHECK(numbers(x) == std::vector<double>{260});  // 259 in bf16
    const float parts[] = {1e8f, 3.14159f, -1e8f, 2.71828f};
    Tensor y = full({50'000}, parts[group.rank()]);
    group.all_reduce(y);
    const float expected = ((parts[0] + parts[1]) + parts[2]) + parts[3];
    CHECK(numbers(y) == std::vector<double>(50'000, expected));
  });
}

TEST_CASE("reduce and broadcast") {
  for (const int size : {2, 3, 4}) {
    in_group(size, [size](ProcessGroup& group) {
      for (const int64_t n : {1, 5000, 300'001}) {
        for (int root = 0; root < size; root += size - 1) {
          Tensor x = values(group.rank(), n, i64);
          group.reduce(x, root);
          Tensor expected = values(group.rank(), n, i64);
          if (group.rank() == root) {
            for (int r = 0; r < size; ++r) {
              if (r != root) expected = expected + values(r, n, i64);
            }
          }
          CHECK(numbers(x) == numbers(expected));
          Tensor y = values(group.rank(), n, bf16);
          group.broadcast(y, root);
          CHECK(numbers(y) == numbers(values(root, n, bf16)));
        }
      }
      CHECK_THROWS_AS(group.broadcast(zeros({1}), size), ValueError);
      CHECK_THROWS_AS(group.reduce(zeros({1}), -1), ValueError);
    });
  }
}

TEST_CASE("gather, scatter and their kin") {
  in_group(3, [](ProcessGroup& group) {
    const int r = group.rank();
    const Tensor x = values(r, 1000);
    std::vector<Tensor> outputs;
    for (int i = 0; i < 3; ++i) outputs.push_back(zeros({10, 100}));
    group.all_gather(outputs, x);
    for (int i = 0; i < 3; ++i) CHECK(numbers(outputs[i]) == numbers(values(i, 1000)));

    for (Tensor& y : outputs) y.zero_();
    group.gather(r == 1 ? outputs : std::vector<Tensor>(), x, 1);
    for (int i = 0; i < 3; ++i) {
      CHECK(numbers(outputs[i]) == (r == 1 ? numbers(values(i, 1000)) : std::vector<double>(1000)));
    }

    Tensor part = zeros({2});
    group.scatter(part,
                  r == 2 ? std::vector<Tensor>{full({2}, 10.0), full({2}, 11.0), full({2}, 12.0)}
                         : std::vector<Tensor>(),
                  2);
    CHECK(numbers(part) == std::vector<double>(2, 10 + r));

    // Rows of a matrix, as views; columns, which do not lie in a row.
    const Tensor matrix = full({3, 70'000}, r + 1.0);
    Tensor sum = zeros({70'000});
    group.reduce_scatter(sum, std::vector<Tensor>{matrix[0], matrix[1] * 10, matrix[2] * 100});
    CHECK(numbers(sum) == std::vector<double>(70'000, 6 * std::pow(10, r)));
    Tensor columns = zeros({5, 3});
    Tensor column = columns.select(1, 1);
    column.fill_(r);
    group.all_reduce(column);
    CHECK(numbers(columns.sum(0)) == std::vector<double>{0, 15, 0});

    // Rank r sends r + 1 numbers to rank 0, twice as many to 1, three times to 2.
    std::vector<Tensor> to;
    std::vector<Tensor> from;
    for (int i = 0; i < 3; ++i) {
      from.push_back(full({(r + 1) * (i + 1)}, 10.0 * r + i));
      to.push_back(zeros({(i + 1) * (r + 1)}));
    }
    group.all_to_all(to, from);
    for (int i = 0; i < 3; ++i) {
      CHECK(numbers(to[i]) ==
            std::vector<double>(static_cast<size_t>((i + 1) * (r + 1)), 10 * i + r));
    }
    CHECK_THROWS_AS(group.all_gather(std::vector<Tensor>{x}, x), ValueError);
    CHECK_THROWS_AS(group.all_gather(std::vector<Tensor>{x, x, zeros({3})}, x), ShapeError);
    CHECK_THROWS_AS(group.all_gather(std::vector<Tensor>{x, x, x.to(f64)}, x), DTypeError);
    CHECK_THROWS_AS(group.scatter(x, std::vector<Tensor>{x}, r == 0 ? 1 : 0), ValueError);
  });
}

TEST_CASE("operations that run while the caller goes on") {
  in_group(2, [](ProcessGroup& group) {
    std::vector<Tensor> xs;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      xs.push_back(full({1 + 997 * i}, 1.0 * i + group.rank()));
      works.push_back(group.all_reduce(xs.back(), ReduceOp::sum, true));
    }
    group.barrier();  // in its turn: after them
    for (int i = 0; i < 20; ++i) {
      CHECK(works[i].is_completed());
      CHECK(works[i].is_success());
      works[i].wait();
      CHECK(xs[i].max().item<float>() == 2 * i + 1);
    }
    CHECK(Work().is_success());
  });
}

TEST_CASE("messages between two processes") {
  in_group(3, [](ProcessGroup& group) {
    const int r = group.rank();
    const int next = (r + 1) % 3;
    const int before = (r + 2) % 3;
    // Each sends before it receives, more than any buffer holds.
    Tensor got = zeros({3'000'000});
    const Work sent = group.send(full({3'000'000}, 1.0 * r), next);
    const Work received = group.recv(got, before);
    sent.wait();
    received.wait();
    CHECK(received.source_rank() == before);
    CHECK(got.min().item<float>() == before);
    CHECK(got.max().item<float>() == before);
    // Tags choose; within a tag the order stays.
    for (int i = 0; i < 3; ++i) group.send(tensor({10 * r + i}), next, i % 2).wait();
    Tensor a = zeros({1}, {i64});
    Tensor b = zeros({1}, {i64});
    Tensor c = zeros({1}, {i64});
    group.recv(b, before, 1).wait();
    group.recv(a, before, 0).wait();
    group.recv(c, before, 0).wait();
    CHECK(numbers(cat({a, b, c})) ==
          std::vector<double>{10.0 * before, 10.0 * before + 1, 10.0 * before + 2});
    if (r == 0) {  // from anybody
      Tensor any = zeros({2});
      const Work first = group.recv(any);
      first.wait();
      CHECK(any[0].item<float>() == first.source_rank());
      const Work second = group.recv(any);
      second.wait();
      CHECK(first.source_rank() + second.source_rank() == 3);
    } else {
      group.send(full({2}, 1.0 * r), 0).wait();
    }
    group.barrier();
    if (r == 1) group.send(zeros({4}), 2).wait();
    if (r == 2) {
      CHECK_THROWS_WITH_AS(group.recv(zeros({5}), 1).wait(),
                           doctest::Contains("rank 1 sent 16 bytes"), DistBackendError);
    }
    CHECK_THROWS_AS(group.send(zeros({1}), r), ValueError);
    CHECK_THROWS_AS(group.recv(zeros({1}), 3), ValueError);
    if (r == 0) {
      group.set_timeout(30ms);
      CHECK_THROWS_WITH_AS(group.recv(zeros({1}), 1, 77).wait(), doctest::Contains("within 30 ms"),
                           DistBackendError);
      group.set_timeout(60s);
    }
  });
}

TEST_CASE("processes that do different things are told") {
  const auto store = std::make_shared<HashStore>();
  std::atomic<int> told{0};
  const auto run = [&](int rank) {
    ProcessGroup group(store, rank, 2, {.timeout = 20s});
    group.barrier();
    Tensor x = zeros({rank == 0 ? 10 : 20});
    try {
      if (rank == 0) {
        group.all_reduce(x);
      } else {
        group.broadcast(x, 1);
      }
      // The sender of a broadcast does not wait; what it does next fails.
      group.barrier();
    } catch (const DistBackendError& e) {
      const std::string text = e.what();
      // What the other one did; this one may have gone on to its barrier.
      const char* other = rank == 0 ? "broadcast of float32 with root 1, number 2"
                                    : "all_reduce (sum) of float32, number 2";
      const bool names = text.find(other) != std::string::npos;
      const bool lost = text.find("lost the process of rank") != std::string::npos;
      CHECK_MESSAGE((names || lost), text);
      ++told;
    }
    CHECK_THROWS_WITH_AS(group.barrier(), doctest::Contains("broken"), DistBackendError);
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  CHECK(told == 2);
}

TEST_CASE("a process that leaves, and one that does not come") {
  const auto store = std::make_shared<HashStore>();
  std::thread other([&] {
    ProcessGroup group(store, 1, 2);
    group.barrier();
  });
  ProcessGroup group(store, 0, 2);
  group.barrier();
  other.join();
  CHECK_THROWS_WITH_AS(group.all_reduce(zeros({3})),
                       doctest::Contains("lost the process of rank 1"), DistBackendError);
  CHECK_THROWS_AS(ProcessGroup(std::make_shared<HashStore>(50ms), 1, 2, {.timeout = 50ms}),
                  DistStoreError);
  CHECK_THROWS_WITH_AS(ProcessGroup(std::make_shared<HashStore>(), 0, 2, {.timeout = 50ms}),
                       doctest::Contains("waited 50 ms for rank 1"), DistNetworkError);
  CHECK_THROWS_AS(ProcessGroup(nullptr, 0, 1), ValueError);
  CHECK_THROWS_AS(ProcessGroup(store, 2, 2), ValueError);
}

TEST_CASE("all processes that are gone are named") {
  const auto store = std::make_shared<HashStore>();
  std::vector<std::thread> others;
  for (const int rank : {0, 1, 3}) {
    others.emplace_back([&, rank] { ProcessGroup(store, rank, 4).barrier(); });
  }
  ProcessGroup group(store, 2, 4);
  group.barrier();
  for (std::thread& other : others) other.join();
  CHECK_THROWS_WITH_AS(group.all_reduce(zeros({3})),
                       doctest::Contains("lost the processes of ranks 0, 1, 3"), DistBackendError);
}

TEST_CASE("a process that is late is named, and abort ends a wait") {
  const auto store = std::make_shared<HashStore>();
  std::atomic<bool> ended{false};
  std::thread other([&] {
    ProcessGroup group(store, 1, 2);
    group.barrier();
    while (!ended) std::this_thread::sleep_for(1ms);
  });
  {
    ProcessGroup group(store, 0, 2);
    group.barrier();
    CHECK_THROWS_WITH_AS(group.barrier(30ms), doctest::Contains("waited 30 ms for rank 1"),
                         DistBackendError);
  }
  ended = true;
  other.join();
  const auto fresh = std::make_shared<HashStore>();
  std::thread waiting([&] {
    ProcessGroup group(fresh, 1, 2);
    CHECK_THROWS_AS(group.barrier(), DistBackendError);
  });
  ProcessGroup group(fresh, 0, 2);
  const Work work = group.recv(zeros({1}), 1);
  group.abort();
  CHECK_THROWS_AS(group.barrier(), DistBackendError);
  waiting.join();
  CHECK_THROWS_AS(work.wait(), DistBackendError);
}

TEST_CASE("strangers who connect to a group are sent away") {
  const auto store = std::make_shared<HashStore>();
  std::thread other([&] {
    // Rank 0 listens; before rank 1 comes, others do.
    const std::string text = store->get("mesh/default/0");
    const Address address{"127.0.0.1", static_cast<uint16_t>(std::stoi(text))};
    for (const char* words : {"", "GET / HTTP/1.1\r\n\r\n and so on, longer than a greeting is"}) {
      Socket stranger = connect_to(address, Deadline(5s));
      const std::string_view bytes = words;
      stranger.send(std::as_bytes(std::span(bytes.data(), bytes.size())), Deadline(5s));
    }
    ProcessGroup group(store, 1, 2);
    Tensor x = ones({1});
    group.all_reduce(x);
    CHECK(x.item<float>() == 2);
  });
  ProcessGroup group(store, 0, 2);
  Tensor x = ones({1});
  group.all_reduce(x);
  CHECK(x.item<float>() == 2);
  other.join();
}

TEST_CASE("two groups over one store, and a group by a TCPStore") {
  TCPStore server({.port = 0, .is_master = true});
  const auto run = [&](int rank) {
    const auto store = std::make_shared<TCPStore>(TCPStoreOptions{.port = server.port()});
    ProcessGroup a(store, rank, 2, {.name = "a"});
    ProcessGroup b(std::make_shared<PrefixStore>("b", store), 1 - rank, 2, {.name = "b"});
    Tensor x = full({1}, 1.0 * rank);
    a.broadcast(x, 1);
    CHECK(x.item<float>() == 1);
    x.fill_(rank);
    b.broadcast(x, 1);
    CHECK(x.item<float>() == 0);
    a.barrier();
    b.barrier();
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
}
