# One image for every party (docs/deploy.md): an interpreter, packages and what they load, without a shell or a package
# manager. The stages before it are of a distribution, and nothing else of that is in it. Packages come from wheelhouse/
# if `make wheelhouse` has filled it, and from the network otherwise.

FROM python:3.11-slim-bookworm AS wheels
# `wheelhouse*` may match nothing, and then three files are copied.
COPY pyproject.toml hushbid/requirements.lock containers/root.py wheelhouse* /wheelhouse/
RUN set -eu; cd /wheelhouse; \
    printf '[global]\nconstraint = /wheelhouse/requirements.lock\ndisable-pip-version-check = true\n' >/etc/pip.conf; \
    if ls ./*.whl >/dev/null 2>&1; then printf 'no-index = true\nfind-links = /wheelhouse\n' >>/etc/pip.conf; fi; \
    python3.11 -m venv --without-pip /opt/hushbid

# What it takes to run, as every party and the setup, at the versions of the lock, and no more: a fifth of all files are
# packages' own tests. Byte code is compiled here, since containers cannot write it. /image gets what of this stage's
# distribution the interpreter and the packages load. One command for all, as an engine may search a whole stage for
# what each has changed.
FROM wheels AS packages
RUN set -eu; cd /wheelhouse; \
    python3.11 -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
print(*project["dependencies"], *project["optional-dependencies"]["operator"], sep="\n")' >runtime.txt; \
    python3.11 -m pip --python /opt/hushbid/bin/python \
        install --quiet --no-cache-dir --no-compile --requirement runtime.txt; \
    find /opt/hushbid/lib -type d -name tests -prune -exec rm -r {} +; \
    python3.11 root.py /image /opt/hushbid/lib; \
    python3.11 -m compileall -q -j 0 /opt/hushbid/lib /image

# The project by itself: a change of it installs no package anew.
FROM wheels AS project
COPY . /project
# A new volume takes owner and mode of the directory that it is mounted over, so that no container needs root.
# /party is what a party's container has; /parties/NAME is the same for each party, as the setup sees it.
RUN set -eu; cd /project; \
    python3.11 -m pip --python /opt/hushbid/bin/python install --quiet --no-cache-dir --no-deps .; \
    ln -s lib/python3.11/site-packages/hushbid/configs /opt/hushbid/configs; \
    chmod -R a+rX /opt/hushbid; \
    for party in party parties/curator parties/consumer \
        parties/owner-1 parties/owner-2 parties/owner-3 parties/owner-4 parties/owner-5 \
        parties/owner-6 parties/owner-7 parties/owner-8 parties/owner-9 parties/owner-10; do \
        mkdir -p "/volumes/$party/key" "/volumes/$party/data" "/volumes/$party/state"; \
    done; \
    mkdir /volumes/party/session; \
    chmod -R 0700 /volumes/*

FROM scratch
ENV PATH=/opt/hushbid/bin HOME=/tmp PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
    XDG_STATE_HOME=/party/data \
    HUSHBID_SESSION=/party/session/session.toml HUSHBID_CONFIG=/party/data/party.toml HUSHBID_STATE=/party/state
USER 10001:10001
ENTRYPOINT ["hushbid"]
COPY --from=packages /image /
COPY --from=project --chown=10001:10001 /volumes /
COPY containers/restarting.py /opt/hushbid/restarting.py
COPY --from=packages /opt/hushbid /opt/hushbid
COPY --from=project /opt/hushbid /opt/hushbid
