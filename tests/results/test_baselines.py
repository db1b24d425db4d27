"""The published baselines: their form, their numbers, and getting them over a network."""

import hashlib
import http.server
import json
import threading

import numpy as np
import pandas as pd
import pytest
import requests

from log_dqn import games
from log_dqn.results import baselines, scores
from log_dqn.results.request import DEFAULT_AGENTS, check_source
from tests.results import synthetic
from tests.results.synthetic import PUBLISHED, needs_published

GAMES = ["Alien", "Pong", "Qbert"]
AGENTS = {"DQN": 0.5, "IQN": 2.0, "DQN (Adam + MSE in JAX)": 1.0}


def rows(agent, *curves):
    return [
        {"Iteration": i, "Value": value, "Agent": agent}
        for curve in curves
        for i, value in enumerate(curve)
    ]


def test_parse_splits_agents_and_seeds():
    text = json.dumps(rows("DQN", [1.0, 2.0], [3, 4.5, 5]) + rows("DQN (Adam + MSE in JAX)", [7]))
    runs = baselines.parse(text, "Pong")
    assert [run[:3] for run in runs] == [
        ("DQN", "Pong", "0"), ("DQN", "Pong", "1"), ("DQN (Adam + MSE in JAX)", "Pong", "0"),
    ]  # fmt: skip
    assert [list(run.returns) for run in runs] == [[1, 2], [3, 4.5, 5], [7]]


@pytest.mark.parametrize(
    "text",
    [
        "", "<html>", "{}", "[]", "[1]", '"rows"', b"\xff\xfe", "[" * 100_000,
        json.dumps([{"Iteration": 0, "Value": 1.0}]),
        json.dumps([{"Iteration": 0, "Value": "1", "Agent": "DQN"}]),
        json.dumps([{"Iteration": True, "Value": 1, "Agent": "DQN"}]),
        '[{"Iteration": 0, "Value": NaN, "Agent": "DQN"}]',
        *(json.dumps(rows("DQN", [value])) for value in (10**400, 1e300, -1e300)),
        json.dumps(rows("DQN", [1, 2, 3])[1:]),
        json.dumps(rows("DQN", [1, 2, 3])[::2]),
    ],
)  # fmt: skip
def test_wrong_content_is_refused(text):
    with pytest.raises(ValueError, match=r"^(is not|lacks)"):
        baselines.parse(text, "Pong")


def test_final_runs_have_the_final_scores():
    runs = baselines.final_runs(["AirRaid", "Pong"])
    assert len(runs) == 2 * 4 * 5
    assert {run.agent for run in runs} == set(DEFAULT_AGENTS)
    first = next(run for run in runs if run[:3] == ("DQN", "AirRaid", "0"))
    assert scores.final_score(first.returns) == 7965.9572  # the table's first row
    assert len(first.returns) == 199


def test_a_folder(tmp_path):
    lines = []
    synthetic.write_baselines(tmp_path, ["Pong", "Alien"], AGENTS, num_iterations=30)
    (tmp_path / "alien.json").write_text("[]")
    runs = baselines.load(str(tmp_path), ["Pong", "Alien", "Qbert", "Surround"], lines.append)
    assert {r.agent for r in runs if r.game == "Pong"} == set(AGENTS)
    # The others come from the package; Surround has no published runs.
    finals = [r for r in runs if r.game in ("Alien", "Qbert")]
    assert {r.agent for r in finals} == set(DEFAULT_AGENTS)
    assert all(np.isnan(r.returns[:-1]).all() for r in finals)
    assert {r.game for r in runs} == {"Pong", "Alien", "Qbert"}
    assert len(lines) == 2
    assert "baselines of Alien" in lines[0] and "is not a list of rows" in lines[0]
    assert "baselines of Qbert" in lines[1] and "no such file" in lines[1]


