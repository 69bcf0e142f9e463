"""`hushbid.Catalogue`: the entries that owners have published, and a consumer's choice among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushbid.owner.role import BudgetOption, FeaturesOption, LedgerOption, LiftOption
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import need
from hushbid.protocol.runtime.command import by_option, option
from hushbid.protocol.runtime.given_tables import GivenPath, path_of, stated_budget

if TYPE_CHECKING:
    from hushbid.catalogue.consumer_release import ConsumerData
    from hushbid.catalogue.entry import CatalogueEntry
    from hushbid.catalogue.publish_options import PublishKme, PublishRace
    from hushbid.catalogue.publishing import PublishedEntry
    from hushbid.catalogue.screening import ScreeningResult
    from hushbid.protocol.config.party import ConsumerFile
    from hushbid.protocol.config.session import DraftSession

__all__ = ["UNACCOUNTED", "Catalogue", "ScreenOptions"]

UNACCOUNTED: Final = (
    "WARNING: --unaccounted ranks by the exact validation set. The owners that are chosen, and all that is "
    "printed here, tell of it what no release paid for and no ledger has."
)


@dataclass(frozen=True, kw_only=True)
class ScreenOptions:
    """Options of a consumer that screens a catalogue: each option's help describes it."""

    session: GivenPath = option(
        Path | None,
        help="Session file with map, target and roster; the roster may be incomplete.",
        envvar="HUSHBID_SESSION",
    )
    config: GivenPath = option(Path | None, help="Consumer's private file.", envvar="HUSHBID_CONFIG")
    validation: GivenPath = option(
        Path | None, help="D_v, instead of the file's.", envvar="HUSHBID_VALIDATION"
    )
    seed_set: GivenPath = option(
        Path | None, help="D_init, instead of the file's.", envvar="HUSHBID_SEED_SET"
    )
    features: str | None = field(default=None, metadata=by_option(FeaturesOption))
    epsilon: float | None = option(
        ranges.Epsilon | None, help="ε of the release of D_v; default: the session's target."
    )
    delta: float = option(ranges.Delta, default=1e-5, help="δ for --epsilon.")
    target_file: GivenPath = option(
        Path | None,
        help="File that keeps the release of D_v, and is reused if it exists; default: the private file's, "
        "or beside D_v.",
        envvar="HUSHBID_TARGET_FILE",
    )
    ledger: GivenPath = field(default=None, metadata=by_option(LedgerOption))
    budget_epsilon: float | None = field(default=None, metadata=by_option(BudgetOption))
    lift_budget: bool = field(default=False, metadata=by_option(LiftOption))
    best: int = option(ranges.Count, default=2, help="Number of owners to choose.")
    unaccounted: bool = option(
        bool, "--unaccounted", default=False, help="Rank by the exact D_v. The result is not private."
    )
    allow_simulated: bool = option(
        bool, "--allow-simulated", default=False, help="Include entries whose noise protects nobody."
    )
    write_session: GivenPath = option(
        Path | None, help="Write a session file with only the chosen owners here.", metavar="FILE"
    )
    plot: GivenPath = option(Path | None, help="Write an HTML page with a plot here.", metavar="FILE")


