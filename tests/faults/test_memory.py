"""Memory is estimated before it is used, against what this process may still use; the message has a cheaper way."""

import resource
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.auditing import read_tasks
from forgetting.core import memory
from forgetting.core.memory import available_memory, require_memory
from forgetting.errors import MemoryLimitError
from forgetting.orderings import Cyclic, WithoutReplacement, WithReplacement

MIB, GIB = 2**20, 2**30
TASKS = fg.families.two_lines(0.5)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of files: its memory, control groups and limits are what a test writes down."""
    limits = {}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, resource.RLIM_INFINITY),) * 2)

    def write(files, **given):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        limits.update({getattr(resource, name): value for name, value in given.items()})
        return available_memory(str(tmp_path))

    return write


MEMINFO = {"proc/meminfo": "MemTotal:  16777216 kB\nMemFree:  100 kB\nMemAvailable:  8388608 kB\nHugePages_Total: 0\n"}


def test_what_the_machine_has_available_is_the_most(machine):
    assert machine(MEMINFO) == 8 * GIB


def test_a_machine_that_says_nothing_has_what_the_system_counts(machine, monkeypatch):
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert machine({}) == 4_096_000
    monkeypatch.setattr(memory.os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert machine({}) == 8 * GIB


def test_control_groups_of_version_two_count_up_to_the_root(machine):
    group = {"proc/self/cgroup": "0::/jobs/mine\n"}
    home = "sys/fs/cgroup"
    assert machine(MEMINFO | group) == 8 * GIB
    assert machine({f"{home}/jobs/mine/memory.max": "max\n", f"{home}/jobs/mine/memory.current": "5\n"}) == 8 * GIB
    assert machine({f"{home}/jobs/memory.max": f"{4 * GIB}\n", f"{home}/jobs/memory.current": f"{GIB}\n"}) == 3 * GIB
    assert machine({f"{home}/jobs/memory.stat": f"anon 7\ninactive_file {GIB // 2}\n"}) == 3.5 * GIB
    assert machine({f"{home}/jobs/mine/memory.max": f"{GIB}\n"}) == GIB - 5
    assert machine({f"{home}/memory.max": "1000\n", f"{home}/memory.current": "2000\n"}) == 0


def test_a_group_that_is_not_to_be_seen_in_a_container_is_that_of_its_root(machine):
    files = {"proc/self/cgroup": "0::/of/the/host\n", "sys/fs/cgroup/memory.max": f"{GIB}\n"}
    assert machine(MEMINFO | files) == GIB


def test_control_groups_of_version_one_count_too(machine):
    home = "sys/fs/cgroup/memory"
    files = {
        "proc/self/cgroup": "9:cpu,cpuacct:/\n4:hugetlb,memory:/job\n0::/\n",
        f"{home}/memory.limit_in_bytes": "9223372036854771712\n",
        f"{home}/job/memory.limit_in_bytes": f"{2 * GIB}\n",
        f"{home}/job/memory.usage_in_bytes": f"{GIB}\n",
        f"{home}/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 4}\n",
    }
    assert machine(MEMINFO | files) == 1.25 * GIB


def test_limits_of_the_process_count_less_what_it_uses(machine):
    status = {"proc/self/status": "Name:\tpython\nVmSize:\t  1048576 kB\nVmData:\t  524288 kB\n"}
    assert machine(MEMINFO | status, RLIMIT_AS=4 * GIB) == 3 * GIB
    assert machine({}, RLIMIT_DATA=GIB) == GIB / 2


def test_files_of_nonsense_set_no_limit(machine):
    odd = {"proc/self/cgroup": "nonsense\n::\n0::/\n", "sys/fs/cgroup/memory.max": "a lot\n", "proc/self/status": "x"}
    assert machine(MEMINFO | odd) == 8 * GIB


# --------------------------------------------------------------------------------------------------------- estimates


@pytest.fixture
def small(monkeypatch):
    """1 GiB is available, and a test that uses 100 MiB before it is refused fails."""
    monkeypatch.setattr(memory, "available_memory", lambda: 1.0 * GIB)
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * MIB


SPARSE = sp.random_array((3000, 10**5), density=1e-3, rng=np.random.default_rng(0), format="csr")
WIDE = fg.families.gaussian(T=2, d=5000, rank=1, seed=0)
REFUSED = {
    "runs": (
        lambda: fg.run_many(TASKS, WithReplacement(), k=10**6, runs=1000),
        r"1000 runs of 1000000 steps, 1000001 of them recorded, need about 37\.25 GiB, more than half of the 1 GiB "
        r'available; use fewer runs, .*record_every=.*fg\.expect\(\.\.\., method="monte-carlo"\)',
    ),
    "runs of a scheme that is not compiled": (
        lambda: fg.run_many(WIDE, Cyclic(), k=1000, runs=1000, scheme=fg.schemes.POCS()),
        "1000 runs of 1000 steps, 1001 of them recorded, need about 37",
    ),
    "steps": (lambda: fg.run(TASKS, Cyclic(), k=10**9, record_every=10**6), "1000000000 steps .*; use fewer steps"),
    "recorded steps": (lambda: fg.run(TASKS, Cyclic(), k=10**9), "100000000. recorded steps need .*record_every="),
    "iterates": (
        lambda: fg.run(WIDE, Cyclic(), k=20_000, scheme=fg.schemes.POCS()),
        r"20001 recorded iterates of 5000 numbers need .*record fewer iterates, record_every=",
    ),
    "lifted iterates": (lambda: fg.run(WIDE, Cyclic(), k=20_000).iterates, "iterates at 20001 steps need"),
    "losses of all tasks": (
        lambda: fg.run(fg.families.repeated(TASKS, 5000), Cyclic(), k=10_000).loss_matrix,
        "loss_matrix at 10001 steps need .*record_every=",
    ),
    "distances": (
        lambda: fg.run(fg.families.repeated(TASKS, 5000), Cyclic(), k=10_000).residuals,
        "residuals at 10001 steps need",
    ),
    "iterates of many runs": (
        lambda: fg.run_many(WIDE, Cyclic(), k=100, runs=200).iterates,
        r"the iterates of 200 runs, 101 steps and 5000 numbers each, need .*ensemble\[i\]",
    ),
    "permutations": (
        lambda: fg.run_many(fg.families.repeated(TASKS, 10**5), WithoutReplacement(), k=1, runs=1000),
        "1000 permutations of 200000 tasks need",
    ),
    "simulated runs": (
        lambda: fg.expect(TASKS, WithReplacement(), k=10**6, method="monte-carlo"),
        "1024 simulated runs of 1000000 steps need about .*use fewer runs or steps",
    ),
    "simulated values": (
        lambda: fg.expect(
            fg.families.repeated(TASKS, 5000), Cyclic(), k=[1, 2], method="monte-carlo", quantities="task_losses"
        ),
        "the values of 4096 simulated runs at 2 steps need",
    ),
    "row spaces of sparse data": (
        lambda: fg.RegressionTasks([SPARSE], [np.ones(3000)]).geometry,
        r"the row spaces of 3000 rows with \d+ columns \(and roughly \d+ seconds\) need .*"
        r"use fewer rows, or give inner products: fg\.KernelTasks\(X @ X\.T, y, groups\) needs N\^2 numbers",
    ),
    "sparse rows of classification": (
        lambda: fg.ClassificationTasks([SPARSE[:500], SPARSE[500:1000]], [np.ones(500), -np.ones(500)]),
        "1000 sparse rows with 100000 columns, which are stored dense, need",
    ),
    "sparse rows of a polyhedron": (
        lambda: fg.Polyhedron(SPARSE[:1000], np.ones(1000)),
        r"the rows of A, \(1000, 100000\), which are stored dense, need",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_before_memory_is_used(name, small):
    make, match = REFUSED[name]
    with pytest.raises(MemoryLimitError, match=match) as caught:
        make()
    assert caught.value.needed > caught.value.allowed == GIB / 2


def test_a_kernel_matrix_whose_eigenvectors_do_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 100.0 * MIB)
    with pytest.raises(MemoryLimitError, match="a kernel matrix of 1100 rows need"):
        fg.KernelTasks(np.eye(1100), np.ones(1100), np.arange(1100))


def test_cells_of_a_large_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1.0 * MIB)
    monkeypatch.setattr(memory, "UNNOTICED", 0)
    (tmp_path / "big.csv").write_text("task,a,y\n" + "1,2.5,3\n" * 20_000)
    with pytest.raises(MemoryLimitError, match=r"the cells of .*big\.csv need .*np\.savez"):
        read_tasks(tmp_path / "big.csv")


def test_what_is_simulated_for_want_of_memory_says_so(monkeypatch):
    tasks = fg.families.gaussian(T=3, d=40, rank=10, seed=0)
    exact = fg.expect(tasks, WithReplacement(), k=3)
    monkeypatch.setattr("forgetting.compute.devices.available_memory", lambda: 1e4)
    poor = fg.expect(tasks, WithReplacement(), k=3, runs=64)
    assert (exact.method, poor.method) == ("moments", "monte-carlo")
    assert any("'moments' was left out: it would need about" in note for note in poor.notes)
    assert not exact.notes


def test_numbers_do_not_depend_on_the_memory_there_is(monkeypatch):
    tasks = fg.families.gaussian(T=3, d=40, rank=10, seed=0)
    results = []
    for free in (0.3 * GIB, 100.0 * GIB):
        monkeypatch.setattr(memory, "available_memory", lambda free=free: free)
        results.append((fg.run(tasks, Cyclic(), k=300).losses, fg.run_many(tasks, WithReplacement(), 30, 20).losses))
    for one, two in zip(*results, strict=True):
        assert np.array_equal(one, two)


def test_little_is_never_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: pytest.fail("asked"))
    require_memory(2.0**26, "64 MiB", "")


def test_losses_of_many_steps_are_computed_in_parts(monkeypatch):
    tasks = fg.families.gaussian(T=5, d=8, rank=2, seed=0)
    whole = fg.run(tasks, Cyclic(), k=50)
    monkeypatch.setattr("forgetting.dynamics.trajectory.PART", 200)
    parts = fg.run(tasks, Cyclic(), k=50)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-12)
    np.testing.assert_allclose(parts.forgetting, whole.forgetting, rtol=1e-9, atol=1e-12)
