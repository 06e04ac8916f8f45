# `make demo` and `make test` are all a fresh machine needs: Python 3.11 to 3.13, git, make and a package index.

PYTHON ?= python3
EXTRAS ?= dev
# The default is made here, with the versions of constraints.txt. Another one, such as VENV=$VIRTUAL_ENV or
# VENV=$CONDA_PREFIX, must exist, and keeps the versions that it has: its torch fits its GPU.
VENV ?= .venv
BIN := $(VENV)/bin
# One stamp a choice of extras, such as EXTRAS=dev,ray,dask,slurm to test the cluster engines, too. An environment of yours
# may serve several clones, of which it has the one that came last.
STAMP := $(VENV)/installed-$(EXTRAS)$(if $(filter .venv,$(VENV)),,$(subst /,-,$(CURDIR)))
SUPPORTED := import sys; v = sys.version_info[:2]; (3, 11) <= v < (3, 14) or sys.exit( \
	"pagnn-bench needs Python 3.11, 3.12 or 3.13, but %s is %d.%d$(if $(filter .venv,$(VENV)),; try: make PYTHON=python3.11)" \
	% (sys.argv[1], *v))
PIP := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo tables report docs fill recompute gpu-check test lint types format clean

# For `fill` and `recompute`: DEVICE=cpu beside a GPU; JOBS=4 for so many processes instead of one per core or GPU.
DEVICE ?= auto
JOBS ?= auto
CELLS ?= 10
PAPER := mf,vae,gain,gcnmf,pagnn_m,pagnn_n
CONTROLS := zero,fp,pcfi,mask_concat,full

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP)  ## create .venv with everything in the versions of constraints.txt; or VENV=DIR, an environment of yours

# Made again only when a dependency may have changed: otherwise `make setup` has nothing to do.
$(STAMP): pyproject.toml constraints.txt
ifeq ($(VENV),.venv)
	@$(PYTHON) -c '$(SUPPORTED)' $(PYTHON)
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) -c constraints.txt -e '.[$(EXTRAS)]'
else
	@test -x $(BIN)/python || { echo "VENV=$(VENV): there is no $(BIN)/python; give an environment that exists." >&2; exit 2; }
	@$(BIN)/python -c '$(SUPPORTED)' $(BIN)/python
	$(BIN)/python $(PIP) -e '.[$(EXTRAS)]'
	@rm -f $(VENV)/installed-*
endif
	@touch $@

demo: setup  ## PaGNN against two fillings on the built-in graph, with table and report: no download
	$(BIN)/pagnn-bench run -m experiment=demo results_dir=build/demo
	$(BIN)/pagnn-bench tables --results build/demo
	$(BIN)/pagnn-bench report --results build/demo

tables: setup  ## the paper's tables from the results in results/
	$(BIN)/pagnn-bench tables --compare paper

report: setup  ## one page that shows and explains the results in results/
	$(BIN)/pagnn-bench report

docs: setup  ## the measured parts of README and docs/ from the results in results/
	$(BIN)/python scripts/write_docs.py

fill: setup  ## train everything that results/ lacks of Tables 2 and 3 and the controls; stop it and go on as you like
	$(BIN)/pagnn-bench run -m experiment=table2 method=$(PAPER),sat,$(CONTROLS) device=$(DEVICE) n_jobs=$(JOBS)
	$(BIN)/pagnn-bench run -m experiment=table3 method=$(PAPER),$(CONTROLS) device=$(DEVICE) n_jobs=$(JOBS)
	$(BIN)/pagnn-bench collect
	$(BIN)/python scripts/write_docs.py

recompute: setup  ## train CELLS=10 random cells of results/ again, from scratch, and set the accuracies side by side
	$(BIN)/python scripts/recompute.py --cells $(CELLS) --device $(DEVICE)

gpu-check: setup  ## five minutes that tell whether the GPU computes what the CPU computes: PASS or FAIL
	@mkdir -p build
	$(BIN)/pagnn-bench check-device --device $(DEVICE) -o build/check-device.json

# Files are given out, the cluster engines first, to as many processes as there are cores, four at most.
test: lint types  ## everything that is checked before a change is accepted
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

lint: setup  ## style, formatting and who imports whom, without changing anything
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: setup  ## static types
	$(BIN)/mypy

format: setup  ## put the formatting right
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## remove the environment, caches and builds; results stay
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