class Catalogue:
    """A catalogue, given by files and directories of entries: ``Catalogue("entries/")``.

    Raises:
        ConfigError: No place is given.
    """

    def __init__(self, *places: Path | str) -> None:
        if not places:
            raise ConfigError("A catalogue needs a place.", advice="Name a directory, or files of entries.")
        self.places = tuple(map(Path, places))

    def entries(self) -> Mapping[Path, CatalogueEntry]:
        """The entries by file, with checked signatures, functions and stated costs.

        Raises:
            ConfigError: There are no entries.
            DataError: An entry is refused; the error says why.
        """
        from hushbid.catalogue.candidates import entry_files
        from hushbid.catalogue.entry import read_entry

        found = {path: read_entry(path) for path in entry_files(self.places)}
        if not found:
            raise ConfigError("There is no entry to check.", advice="Name the files of entries.")
        return found

    def publish(self, options: PublishKme | PublishRace) -> PublishedEntry:
        """Add an entry to the first place, a directory that is created if needed; its ε is charged first.

        Raises:
            DataError: The data cannot be used, or have rows outside of the bounds and are not to be clipped.
            ConfigError: A parameter that cannot hold, or a file that cannot be written.
            BudgetExceeded: The dataset's budget does not allow it; nothing was charged.
        """
        return options.publish(self.places[0])

    def screen(self, options: ScreenOptions) -> ScreeningResult:
        """Rank owners by a release of a consumer's validation set, which is charged unless it exists.

        Raises:
            DataError: No entry can be compared, or D_v does not fit them.
            ConfigError: A setting that cannot hold.
            BudgetExceeded: The release of D_v would go over its budget; nothing was charged.
        """
        from hushbid.catalogue.consumer_release import Screening
        from hushbid.catalogue.screening import screen, write_session
        from hushbid.roster.file import RosterFile
        from hushbid.text_files import check_new_file, write_new_file

        session, written, plot = map(path_of, (options.session, options.write_session, options.plot))
        if written is not None and session is None:
            raise ConfigError(
                "There is no session file to write the chosen owners to.",
                advice="Give the session file with `--session`.",
            )
        if plot is not None:
            need("bokeh", "A plot")
        for file in (plot, written):  # Check before anything is charged.
            if file is not None and (session is None or file.resolve() != session.resolve()):
                check_new_file(file)
        what = Screening(
            catalogue=self.places,
            session=None if session is None else RosterFile(session),
            epsilon=options.epsilon,
            delta=options.delta,
            best=options.best,
            unaccounted=options.unaccounted,
            allow_simulated=options.allow_simulated,
        )
        result = screen(what, _consumer(options, None if what.session is None else what.session.draft))
        if plot is not None:
            from hushbid.catalogue.page import screening_page

            write_new_file(plot, screening_page(result))
        if written is not None and what.session is not None:
            write_session(what.session, result.chosen, written)
        return result


def _consumer(options: ScreenOptions, session: DraftSession | None) -> ConsumerData:
    """The consumer's own settings; options override its private file. Data are read as in the session."""
    from hushbid.catalogue.consumer_release import ConsumerData
    from hushbid.consumer.process import drawn_path
    from hushbid.protocol.config.loading import load_toml
    from hushbid.protocol.config.party import ConsumerFile
    from hushbid.protocol.data import DataColumns, load_dataset
    from hushbid.protocol.data.names import split_names

    config, features = path_of(options.config), options.features
    file = None if config is None else load_toml(ConsumerFile, config).resolved(config.parent)
    own = _named(
        file,
        validation=options.validation,
        seed_set=options.seed_set,
        target_file=options.target_file,
        ledger=options.ledger,
    )
    data = own["validation"]
    if data is None:
        raise ConfigError(
            "The validation set is not named.",
            advice="Give `--validation`, or the private file with `--config`.",
        )
    columns = DataColumns() if file is None else file.columns.columns()
    if features is not None:
        columns = DataColumns(split_names(features), columns.label, columns.identifier)
    if session is not None:
        columns = session.reading(columns)
    seeds = own["seed_set"]
    if seeds is None and file is not None and file.seed_points is not None and drawn_path(file).exists():
        seeds, seed_columns = drawn_path(file), DataColumns()
    else:
        seed_columns = columns
    return ConsumerData(
        validation=load_dataset(data, columns),
        seed_set=None if seeds is None else load_dataset(seeds, seed_columns),
        target=own["target_file"] or data.with_name(f"{data.name}.target"),
        ledger=own["ledger"] or data.with_name(f"{data.name}.ledger"),
        budget=stated_budget(
            None if file is None else file.budget, options.budget_epsilon, lift=options.lift_budget
        ),
    )


def _named(file: ConsumerFile | None, **options: GivenPath) -> dict[str, Path | None]:
    """The paths given by options, made absolute, and the file's paths otherwise."""
    return {
        name: Path(path).expanduser().resolve() if path is not None else getattr(file, name, None)
        for name, path in options.items()
    }
