# CPU:  docker build -t pagnn-bench .
# GPU:  docker build -t pagnn-bench:cuda --build-arg BASE=nvidia/cuda:13.0.1-base-ubuntu24.04 --build-arg TORCH=cu130 .
# Run:  docker run --rm -v "$PWD:/bench" [--gpus all] pagnn-bench[:cuda] run experiment=smoke
ARG BASE=ubuntu:24.04
FROM ${BASE}

# Which of torch's own wheel indexes: cpu, or cu130 and so on. The CUDA libraries come with the wheels.
ARG TORCH=cpu

# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/pagnn-bench

# torch first, in a layer that a change of the code leaves alone.
COPY constraints.txt ./
RUN python3 -m venv .venv \
 && .venv/bin/pip install --no-cache-dir "$(grep '^torch==' constraints.txt)" \
      --index-url "https://download.pytorch.org/whl/${TORCH}"

COPY . .
RUN .venv/bin/pip install --no-cache-dir -c constraints.txt -e .

ENV PATH=/opt/pagnn-bench/.venv/bin:$PATH \
    MPLCONFIGDIR=/tmp \
    PAGNN_DATA=/bench/data
WORKDIR /bench
ENTRYPOINT ["pagnn-bench"]
CMD ["--help"]
