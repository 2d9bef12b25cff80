"""Builds the questions of a recommendation from what a user gave, has them solved and ranked, and says why not; no printing."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from recommender.conflict import Clash, minimal_clash, ways_out
from recommender.errors import RulebookError
from recommender.expr import compile_expression, compile_template, compile_value, show
from recommender.laws import FactTable, Scope
from recommender.memory import ranks_needed
from recommender.profiles import Gpu, Model
from recommender.ranking import Preference, Tier, depth_reason, tier_for
from recommender.resolve import Walk, walk
from recommender.session import Session
from recommender.solver import Encoded, Question, Variable, asked_of, encode, is_valid, names_where, solutions
from recommender.terms import UNKNOWN, Effect, ImageUse, Known, Source, Value, Verdict

# The final walk repeats what the constraints said; of very many rows it repeats the best only.
MOST_JUDGED = 64
# Candidates whose clash is worked out when nothing is valid.
MOST_EXPLAINED = 2
SEARCH = "constraints/sglang/search.yaml"
_QUESTION_WORDS = frozenset({"concurrency", "gpus", "own_draft"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a user gave: the device, every pinned setting, the settings to search although they are pinned, and the load."""

    gpu: Gpu
    gpus: int
    pins: Mapping[str, Value]
    freed: frozenset[str] = frozenset()
    concurrency: int = 8
    strict: bool = False
    image: ImageUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An algorithm with a draft. `fit` is UNKNOWN when the draft's kind is not known."""

    id: str
    algorithm: str
    draft: str | None
    own: bool
    why: str
    fit: Value
    entry: Mapping[str, Any]
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One valid launch: `asked` is every setting it states, `found` the searched ones, `reason` why it stands here."""

    candidate: Candidate
    found: Mapping[str, Value]
    asked: Mapping[str, Value]
    reason: str
    unknown: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """Every valid answer is a chain: the laws that refuse each tree, with their sources."""

    rules: tuple[str, ...]
    statements: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """An algorithm that is not offered, and the law that says so for this question; empty where no law does."""

    algorithm: str
    reason: str
    rule: str = ""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A verified way out: what changes against the user's words (None: the setting goes); `freed` are the pins among it."""

    changes: Mapping[str, Value]
    asked: Mapping[str, Value]
    freed: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """Why nothing is valid: a clash of laws and pins per candidate, skipped candidates, and ways out."""

    clashes: tuple[tuple[Candidate, Clash], ...] = ()
    exits: tuple[Exit, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A recommendation: rows best first, or why there is none.

    `excluded` are the algorithms that are not offered, `skipped` the drafts that none of the offered uses, each with the reason.
    """

    rows: tuple[Row, ...]
    more: bool
    skipped: tuple[tuple[str, str], ...]
    excluded: tuple[Excluded, ...] = ()
    alternatives: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    forced: Forced | None = None
    no_answer: NoAnswer | None = None
    tier: Tier | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    rewrites: Mapping[str, Known] = field(default_factory=dict)
    warnings: tuple[tuple[str, str], ...] = ()


class _Words:
    """The vocabulary of search.yaml: the rules' own, and what only a question has."""

    def __init__(self, words: Any) -> None:
        self._words = words

    def is_fact(self, name: str) -> bool:
        return name in _QUESTION_WORDS or bool(self._words.is_fact(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)


class Adviser:
    """Answers questions in one session."""

    def __init__(self, session: Session, ask: Ask) -> None:
        self.session = session
        self.ask = ask
        self.plan = session.plan
        self.roles = session.roles
        self.search: Mapping[str, Any] = session.book.library.one(SEARCH)
        self.words = _Words(session.edition.words)
        self.tier = tier_for([Tier(**tier) for tier in self.search["depth"]], ask.concurrency)

    # --- facts and values ---------------------------------------------------------------------------------------------------

    def facts(self, draft: Value) -> FactTable:
        """The facts of a launch with this draft path."""
        return self.session.facts(self.ask.gpu, self.ask.pins.get(self.roles["model"]), draft)

    def _scope(self, draft: Value, own: bool, given: Mapping[str, Value]) -> Scope:
        known = {"concurrency": self.ask.concurrency, "gpus": self.ask.gpus, "own_draft": own}
        values = {**self.plan.defaults, **given}
        return Scope(values=values, facts=_Extended(self.facts(draft), known), asked=given)

    def _value(self, text: Value, scope: Scope) -> Value:
        return compile_value(text, self.words).evaluate(scope)

    def _holds(self, text: str | None, scope: Scope) -> Value:
        return True if text is None else compile_expression(text, self.words).evaluate(scope)

    @cached_property
    def pins(self) -> dict[str, Value]:
        """The settings that stay as the user wrote them."""
        return {name: value for name, value in self.ask.pins.items() if name not in self.ask.freed}

    # --- candidates ---------------------------------------------------------------------------------------------------------

    def candidates(self) -> tuple[list[Candidate], list[tuple[str, str]]]:
        """(algorithms with drafts that can be tried, best first; those that do not fit, with the reason)."""
        wanted = self._wanted_algorithm()
        tried: list[Candidate] = []
        unfit: dict[tuple[str, str | None], list[str]] = {}
        for place, entry in enumerate(self.search["candidates"]):
            if wanted is not None and entry["algorithm"] != wanted:
                continue
            for draft in self._drafts(entry):
                fit = self._holds(entry["fits"], self._scope(draft, entry["draft"] == "own", self.pins))
                if fit is not UNKNOWN and not fit:
                    unfit.setdefault((entry["draft"], draft), []).append(entry.get("wants", ""))
                    continue
                tried.append(self._candidate(entry, place, draft, fit))
        used = {candidate.draft for candidate in tried}
        skipped = [
            (draft or "the checkpoint itself", "; ".join(dict.fromkeys(reasons)))
            for (_, draft), reasons in unfit.items()
            if draft not in used or (draft is None and not any(candidate.own for candidate in tried))
        ]
        if not tried and wanted is not None:
            draft = self.pins.get(self.roles["draft"])
            entry = {"id": "as-asked", "algorithm": wanted, "draft": "given" if draft else "none"}
            tried.append(
                Candidate(
                    id="as-asked",
                    algorithm=wanted,
                    draft=draft,
                    own=False,
                    why="As asked.",
                    fit=True,
                    entry=entry,
                    place=0,
                )
            )
        return tried, skipped

    @staticmethod
    def _candidate(entry: Mapping[str, Any], place: int, draft: str | None, fit: Value) -> Candidate:
        return Candidate(
            id=entry["id"],
            algorithm=entry["algorithm"],
            draft=draft,
            own=entry["draft"] == "own",
            why=entry["why"],
            fit=fit,
            entry=entry,
            place=place,
        )

    def _wanted_algorithm(self) -> str | None:
        role = self.roles["algorithm"]
        if self.pins.get(role) is None:
            return None
        resolved = walk(self.plan, self.pins, self.facts(self.pins.get(self.roles["draft"]))).values[role]
        return resolved if isinstance(resolved, str) else str(self.pins[role])

    def _drafts(self, entry: Mapping[str, Any]) -> list[str | None]:
        pinned = self.pins.get(self.roles["draft"])
        if entry["draft"] == "given":
            if pinned is not None:
                return [pinned]
            model = self.session.model(self.pins.get(self.roles["model"]))
            return list(self._known_drafts(model)) if isinstance(model, Model) else []
        return [] if pinned is not None and entry["draft"] != "none" else [None]

    @staticmethod
    def _known_drafts(model: Model) -> Iterator[str]:
        for draft in model.drafts:
            yield draft["id"] if isinstance(draft, Mapping) else str(draft)

    # --- questions ----------------------------------------------------------------------------------------------------------

    def question(self, candidate: Candidate) -> Question:
        """The constraint problem of one candidate."""
        given = dict(self.pins)
        given.setdefault(self.roles["algorithm"], candidate.algorithm)
        if candidate.draft is not None:
            given.setdefault(self.roles["draft"], candidate.draft)
        scope = self._scope(candidate.draft, candidate.own, given)
        given |= self._states(given, scope)
        scope = self._scope(candidate.draft, candidate.own, given)
        follows = tuple(
            (name, compile_value(value, self.words))
            for name, value in candidate.entry.get("follows", {}).items()
            if name not in given
        )
        keeps = candidate.entry.get("keeps")
        return Question(
            plan=self.plan,
            facts=self.facts(candidate.draft),
            given=given,
            variables=tuple(self._variables(candidate, given, scope)),
            follows=follows,
            keeps=(("shape of the candidate", compile_expression(keeps, self.words)),) if keeps else (),
            strict=self.ask.strict,
        )

    def _states(self, given: Mapping[str, Value], scope: Scope) -> dict[str, Value]:
        """The settings that a launch states although nothing is searched there."""
        return {
            entry["setting"]: self._value(entry["value"], scope)
            for entry in self.search["states"]
            if entry["setting"] not in given and self._holds(entry.get("when"), scope) is True
        }

    def _variables(self, candidate: Candidate, given: Mapping[str, Value], scope: Scope) -> Iterator[Variable]:
        engine = self._engine_choice(given, self.facts(candidate.draft))
        domains = candidate.entry.get("domains", {})
        for entry in (*self.search["variables"], *self.search["also"]):
            name = entry["setting"]
            spans = entry.get("spans", ())
            if name in given or (spans and all(item in given for item in spans)):
                continue
            applies = self._holds(entry.get("when"), scope)
            if applies is not UNKNOWN and not applies:
                continue
            domain = tuple(self.domain(name, domains.get(name), entry["domain"], scope))
            if entry.get("engine_first"):
                first = [value for value in engine.get(name, ()) if value is not None and value is not UNKNOWN]
                domain = tuple(dict.fromkeys([*first, *domain]))
            yield Variable(name=name, domain=domain, stage=entry.get("stage", 0))

    def domain(self, name: str, special: Value, listed: Sequence[Value], scope: Scope) -> Sequence[Value]:
        """The values of a searched setting, in order of preference; a candidate's `special` domain counts where it is known."""
        value = self._value(special, scope) if isinstance(special, str) else special
        if value is None or value is UNKNOWN:
            value = listed
        if not isinstance(value, (tuple, list)) or not value:
            raise RulebookError(f"{SEARCH}: {name}: the domain is not a list of values")
        return value

    def _engine_choice(self, given: Mapping[str, Value], facts: FactTable) -> dict[str, list[Value]]:
        """What the engine makes of the settings it would choose itself, for a chain and then for a tree."""
        role = self.roles["topk"]
        first = [entry["setting"] for entry in self.search["variables"] if entry.get("engine_first")]
        found: dict[str, list[Value]] = {name: [] for name in first}
        for topk in (1, 2):
            asked = {**given, role: given.get(role, topk), self.roles["steps"]: 1, self.roles["draft_tokens"]: 2}
            result = walk(self.plan, asked, facts)
            for name in first:
                found[name].append(result.values[name])
        return found

    def preference(self, question: Question) -> Preference:
        """How this question's rows are ordered."""
        likes = {entry["setting"]: entry["like"] for entry in self.search["variables"] if "like" in entry}
        return Preference(
            domains={variable.name: variable.domain for variable in question.variables},
            likes=likes,
            given=question.given,
            topk=self.roles["topk"],
            steps=self.roles["steps"],
            tokens=self.roles["draft_tokens"],
            bound=self.tier.steps,
        )

    # --- answers ------------------------------------------------------------------------------------------------------------

    def advise(self, top: int) -> Advice:
        """The best rows (all of them when `top` is 0), or why there is none."""
        problem = self._impossible()
        candidates, skipped = self.candidates()
        if problem:
            return Advice(rows=(), more=False, skipped=tuple(skipped), no_answer=NoAnswer(problem=problem))
        known: list[Row] = []
        doubtful: list[Row] = []
        more = False
        impossible: list[tuple[Candidate, Encoded]] = []
        asked: list[tuple[Candidate, Encoded]] = []
        for candidate in candidates:
            encoded = encode(self.question(candidate))
            found = 0
            for row in self._rows(candidate, encoded, top):
                found += 1
                if top and found > 2 * top:
                    break
                (doubtful if row.unknown or candidate.fit is UNKNOWN else known).append(row)
            asked.append((candidate, encoded))
            if not found:
                impossible.append((candidate, encoded))
            if top and len(known) > top:
                more = True
                break
        rows = [*known, *doubtful]
        excluded = self._excluded(candidates, impossible, [encoded for _, encoded in asked if not encoded.hopeless])
        if not rows:
            return Advice(
                rows=(),
                more=False,
                skipped=tuple(skipped),
                excluded=excluded,
                no_answer=self._why_not([(candidate, encoded.question) for candidate, encoded in impossible]),
                tier=self.tier,
            )
        shown = self._told_apart(rows[:top] if top else rows)
        walks = self._judge_again(shown[:MOST_JUDGED])
        return Advice(
            rows=tuple(shown),
            more=more or len(rows) > len(shown),
            skipped=tuple(skipped),
            excluded=excluded,
            alternatives=self._alternatives(shown[0], {candidate.id: encoded for candidate, encoded in asked}),
            forced=self._forced([pair for pair in asked if pair[0].id in {row.candidate.id for row in shown}][:1]),
            tier=self.tier,
            stated={
                entry["setting"]: entry["why"]
                for entry in self.search["states"]
                if entry["setting"] not in self.pins and entry["setting"] in shown[0].asked
            },
            rewrites={
                name: walks[0].known(name)
                for name, value in self.pins.items()
                if walks[0].values[name] not in (value, UNKNOWN)
            },
            warnings=tuple(
                (item.step.rule.id, item.message)
                for item in walks[0].struck
                if item.step.rule.effect is Effect.DEGRADES and item.verdict is Verdict.BREAKS
            ),
        )

    # --- what is not offered ------------------------------------------------------------------------------------------------

    def _excluded(
        self,
        candidates: Sequence[Candidate],
        impossible: Sequence[tuple[Candidate, Encoded]],
        tried: Sequence[Encoded],
    ) -> tuple[Excluded, ...]:
        """Each algorithm without an answer, with the law that excludes it; none when the user named the algorithm."""
        if self.pins.get(self.roles["algorithm"]) is not None:
            return ()
        failed = {candidate.id for candidate, _ in impossible}
        offered = {candidate.algorithm for candidate in candidates if candidate.id not in failed}
        found: dict[str, Excluded] = {}
        others = [encode(replace(encoded.question, strict=True)) for encoded in tried[:1]]
        shared = frozenset(step.rule.id for encoded in others for step in encoded.hopeless) | self._broken_anyway()
        for candidate, encoded in impossible:
            if candidate.algorithm not in offered and not any(step.rule.id in shared for step in encoded.hopeless):
                found.setdefault(candidate.algorithm, self._hopeless(candidate, encoded))
        fits = {candidate.algorithm for candidate in candidates}
        for entry in self.search["candidates"]:
            if entry["algorithm"] not in (*offered, *found, *fits):
                found[entry["algorithm"]] = self._unfit(entry["algorithm"], shared)
        order = dict.fromkeys(entry["algorithm"] for entry in self.search["candidates"])
        return tuple(found[name] for name in order if name in found)

    def _broken_anyway(self) -> frozenset[str]:
        """The laws that what the user gave breaks whatever the algorithm."""
        result = walk(self.plan, self.pins, self.facts(self.pins.get(self.roles["draft"])), keep=True)
        return frozenset(item.step.rule.id for item in result.struck if item.verdict is Verdict.BREAKS)

    def _hopeless(self, candidate: Candidate, encoded: Encoded) -> Excluded:
        """A candidate that fits and has no valid shape: the law that what is given breaks by itself, else the least clash."""
        rules = [step.rule.id for step in encoded.hopeless[:1]]
        rules = rules or list(minimal_clash(encoded.question, (), self._domain_of).rules)
        laws = [self.session.edition.rules[name] for name in rules if name in self.session.edition.rules]
        return Excluded(
            algorithm=candidate.algorithm,
            rule=", ".join(law.id for law in laws),
            reason=" ".join(law.statement for law in laws) or "no setting of it is valid here",
            sources=tuple(source for law in laws for source in law.sources),
        )

    def _unfit(self, algorithm: str, shared: Container[str]) -> Excluded:
        """An algorithm that fits no draft there is: the law that every launch with both breaks, else what it wants.

        Laws of `shared` degrade every algorithm here, so they tell none apart.
        """
        draft = self.pins.get(self.roles["draft"])
        entries = [
            (place, entry)
            for place, entry in enumerate(self.search["candidates"])
            if entry["algorithm"] == algorithm and (draft is None or entry["draft"] != "own")
        ]
        for place, entry in entries:
            candidate = self._candidate(entry, place, draft, False)
            for strict in (False, True):
                encoded = encode(replace(self.question(candidate), strict=strict))
                laws = [step.rule for step in encoded.hopeless if step.rule.id not in shared]
                if laws:
                    law = laws[0]
                    return Excluded(
                        algorithm=algorithm,
                        rule=law.id,
                        reason=self._said_of(law.id, encoded) or law.statement,
                        sources=law.sources,
                    )
        alone = draft is None and all(entry["draft"] == "given" for _, entry in entries)
        wants = [self.search["alone"]] if alone else [str(entry.get("wants", "")) for _, entry in entries]
        return Excluded(algorithm=algorithm, reason="; ".join(wants))

    def _said_of(self, rule: str, encoded: Encoded) -> str:
        """A law's message for what is given; the searched settings stand at the first value of their domain."""
        question = encoded.question
        first = {variable.name: variable.domain[0] for variable in question.variables}
        result = walk(self.plan, {**first, **question.given}, question.facts, keep=True)
        return next((item.message for item in result.struck if item.step.rule.id == rule), "")

    def _rows(self, candidate: Candidate, encoded: Encoded, top: int) -> Iterator[Row]:
        """Rows of one candidate, best first; with `top`, reading stops once enough without doubts and costs were seen."""
        preference = self.preference(encoded.question)
        stages = {0: preference.frame_key, 1: preference.shape_key}
        also = {entry["setting"] for entry in self.search["also"]}
        clean: list[Row] = []
        rest: list[Row] = []
        seen: set[tuple[Value, ...]] = set()
        deepest = _Deepest(encoded, self.roles)
        for found in solutions(encoded, order=lambda stage, item: stages[stage](item)):
            key = tuple(found[name] for name in found if name not in also)
            if key in seen:
                continue
            seen.add(key)
            unknown = names_where(encoded.constraints, found, Verdict.UNKNOWN) + tuple(
                s.rule.id for s in encoded.doubtful
            )
            costs = names_where(encoded.costs, found, Verdict.BREAKS)
            row = Row(
                candidate=candidate,
                found=found,
                asked=asked_of(encoded.question, found),
                reason=self._reason(candidate, encoded, found, deepest),
                unknown=unknown,
                costs=costs,
            )
            (rest if unknown or costs else clean).append(row)
            hopeless = bool(encoded.doubtful) or candidate.fit is UNKNOWN
            if top and (len(clean) > top or (hopeless and len(rest) > top)):
                break
        rest.sort(key=lambda row: (len(row.unknown) > 0, len(row.costs)))
        yield from clean
        yield from rest

    def _reason(self, candidate: Candidate, encoded: Encoded, found: Mapping[str, Value], deepest: _Deepest) -> str:
        words = candidate.entry.get("reason")
        if words is not None:
            scope = self._scope(candidate.draft, candidate.own, {**encoded.question.given, **found})
            return compile_template(words, self.words).fill(scope)
        steps = found.get(self.roles["steps"])
        if steps is None:
            return "steps as asked"
        topk = found.get(self.roles["topk"], encoded.question.given.get(self.roles["topk"]))
        if topk != 1:
            width = self.search["width"]["why"]
            return f"a tree of topk {topk}: after the chains, because {width}"
        return depth_reason(
            steps=steps,
            tier=self.tier,
            stopped_by=deepest.stopped_by(found),
            deepest=deepest.of(found),
            offered=deepest.offered,
        )

    def _told_apart(self, rows: Sequence[Row]) -> list[Row]:
        """Rows of one shape say what else differs from the first of them, instead of the same reason again."""
        shape = [self.roles[role] for role in ("steps", "topk", "draft_tokens")]
        first: dict[tuple[Value, ...], tuple[int, Row]] = {}
        told = []
        for number, row in enumerate(rows, start=1):
            key = (row.candidate.id, row.candidate.draft, *(row.asked.get(name) for name in shape))
            if key not in first:
                first[key] = (number, row)
                told.append(row)
                continue
            earlier, other = first[key]
            differs = [
                f"{name} {show(row.asked.get(name))}"
                for name in row.found
                if row.asked.get(name) != other.asked.get(name)
            ]
            told.append(replace(row, reason=f"the shape of row {earlier} with {', '.join(differs)}"))
        return told

    def _judge_again(self, rows: Sequence[Row]) -> list[Walk]:
        """Walk each row once more, whole. The solver had every law as a constraint, so nothing may be found."""
        walks = []
        for row in rows:
            result = walk(self.plan, row.asked, self.facts(row.asked.get(self.roles["draft"])))
            broken = [
                i.step.rule.id
                for i in result.struck
                if i.verdict is Verdict.BREAKS and i.step.rule.effect is Effect.REJECTS
            ]
            moved = [
                name
                for name, value in row.found.items()
                if value is not None and result.values[name] not in (value, UNKNOWN)
            ]
            if broken or moved:
                raise AssertionError(f"the search let through what the walk refuses: {broken or moved}")
            walks.append(result)
        return walks

    def _impossible(self) -> str:
        """Ranks beyond the devices or weights beyond their memory, in words; empty when neither is known."""
        scope = self._scope(None, False, self.pins)
        asked = {**self.pins, **self._states(self.pins, scope)}
        result = walk(self.plan, asked, self.facts(self.pins.get(self.roles["draft"])))
        ranks = compile_expression(self.search["ranks"], self.words).evaluate(
            Scope(values=result.values, facts=scope.facts, asked=asked)
        )
        if isinstance(ranks, int) and ranks > self.ask.gpus:
            return f"the launch wants {ranks} ranks, and there are {self.ask.gpus} devices: give --gpus {ranks}, or fewer ranks"
        facts = self.facts(None)
        needed = ranks_needed(facts["model.weight_gib"], facts["gpu.memory_mib"])
        if needed is not None and needed > self.ask.gpus:
            return (
                f"the weights ({facts['model.weight_gib']:.0f} GiB) exceed the memory of {self.ask.gpus} x {self.ask.gpu.name} "
                f"({facts['gpu.memory_mib'] / 1024:.0f} GiB each): at least --gpus {needed}"
            )
        return ""

    def _alternatives(self, row: Row, encoded: Mapping[str, Encoded]) -> dict[str, tuple[Value, ...]]:
        """For settings outside the shape, the other values that are valid with the first row."""
        here = encoded[row.candidate.id]
        also = {entry["setting"] for entry in self.search["also"]}
        found = {}
        for variable in here.question.variables:
            if variable.name in also:
                others = [value for value in variable.domain if value != row.found[variable.name]]
                valid = [value for value in others if is_valid(here, {**row.found, variable.name: value})]
                if valid:
                    found[variable.name] = tuple(valid)
        return found

    def _forced(self, asked: Sequence[tuple[Candidate, Encoded]]) -> Forced | None:
        """The laws that leave only chains, when they do."""
        role = self.roles["topk"]
        for _, encoded in asked:
            domain = next((v.domain for v in encoded.question.variables if v.name == role), ())
            wide = tuple(value for value in domain if value is not None and value > 1)
            if not wide:
                continue
            question = _with_domain(encoded.question, role, wide)
            if next(solutions(replace(encoded, question=question), single=True), None) is not None:
                continue
            clash = minimal_clash(question, (), self._domain_of)
            rules = [rule for rule in clash.rules if rule in self.session.edition.rules]
            laws = [self.session.edition.rules[rule] for rule in rules]
            return Forced(
                rules=tuple(rules),
                statements=tuple(law.statement for law in laws),
                sources=tuple(source for law in laws for source in law.sources),
            )
        return None

    def _domain_of(self, name: str) -> tuple[Value, ...]:
        """The values to try for a pin that is let go, in order of preference."""
        scope = self._scope(None, False, self.pins)
        for entry in (*self.search["variables"], *self.search["also"]):
            if entry["setting"] == name:
                listed = tuple(self.domain(name, None, entry["domain"], scope))
                if not entry.get("engine_first"):
                    return listed
                rest = {key: value for key, value in self.pins.items() if key != name}
                engine = self._engine_choice(rest, self.facts(self.pins.get(self.roles["draft"]))).get(name, [])
                return tuple(dict.fromkeys([*(v for v in engine if v is not None and v is not UNKNOWN), *listed]))
        return self.session.domain(name, self.ask.pins.get(name))

    def _best(self, question: Question) -> dict[str, Value] | None:
        """The first row of a question, by the order of recommendations."""
        preference = self.preference(question)
        stages = {0: preference.frame_key, 1: preference.shape_key}
        return next(solutions(encode(question), order=lambda stage, item: stages[stage](item)), None)

    def _why_not(self, impossible: Sequence[tuple[Candidate, Question]]) -> NoAnswer:
        fixed = {self.roles["model"], self.roles["draft"], self.roles["algorithm"]}
        given = self.ask.image.sets if self.ask.image else {}
        pins = [name for name in self.pins if name not in fixed and name not in given]
        clashes = []
        exits: list[Exit] = []
        for candidate, question in impossible[:MOST_EXPLAINED]:
            clash = minimal_clash(question, pins, self._domain_of)
            clashes.append((candidate, clash))
            for way in ways_out(question, clash.pins, self._domain_of, self._best):
                asked = asked_of(way.question, way.assignment)
                changes = {name: asked.get(name) for name in way.freed if asked.get(name) != self.pins.get(name)}
                changes |= {
                    name: value for name, value in asked.items() if self.pins.get(name) != value and name not in changes
                }
                exits.append(Exit(changes=changes, asked=asked, freed=way.freed))
        off = self._speculation_off()
        if off is not None:
            exits.append(off)
        unique: dict[tuple[str, ...], Exit] = {}
        for item in exits:
            unique.setdefault(tuple(sorted(f"{name}={item.asked.get(name)}" for name in item.freed)), item)
        topk = self.roles["topk"]
        ordered = sorted(
            unique.values(), key=lambda item: (len(item.freed), bool(item.why), (item.asked.get(topk) or 1) > 1)
        )
        return NoAnswer(clashes=tuple(clashes), exits=tuple(ordered[:4]))

    def _speculation_off(self) -> Exit | None:
        """The launch without any speculative setting, when that is valid."""
        groups = self.search["turned_off"]
        dropped = {name: None for name in self.pins if any(name.startswith(prefix) for prefix in groups)}
        asked = {name: value for name, value in self.pins.items() if name not in dropped}
        asked |= self._states(asked, self._scope(None, False, asked))
        result = walk(self.plan, asked, self.facts(None))
        bad = any(i.step.rule.effect is Effect.REJECTS and i.verdict is Verdict.BREAKS for i in result.struck)
        return None if bad else Exit(changes=dropped, asked=asked, freed=tuple(dropped), why="speculation off")


class _Extended(FactTable):
    """Facts, and a few words that only a question has."""

    __slots__ = ("_table",)

    def __init__(self, facts: FactTable, extra: Mapping[str, Value]) -> None:
        super().__init__({}, lambda name: None)
        self._table = facts
        self.update(extra)

    def __missing__(self, name: str) -> Value:
        return self._table[name]


class _Deepest:
    """How deep the chains of a frame can go, and what stops them."""

    def __init__(self, encoded: Encoded, roles: Mapping[str, str]) -> None:
        self._encoded = encoded
        self._roles = roles
        domains = {variable.name: variable.domain for variable in encoded.question.variables}
        self._steps = sorted(value for value in domains.get(roles["steps"], ()) if value is not None)
        self.offered = self._steps[-1] if self._steps else 0
        self._memory: dict[tuple[Value, ...], int] = {}

    def _at(self, found: Mapping[str, Value], steps: int) -> dict[str, Value]:
        changed = {**found, self._roles["steps"]: steps}
        if self._roles["draft_tokens"] in found:
            changed[self._roles["draft_tokens"]] = steps + 1
        return changed

    def stopped_by(self, found: Mapping[str, Value]) -> tuple[str, ...]:
        """The laws that refuse the next deeper chain in the same frame."""
        steps = found[self._roles["steps"]]
        deeper = next((value for value in self._steps if value > steps), None)
        return () if deeper is None else names_where(self._encoded.constraints, self._at(found, deeper), Verdict.BREAKS)

    def of(self, found: Mapping[str, Value]) -> int:
        """The most steps that a chain in the same frame may have."""
        shape = (self._roles["steps"], self._roles["draft_tokens"])
        key = tuple(value for name, value in found.items() if name not in shape)
        if key not in self._memory:
            self._memory[key] = max(
                (steps for steps in self._steps if self._valid(self._at(found, steps))), default=found[shape[0]]
            )
        return self._memory[key]

    def _valid(self, assignment: Mapping[str, Value]) -> bool:
        return is_valid(self._encoded, assignment)


def _with_domain(question: Question, name: str, domain: tuple[Value, ...]) -> Question:
    variables = tuple(
        replace(variable, domain=domain) if variable.name == name else variable for variable in question.variables
    )
    return replace(question, variables=variables)
