"""`forgetting expect` with noise and held-out rows."""

import json

import numpy as np

import forgetting as fg


def written(path, names, rows, seed):
    rng = np.random.default_rng(seed)
    lines = ["task,a,b,y"]
    for name in names:
        for _ in range(rows):
            a, b = rng.normal(size=2).round(3)
            lines.append(f"{name},{a},{b},{5 + a - b + 0.3 * rng.normal():.3f}")
    path.write_text("\n".join(lines) + "\n")


def test_held_out_rows_are_matched_by_name_and_prepared_alike(inside, tmp_path):
    written(tmp_path / "train.csv", "uvw", 5, 0)
    written(tmp_path / "test.csv", "wuv", 4, 1)
    done = inside(
        "expect", "train.csv", "--intercept", "--standardize", "all", "--test", "test.csv", "--noise", "0.1,0,0.2",
        "--quantity", "loss,test_loss,test_forgetting", "-k", "4", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["meta"]["noise"] == [0.1, 0.0, 0.2]
    assert data["meta"]["test"] == "test.csv"
    train, test = (fg.load(tmp_path / f"{name}.csv") for name in ("train", "test"))
    prepared = train.prepared(intercept=True, standardize="all")
    pairs = [test.task(test.names.index(name)) for name in train.names]
    scored = [(prepared.preparation.apply(X), y) for X, y in pairs]
    names = ("loss", "test_loss", "test_forgetting")
    # rows of the file are raw; pairs that are prepared by hand go to tasks that do not know of it
    plain = fg.RegressionTasks(*zip(*map(prepared.task, range(3)), strict=True))
    e = fg.expect(plain, "with-replacement", 4, noise=[0.1, 0.0, 0.2], test=scored, quantities=names)
    row = data["sections"][0]["items"][0]["rows"][0]
    np.testing.assert_allclose(row[1:], [e.values[name] for name in names], rtol=1e-9)


def test_what_is_missing_is_said(inside, tmp_path):
    written(tmp_path / "train.csv", "uv", 3, 0)
    done = inside("expect", "train.csv", "--quantity", "test_loss", "-k", "4")
    assert done.code == 2
    assert "test_loss is about held-out data" in done.err
    assert inside("expect", "train.csv", "--noise", "much", "-k", "4").code == 2