class Server:
    """A local HTTP server whose answers are set by file name."""

    def __init__(self, folder):
        self.requests, self.faults = [], {}
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.rsplit("/", 1)[1]
                server.requests.append(name)
                path, fault = folder / name, server.faults.get(name)
                if fault == 404 or not path.exists():
                    self.send_error(404)
                    return
                body = b"<html>login</html>" if fault == "wrong" else path.read_bytes()
                if fault == "damaged":
                    body = body.replace(b'"Iteration": 5', b'"Iteration": 6', 1)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if fault == "interrupted":
                    self.wfile.write(body[: len(body) // 2])
                    return
                if fault == "stalled":
                    self.wfile.write(body[:100])
                    server.released.wait(20)
                    return
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.released = threading.Event()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/data"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setattr(baselines.platformdirs, "user_cache_path", lambda name: folder)
    return folder


@pytest.fixture
def server(tmp_path):
    folder = synthetic.write_baselines(tmp_path / "served", GAMES, AGENTS, num_iterations=99)
    server = Server(folder)
    yield server
    server.close()


def load(server, lines):
    return baselines.load(server.address, GAMES, lines.append)


def files(cache):
    return sorted(
        path.name for path in cache.rglob("*") if path.is_file() or "download" in path.name
    )


def with_curves(runs):
    return {run.game for run in runs if not np.isnan(run.returns).any()}


def test_download_once(server, cache):
    lines = []
    first = load(server, lines)
    assert not lines
    assert with_curves(first) == set(GAMES)
    assert files(cache) == ["alien.json", "pong.json", "qbert.json"]
    again = load(server, lines)
    assert len(server.requests) == 3  # Nothing was asked for again.
    for run, same in zip(first, again, strict=True):
        assert run[:3] == same[:3]
        np.testing.assert_array_equal(run.returns, same.returns)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("interrupted", "the download broke off"),
        ("wrong", "is not JSON"),
        ("damaged", "lacks iterations of DQN"),
        (404, "HTTP status 404"),
    ],
)
def test_one_file_fails(server, cache, fault, reason):
    lines = []
    server.faults["pong.json"] = fault
    runs = load(server, lines)
    assert len(lines) == 1
    assert "baselines of Pong" in lines[0] and reason in lines[0]
    assert files(cache) == ["alien.json", "qbert.json"]  # Nothing half-written.
    assert with_curves(runs) == {"Alien", "Qbert"}
    assert {r.agent for r in runs if r.game == "Pong"} == set(DEFAULT_AGENTS)
    del server.faults["pong.json"]
    assert with_curves(load(server, lines)) == set(GAMES)
    assert server.requests == ["alien.json", "pong.json", "qbert.json", "pong.json"]


def test_a_refused_certificate_is_not_taken_for_no_connection():
    assert baselines._reason(requests.exceptions.SSLError()) == "no secure connection"
    assert baselines._reason(requests.ConnectionError()) == "no connection, or no answer in time"


def test_a_stalled_server_is_given_up(server, cache, monkeypatch):
    monkeypatch.setattr(baselines, "TIMEOUT", 0.3)
    lines = []
    server.faults["pong.json"] = "stalled"
    runs = load(server, lines)
    assert len(lines) == 1 and "no answer in time" in lines[0]
    assert server.requests == ["alien.json", "pong.json"]  # It is not asked for Qbert.
    assert files(cache) == ["alien.json"]
    assert with_curves(runs) == {"Alien"}
    assert {run.game for run in runs} == set(GAMES)


def test_what_is_kept_is_read_without_a_server(server, cache):
    lines = []
    server.faults["alien.json"] = 404
    load(server, lines)
    server.close()
    lines.clear()
    runs = load(server, lines)
    assert with_curves(runs) == {"Pong", "Qbert"}
    assert {r.agent for r in runs if r.game == "Alien"} == set(DEFAULT_AGENTS)
    assert len(lines) == 1 and "baselines of Alien from" in lines[0] and "no conn" in lines[0]
    assert "final scores that travel with the package" in lines[0]


