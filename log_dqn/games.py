"""Games: their names, and the sets of them that results are reported on."""

import re
from collections.abc import Iterable, Mapping, Sequence

from log_dqn.checks import check, nearest

GAMES = (
    "AirRaid", "Alien", "Amidar", "Assault", "Asterix", "Asteroids", "Atlantis", "BankHeist",
    "BattleZone", "BeamRider", "Berzerk", "Bowling", "Boxing", "Breakout", "Carnival",
    "Centipede", "ChopperCommand", "CrazyClimber", "DemonAttack", "DoubleDunk", "ElevatorAction",
    "Enduro", "FishingDerby", "Freeway", "Frostbite", "Gopher", "Gravitar", "Hero", "IceHockey",
    "Jamesbond", "JourneyEscape", "Kangaroo", "Krull", "KungFuMaster", "MontezumaRevenge",
    "MsPacman", "NameThisGame", "Phoenix", "Pitfall", "Pong", "Pooyan", "PrivateEye", "Qbert",
    "Riverraid", "RoadRunner", "Robotank", "Seaquest", "Skiing", "Solaris", "SpaceInvaders",
    "StarGunner", "Tennis", "TimePilot", "Tutankham", "UpNDown", "Venture", "VideoPinball",
    "WizardOfWor", "YarsRevenge", "Zaxxon",
)  # fmt: skip
"""The games of Dopamine's published baselines (baselines/atari/data), by Dopamine's names."""

WITHOUT_HUMAN_SCORES = ("AirRaid", "Carnival", "ElevatorAction", "JourneyEscape", "Pooyan")
"""Games with published baselines for which Wang et al. (2016) have no human scores."""

WITHOUT_BASELINES = ("Defender", "Surround")
"""Games with human scores for which Dopamine publishes no baselines."""

PAPER55 = tuple(game for game in GAMES if game not in WITHOUT_HUMAN_SCORES)
"""The games of the paper: those with human scores and published baselines."""

PAPER6 = ("Alien", "Zaxxon", "Breakout", "DoubleDunk", "SpaceInvaders", "FishingDerby")
"""The games of the paper's hyper-parameter optimization (Appendix C)."""

ATARI5 = ("BattleZone", "DoubleDunk", "NameThisGame", "Phoenix", "Qbert")
"""The subset of Aitchison, Sweetser and Hutter (2022) that predicts the 57-game median."""

FRAME_SKIP = 4
"""Emulator frames of an agent step on Atari, as in the published runs."""

STICKY_PROBABILITY = 0.25
"""Probability in a frame that Atari's games repeat the last action (Machado et al., 2018)."""

MINATAR5 = tuple(
    f"MinAtar/{name}" for name in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
)
"""MinAtar's games (Young and Tian, 2019)."""

MINATAR_STICKY_PROBABILITY = 0.1
"""Probability that they repeat the last action, their default."""

JAX_GAMES = (*MINATAR5, "bsuite/Catch")
"""The games that `train-vectorized` plays in JAX, small enough for a laptop."""

GYMNAX = (
    "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Asterix-MinAtar", "Breakout-MinAtar",
    "Freeway-MinAtar", "Seaquest-MinAtar", "SpaceInvaders-MinAtar", "Catch-bsuite",
    "DeepSea-bsuite", "MemoryChain-bsuite", "UmbrellaChain-bsuite", "DiscountingChain-bsuite",
    "MNISTBandit-bsuite", "SimpleBandit-bsuite", "FourRooms-misc", "MetaMaze-misc",
    "BernoulliBandit-misc", "GaussianBandit-misc", "Pong-misc", "FrozenLake-misc",
)  # fmt: skip
"""gymnax's environments with discrete actions, for `train-vectorized --env`."""

SETS = {
    "paper55": PAPER55, "paper6": PAPER6, "all60": GAMES, "atari5": ATARI5, "minatar5": MINATAR5
}  # fmt: skip

KNOWN = (*GAMES, *WITHOUT_BASELINES, *JAX_GAMES)
"""All games that have a name here."""


