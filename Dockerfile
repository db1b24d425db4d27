# syntax=docker/dockerfile:1
# LogDQN in a container, from the wheel:
#   docker build --tag log_dqn .                            for the CPU
#   docker build --tag log_dqn:gpu --build-arg EXTRAS=gpu,minatar,sweep,play .
#   docker run --rm --volume "$PWD/runs:/runs" log_dqn train --game=Pong --base_dir=/runs/pong
#   docker run --rm --gpus all ...                          for the GPU
# Make the folder runs before: Docker would make it root's, and the image's user is 1000.
# The libraries of CUDA come with the extra gpu; the host needs NVIDIA's driver and its container
# toolkit alone.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG EXTRAS=minatar,sweep,play
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]" && rm -r /wheels
RUN useradd --create-home --uid 1000 user
USER 1000
WORKDIR /home/user
ENTRYPOINT ["log-dqn"]
