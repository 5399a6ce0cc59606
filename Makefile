# The commands of this book. `make` alone explains them.
#
#   PYTHON=python3.12   the Python to build the environment with (3.11 or newer); by default the first that fits
#   EXTRAS=name,name    further extras of pyproject.toml to install
#   ARGS="..."          options for the program that the command starts
#   PYODIDE=folder      Pyodide, with which the pages of the book run Python; "release" fetches it
#   VENV=folder         the environment (default .venv)

VENV ?= .venv
ARGS ?=
EXTRAS ?=
export PYODIDE
# Looked for once, and only when an environment is to be made.
PYTHON ?= $(eval PYTHON := $(find_python))$(PYTHON)
find_python = $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && \
	echo $$python && break; done)

comma := ,
site := book/_build/html
py := $(VENV)/bin/python
# Two runs on one machine agree, and so do two machines, when one thread does the sums.
alone := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Two processes share the tests; one that is done takes from the other (ARGS="-n 8": eight).
two := -n 2 --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: install help lab read teach book test test-slow notebooks bench clean

help:  ## show this text
	@echo 'The commands of this book:'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'The first lab, book or test makes the folder $(VENV) and installs what it needs there: some minutes'
	@echo 'and some gigabytes. Later ones start at once. Options: PYTHON=python3.12 EXTRAS=... ARGS="..."'

lab: $(py)  ## open the book in JupyterLab (installs it first)
	$(call install,study)
	@$(py) -m jupyter trust chapters/*.ipynb >/dev/null  # else JupyterLab hides stored figures
	@echo 'JupyterLab opens on chapters/00_start_here.ipynb. To end it, press Ctrl-C here.'
	$(py) -m jupyterlab --LabApp.default_url=/lab/tree/chapters/00_start_here.ipynb $(ARGS)

book: $(py)  ## build the site into book/_build/html, from the stored outputs (and print it to PDF)
	$(call install,study book)
	rm -rf $(site)
	$(alone) $(py) -m sphinx -EW --keep-going -q -d book/_build/doctrees -b html book $(site) $(ARGS)
	@$(py) -m book.printing $(site)
	@$(py) -m book.pyodide $(site)
	@echo 'Built: $(site)/index.html opens in a browser; `make read` serves it.'

read: book  ## build the site and serve it on this machine
	@$(py) -m book.serve $(site)

teach: $(py)  ## install what the assignments need, and list their commands
	$(call install,study teach)
	@$(py) -m assignments --help

install: $(py)
	$(call install,study test book teach)

test: $(py)  ## run every check: style, types, tests, each chapter (about ten minutes)
	$(call install,study test book teach)
	@mkdir -p build
	$(py) -m ruff check .
	$(py) -m ruff format --check .
	$(py) -m mypy
	$(alone) $(py) -m pytest $(two) --junitxml=build/junit.xml $(ARGS)

test-slow: $(py)  ## remake the weights, run the chapters on other CPU features
	$(call install,study test book teach)
	@mkdir -p build
	$(alone) $(py) -m pytest $(two) -m slow --junitxml=build/junit-slow.xml $(ARGS)

notebooks: $(py)  ## rerun every chapter and store its outputs (ARGS="--measure" times anew)
	$(call install,study test book teach)
	$(alone) $(py) -m tests.notebooks $(ARGS)

bench: $(py)  ## run the benchmarks
	$(call install,study test book teach)
	$(alone) $(py) -m benchmarks $(ARGS)

clean:  ## remove caches and reports (not the environment)
	rm -rf build book/_build book/api book/chapters .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -path ./.git -prune -o -path './$(VENV)' -prune -o \
		-type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

$(py):
	@test -n '$(PYTHON)' || { echo 'This book needs Python 3.11 or newer, and none was found.' \
		'Install one, or name it: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	@'$(PYTHON)' -c '' >/dev/null 2>&1 || { echo 'PYTHON=$(PYTHON) cannot be run.' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "This book needs Python 3.11 or newer; $(PYTHON) is `'$(PYTHON)' -V 2>&1`." \
		'Name another: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
		echo '$(PYTHON) cannot make a virtual environment: its modules venv and ensurepip are missing.' \
		'On Debian or Ubuntu: sudo apt install python3-venv' >&2; exit 1; }
	@echo 'Making the environment $(VENV) with $(PYTHON).'
	@'$(PYTHON)' -m venv '$(VENV)'

# Installs what is missing of the extras named here and in EXTRAS, in one go. Each has its stamp; when the ranges, the pins or the Python
# are newer, it is missing again.
define install
@missing=; \
for extra in $(1) $(subst $(comma), ,$(EXTRAS)); do \
	stamp='$(VENV)/.installed-'$$extra; \
	for newer in pyproject.toml constraints.txt '$(py)'; do \
		test -e "$$stamp" && ! test "$$newer" -nt "$$stamp" || { missing=$$missing,$$extra; break; }; \
	done; \
done; \
missing=$${missing#,}; \
if test -n "$$missing"; then \
	set -e; \
	echo "Installing what the book needs into $(VENV) [$$missing]: some minutes the first time."; \
	$(py) -m pip --version >/dev/null 2>&1 || $(py) -m ensurepip --upgrade >/dev/null; \
	$(py) -m pip install --disable-pip-version-check -e ".[$$missing]" -c constraints.txt; \
	$(py) -m jupyter labextension disable --level=sys_prefix \
		'@jupyterlab/apputils-extension:announcements' >/dev/null 2>&1; \
	for extra in $$(echo "$$missing" | tr , ' '); do touch '$(VENV)/.installed-'$$extra; done; \
fi
endef
