"""The networks that come with the package play as well as they did in training."""

import dataclasses
import json

import numpy as np
import pytest

from log_dqn import trained
from log_dqn.film import evaluation, loading
from log_dqn.results import protocol
from log_dqn.run_folder import configuration, layout

NETWORKS = list(trained.networks())


def card(folder):
    (path,) = layout.checkpoints_dir(folder).glob("*/manifest.json")
    return json.loads(path.read_text())


def returns(folder, episodes):
    """Returns of episodes of at most 5,000 agent steps, explored as at the end of training."""
    player = loading.load(folder, seed=1)
    parameters = configuration.by_short_name(configuration.read(folder))
    (name,) = protocol.agent_parameters(parameters, "epsilon_train")
    player = dataclasses.replace(player, epsilon=parameters[name])
    return evaluation.evaluate(player, range(episodes), 5000, lambda count: None).returns


def names(network):
    return f"{network.agent} {network.gamma} {network.game}"


def test_networks_say_where_they_come_from():
    for network in NETWORKS:
        said = card(network.folder)
        assert said["game"] == network.game
        assert said["score"] > 0 and said["command"] == "python scripts/study.py run main"


@pytest.mark.parametrize("network", {of.agent: of for of in reversed(NETWORKS)}.values(), ids=names)
def test_a_network_loads_and_plays(network):
    """One of each agent; the test below plays all."""
    folder = trained.find(network.game, network.agent, network.gamma)
    assert folder == network.folder
    assert loading.load(folder, seed=1).gamma == network.gamma
    assert len(returns(folder, 1)) == 1


# A score is of a policy that goes on learning. These play otherwise once it stands still.
FROZEN = {
    ("dqn", 0.5, "MinAtar/Freeway"): 0.0,
    ("log_dqn", 0.5, "MinAtar/Breakout"): 4.5,
    ("log_dqn", 0.8, "MinAtar/Seaquest"): 6.8,
    ("loglin_dqn", 0.5, "MinAtar/Breakout"): 4.3,
}


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS, ids=names)
def test_it_plays_as_it_did_in_training(network):
    """Its mean over some episodes is its score, within three standard errors and a third.

    Its score is a mean over 100,000 steps of learning.
    """
    long = network.game in ("MinAtar/Freeway", "MinAtar/Seaquest")
    found = returns(network.folder, 16 if long else 40)
    error = 3 * found.std(ddof=1) / np.sqrt(len(found))
    score = FROZEN.get((network.agent, network.gamma, network.game), card(network.folder)["score"])
    assert found.mean() == pytest.approx(score, rel=1 / 3, abs=error)


def test_all_together_are_small():
    files = [path for path in trained.ROOT.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 3e6


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("MinAtar/Asteri", "loglin_dqn"), r"^trained is 'MinAtar/Asteri'; .*MinAtar/Asterix"),
        (("breakout",), r"^trained is 'breakout'; .*MinAtar/Breakout"),
        (("MinAtar/Asterix", "c51"), r"^agent is 'c51'; it must be one of "),
        (("MinAtar/Asterix", "loglin_dqn", 0.7), r"^gamma is 0.7; it must be 0.5"),
    ],
)
def test_what_there_is_not(arguments, named):
    with pytest.raises(ValueError, match=named):
        trained.find(*arguments)
