"""Which devices there are, what is said of others, and that nothing is imported for them before it is needed."""

import pickle
import re
import subprocess
import sys
from importlib.util import find_spec

import array_api_strict
import numpy as np
import pytest

import forgetting as fg
from forgetting.compute import devices
from forgetting.compute.devices import HOST, Device, as_device
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation.api import ask
from forgetting.expectation.engines import base

TASKS = fg.families.gaussian(T=3, d=4, rank=1, seed=0)


def test_arrays_go_there_and_come_back(device):
    there = as_device(device)
    numbers = np.arange(6.0).reshape(2, 3)
    numbers.flags.writeable = False
    assert np.array_equal(there.take(there.put(numbers)), numbers)
    assert np.array_equal(there.take(there.put(numbers.T)), numbers.T)
    assert np.array_equal(there.take(there.put_index(np.arange(3))), [0, 1, 2])
    assert there.memory > 0
    assert not there.host


def test_devices_pickle_by_name(device):
    there = pickle.loads(pickle.dumps(as_device(device)))
    assert (there.spec, there.name) == (as_device(device).spec, as_device(device).name)
    assert pickle.loads(pickle.dumps(HOST)) is HOST
    assert as_device(there) is there


@pytest.mark.parametrize("bad", [3, 1.5, ["cuda"], object])
def test_what_is_no_device_is_refused(bad):
    with pytest.raises(InvalidInputError, match=r"device must be a text such as 'cuda' or 'cupy'.*, got"):
        fg.expect(TASKS, "with-replacement", 3, device=bad)


@pytest.mark.parametrize("name", ["cuda", "cpu", "cupy", "cupy:1"])
def test_a_library_that_is_missing_is_named_with_the_command(name, monkeypatch):
    for module in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, module, None)  # its import fails
    package = "cupy" if name.startswith("cupy") else "torch"
    said = (
        f"device='{name}' needs {package}, which is not installed: pip install 'forgetting[device]' {package}, or leave"
    )
    with pytest.raises(NotSupportedError, match=re.escape(said)):
        as_device(name)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_says_which_devices_it_has():
    import torch

    with pytest.raises(InvalidInputError, match="torch knows no device 'gpu'; use 'cuda'"):
        as_device("gpu")
    with pytest.raises(NotSupportedError, match=r"device='meta' cannot compute in float64"):
        as_device("meta")
    if not torch.cuda.is_available():
        with pytest.raises(NotSupportedError, match=r"device='cuda': torch .* sees no GPU; leave out device="):
            as_device("cuda")
    assert as_device(torch.device("cpu")).spec == "cpu"


class Without:
    """A namespace of a device that has no float64."""

    float64 = array_api_strict.float64

    def asarray(self, array, device):
        raise TypeError("Cannot convert to float64")


class Rounding:
    """A namespace of a device that takes float64 for float32."""

    def asarray(self, array, device):
        return np.asarray(array, dtype=np.float32)


@pytest.mark.parametrize(
    ("namespace", "reason"),
    [(Without(), "cannot compute in float64, .*: Cannot convert to float64"), (Rounding(), "rounds float64 to fewer")],
    ids=["none", "rounded"],
)
def test_a_device_without_float64_is_refused(namespace, reason, monkeypatch):
    monkeypatch.setattr(devices, "_torch", lambda device: Device(device, device, namespace))
    with pytest.raises(NotSupportedError, match=rf"device='mps' {reason}.*leave out device="):
        fg.run_many(TASKS, "cyclic", 3, runs=2, device="mps")


def test_what_a_device_takes_is_estimated_with_its_speed():
    """A GPU is given what would take the CPU longer than `patience`."""
    fast = Device("fast", "a fast device", array_api_strict, speed=1e6)
    problem = fg.families.gaussian(T=40, d=60, rank=2, seed=0)
    here, there = (ask(problem, "with-replacement", 2000, patience=1.0, device=where).request for where in (None, fast))
    assert base.choose(here)[0].name == "monte-carlo"
    assert base.choose(there)[0].name == "moments"


def test_torch_is_not_imported_for_the_cpu():
    code = (
        "import sys, forgetting as fg; tasks = fg.families.two_lines(0.5); fg.expect(tasks, 'with-replacement', 3); "
        "fg.run_many(tasks, 'cyclic', 3, runs=2); "
        "print([name for name in ('torch', 'cupy', 'array_api_compat') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
