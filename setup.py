"""Packaging of log_dqn. Tool settings are in pyproject.toml."""

import pathlib
import re

import setuptools

# The package itself can't be imported before what it requires is installed.
PACKAGE = pathlib.Path("log_dqn/__init__.py").read_text(encoding="utf-8")
VERSION = re.findall(r'^__version__ = "(.+)"$', PACKAGE, re.MULTILINE)[0]

# pillow 11 and pygame 2.6.1 are the oldest with wheels for Python 3.13.
PLAY = ["imageio>=2.34,<3", "imageio-ffmpeg>=0.5,<1", "pillow>=11,<14", "pygame>=2.6.1,<3"]
# Under GPL-3, and imported only.
MINATAR = ["minatar>=1.0.15,<1.1"]
SWEEP = ["ray[tune]>=2.60,<2.61", "rich>=13.7,<16"]
WANDB = ["wandb>=0.19,<1"]
# mkdocs 2 has no plugins. mkdocstrings[python] has bounds of its own on griffe.
DOCS = [
    "proselint>=0.16,<0.17",
    "mkdocs>=1.6,<2",
    "mkdocs-material>=9.6,<10",
    "mkdocstrings[python]>=0.30,<2",
    # Breaks the lines of signatures.
    "ruff>=0.17,<0.18",
]
TEST = [
    *MINATAR,
    *PLAY,
    *SWEEP,
    "pytest>=8,<10",
    "pytest-xdist>=3.8,<4",
    "hypothesis>=6.100,<7",
    "mpmath>=1.3,<2",
]
# What slow tests alone need.
SLOW = [
    *WANDB,
    # For the notebook in docs/.
    "nbclient>=0.10,<0.12",
    "ipykernel>=6.29,<8",
    # For the report's page.
    "selenium>=4.20,<5",
]

setuptools.setup(
    name="log_dqn",
    version=VERSION,
    description="Logarithmic deep Q-learning (LogDQN) as a plug-in for Dopamine",
    long_description=pathlib.Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    # The package has no public repository yet; these are what it implements and runs on.
    url="https://arxiv.org/abs/1906.00572",
    project_urls={
        "Paper": "https://arxiv.org/abs/1906.00572",
        "Dopamine": "https://github.com/google/dopamine",
    },
    keywords="reinforcement-learning, deep-q-learning, logdqn, dopamine, atari, tensorflow, jax",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    # TensorFlow 2.21 has wheels for these.
    python_requires=">=3.10,<3.14",
    # The gin files live in configs/ and travel as log_dqn/configs/.
    packages=[
        "log_dqn",
        "log_dqn.commands",
        "log_dqn.configs",
        "log_dqn.film",
        "log_dqn.jax",
        "log_dqn.linear",
        "log_dqn.cli",
        "log_dqn.results",
        "log_dqn.run_folder",
        "log_dqn.dopamine_run",
        "log_dqn.sweeps",
        "log_dqn.tf",
        "log_dqn.trained",
        "log_dqn.vectorized",
    ],
    entry_points={"console_scripts": ["log-dqn = log_dqn.commands.main:main"]},
    package_dir={"log_dqn.configs": "configs"},
    package_data={
        "log_dqn": ["py.typed"],
        "log_dqn.trained": ["**/*.json", "**/*.npz"],
        "log_dqn.configs": ["*.gin"],
        "log_dqn.commands": ["templates/*.html"],
        "log_dqn.results": ["data/*.csv", "templates/*.html"],
    },
    # A lower bound is the oldest release that scripts/check_versions.py tests, an upper bound the
    # first that isn't out yet and may break by the library's own way of numbering. Other reasons
    # stand beside their bound.
    install_requires=[
        # Every workaround in log_dqn.compat is for this one, Dopamine's newest.
        "dopamine-rl==4.1.2",
        # Dopamine's TensorFlow agents, in Keras 2, each part of the same release; 2.20 writes lines
        # of its own to the terminal that nothing can turn off.
        "tensorflow>=2.21,<2.22",
        "tf-keras>=2.21,<2.22",
        "tensorboard>=2.21,<2.22",
        # The last release; log_dqn.compat lets it import with JAX 0.7 and newer.
        "tensorflow-probability>=0.25,<0.26",
        # JAX 0.6.2 is the last for Python 3.10, with flax 0.10, and 0.10.2 for 3.11. Minor releases
        # remove names; gymnax 1.0.1 takes none from 0.12 on.
        "jax>=0.6,<0.12",
        "flax>=0.10.6,<0.13",
        "optax>=0.2.8,<0.3",
        "gin-config>=0.5,<0.6",
        "ale-py>=0.12,<0.13",
        # Dopamine imports it; 0.26 has another interface.
        "gym>=0.25.2,<0.26",
        # MinAtar's games, and Catch, as JAX programs.
        "gymnax>=1.0.1,<1.1",
        # gymnax takes none from 1.4 on.
        "gymnasium>=1.2,<1.4",
        # 2.1 is the oldest for Python 3.13; numba 0.68 takes none from 2.5 on.
        "numpy>=2.1,<2.5",
        "tqdm>=4.66,<5",
        # Completes the command line in the shell.
        "shtab>=1.7,<2",
        "zstandard>=0.23,<0.26",
        # Results: statistics, figures, downloading, the page.
        "rliable>=1.2,<1.3",
        # 2.2.3 is the oldest with wheels for Python 3.13; rliable's arch 7.2 does not import with
        # pandas 3.
        "pandas>=2.2.3,<3",
        "matplotlib>=3.10,<3.12",
        "platformdirs>=4,<5",
        "requests>=2.32,<3",
        "jinja2>=3.1,<3.2",
        # log_dqn.linear
        "numba>=0.68,<0.69",
        "scipy>=1.15,<1.18",
    ],
    extras_require={
        # Both with CUDA 12, which TensorFlow is built for; JAX has a cuda13 as well. The bounds are
        # those above.
        "gpu": ["tensorflow[and-cuda]", "jax[cuda12]"],
        "wandb": WANDB,
        "minatar": MINATAR,
        "play": PLAY,
        "sweep": SWEEP,
        "test": TEST,
        "docs": DOCS,
        "dev": [*TEST, *SLOW, *DOCS, "mypy>=2.4,<3", "pre-commit>=4,<5"],
    },
)