_ATARI = {f"Dopamine's {len(GAMES)} Atari games, spelt like Pong or SpaceInvaders": GAMES}
_MINATAR = {f"MinAtar's {len(MINATAR5)}, spelt like MinAtar/Breakout": MINATAR5}
_SMALL = {f"the small games {', '.join(JAX_GAMES)}": JAX_GAMES}
_SETS = {f"the sets {', '.join(SETS)}": tuple(SETS)}
_ATARI_SETS = [name for name, of in SETS.items() if set(of) <= set(GAMES)]
_TO_READ = {**_ATARI, **_SMALL, **_SETS, " and ".join(WITHOUT_BASELINES): WITHOUT_BASELINES}


def _check_is_of(option: str, name: str | None, allowed: Mapping[str, Sequence[str]]) -> None:
    """Checks that a name is of some kinds, which are given in words."""
    known = [game for of_kind in allowed.values() for game in of_kind]
    check(option, name, name in known, f"one of {', or of '.join(allowed)}{nearest(name, known)}")


def check_game(game_name: str | None, *, atari: bool = True, minatar: bool = True) -> None:
    """Checks the name of a game that Dopamine's agents can play, of `GAMES` or `MINATAR5`.

    `atari` and `minatar` say whether it may be one of those.
    """
    allowed = {**(_ATARI if atari else {}), **(_MINATAR if minatar else {})}
    _check_is_of("game", game_name, allowed)


def are_jax_games(chosen: Sequence[str]) -> bool:
    """Returns whether games are those of `JAX_GAMES`, whose settings no other game shares.

    Raises:
        ValueError: if only some are.
    """
    in_jax = [game for game in chosen if game in JAX_GAMES]
    if in_jax and len(in_jax) < len(chosen):
        other = next(game for game in chosen if game not in JAX_GAMES)
        raise ValueError(
            f"games are {other} and {in_jax[0]}; they must be all of Atari, or all small games, "
            "which have settings of their own"
        )
    return bool(in_jax)


def rom_name(game: str) -> str:
    """Returns ale_py's name of a game in Dopamine's spelling: space_invaders, SpaceInvaders."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", game).lower()


def canonical(name: str) -> str | None:
    """Returns Dopamine's spelling of a game, or None if there is no such game.

    Case, spaces and underscores don't matter: Pong, pong, space_invaders. A folder's name is the
    game's, and Gym's PongNoFrameskip-v0 or -v4 is Pong.
    """
    known = {folder_name(game).lower(): game for game in KNOWN}
    return known.get(re.sub(r"[ _]|noframeskip-v[04]$", "", folder_name(name).lower()))


def folder_name(game: str) -> str:
    """Returns the name of a game's folder: MinAtar-Breakout for MinAtar/Breakout.

    A colon is replaced too: rsync would read `corridor:make` as a host.
    """
    return re.sub("[/:]", "-", game)


def listing(names: Sequence[str]) -> str:
    """Returns names in one line: all of a few, the first five of many."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _select(
    names: Iterable[str], allowed: Mapping[str, Sequence[str]], own: Sequence[str] = ()
) -> list[str]:
    if own:
        allowed = {**allowed, f"your environments {listing(own)}": own}
    chosen: dict[str, None] = {}
    for name in names:
        game = canonical(name) or name
        _check_is_of("games", game, allowed)
        chosen.update(dict.fromkeys((game,) if game in own else SETS.get(game, (game,))))
    return list(chosen)


def select(names: Iterable[str], environments: Sequence[str] = ()) -> list[str]:
    """Returns the games of some names, of games, `SETS` or other environments, each once."""
    return _select(names, _TO_READ, environments)


def select_atari(names: Iterable[str]) -> list[str]:
    """Returns the Atari games (`GAMES`) of some names, of games or of sets, each once."""
    return _select(names, {**_ATARI, f"the sets {', '.join(_ATARI_SETS)}": _ATARI_SETS})


def select_to_train(names: Iterable[str], catch: bool = True) -> list[str]:
    """Returns the games of some names, each once; they can be trained together.

    `catch` says whether bsuite/Catch is among those allowed.
    """
    allowed = {**_ATARI, **(_SMALL if catch else _MINATAR), **_SETS}
    chosen = _select(list(names) or [""], allowed)
    are_jax_games(chosen)
    return chosen