@pytest.mark.parametrize(
    "source", ["ftp://a/b", "http:/a", "http://", "http://[::1", "http://a:x/", "absent folder"]
)
def test_neither_address_nor_folder(source):
    allowed = "a folder that holds files such as pong.json, or an http(s) address"
    with pytest.raises(ValueError) as raised:
        check_source(source)
    assert str(raised.value) == f"baselines is {source!r}; it must be {allowed}"


def test_without_a_cache_files_are_downloaded_each_time(server, cache):
    lines = []
    cache.write_text("a file")
    for times in (1, 2):
        assert with_curves(load(server, lines)) == set(GAMES)
        assert len(server.requests) == 3 * times and not lines


def test_one_line_for_many_files(tmp_path):
    lines = []
    runs = baselines.load(str(tmp_path), games.PAPER55, lines.append)
    assert len(lines) == 1
    assert "Alien, Amidar, Assault, Asterix, Asteroids and 50 more" in lines[0]
    assert len(runs) == 55 * 20


def test_a_damaged_file_in_the_cache_is_replaced(server, cache):
    lines = []
    load(server, lines)
    [kept] = cache.rglob("pong.json")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert with_curves(load(server, lines)) == set(GAMES)
    assert server.requests[3:] == ["pong.json"] and not lines


def test_files_of_the_default_source_are_held_against_their_hashes(
    server, cache, tmp_path, monkeypatch
):
    right = hashlib.sha256((tmp_path / "served/pong.json").read_bytes()).hexdigest()
    table = pd.DataFrame({"file": [f"{g.lower()}.json" for g in GAMES], "sha256": right})
    monkeypatch.setattr(baselines, "DOPAMINE", server.address)
    monkeypatch.setattr(baselines, "read_table", lambda name, read=baselines.read_table: (
        table if name == "baseline_files.csv" else read(name)
    ))  # fmt: skip
    lines = []
    runs = load(server, lines)
    assert with_curves(runs) == {"Pong"}
    assert [line.split(" from")[0] for line in lines] == ["baselines of Alien, Qbert"]
    assert files(cache) == ["pong.json"]


def test_hashes_are_there_for_all_games():
    table = dict(baselines.read_table("baseline_files.csv").to_numpy())
    assert set(table) == {f"{game.lower()}.json" for game in games.GAMES}
    assert {len(value) for value in table.values()} == {64}


@needs_published
def test_the_hashes_and_final_scores_are_those_of_the_published_files():
    table = dict(baselines.read_table("baseline_files.csv").to_numpy())
    finals = {r[:3]: r.returns[-1] for r in baselines.final_runs(games.GAMES)}
    seen = 0
    for game in games.GAMES:
        data = (PUBLISHED / f"{game.lower()}.json").read_bytes()
        assert hashlib.sha256(data).hexdigest() == table[f"{game.lower()}.json"]
        for run in baselines.parse(data, game):
            if run.agent in DEFAULT_AGENTS:
                assert len(run.returns) == 199
                final = finals[run[:3]]
                assert run.returns[-20:].mean() == pytest.approx(final, rel=1e-4, abs=1e-3)
                seen += 1
    assert seen == len(finals) == 60 * 4 * 5


def test_references_are_wang_et_al_table_2():
    table = baselines.references()
    assert len(table) == 57
    assert [*table.loc["Alien"]] == [227.8, 7127.7]
    assert [*table.loc["Zaxxon"]] == [32.5, 9173.3]
    assert [*table.loc["VideoPinball"]] == [16256.9, 17667.9]
    assert (table["human"] > table["random"]).all()


def test_the_lists_of_games_are_the_tables():
    published = baselines.read_table("baseline_final_scores.csv")
    assert tuple(published["game"].unique()) == games.GAMES
    assert set(games.PAPER55) == {*baselines.references().index} - set(games.WITHOUT_BASELINES)
    assert set(games.GAMES) - set(games.PAPER55) == set(games.WITHOUT_HUMAN_SCORES)
