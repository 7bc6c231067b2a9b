"""Plays one run: starts proxies and the fake model, goes through the steps, gathers the evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from tests.cases.case import Run, Step, name_of
from tests.cases.client import client_session, exchange
from tests.cases.crowd import Crowd
from tests.cases.doors import Doors, assign, files_of
from tests.cases.evidence import Evidence, Exchange, Start, Stored
from tests.cases.faults import Malformed, Unmet, clip
from tests.cases.mapping import settings_of
from tests.cases.plan import Plan, Request, plan_of, probe_of, settings_for
from tests.cases.process import Place, Proxy, launch
from tests.cases.replies import is_model_call
from tests.cases.upstream import SUMMARY, FakeModel

OVERLAP_SECONDS = 20.0
READY_SECONDS = 20.0
SIGNALS = ("KILL", "TERM", "INT")


class Driver:
    """Plays one run in folders of its own."""

    def __init__(self, run: Run, place: Place) -> None:
        self.run = run
        self.place = place
        self.settings = settings_of(run.case.config)
        self.plan: Plan = plan_of(run)
        self.evidence = Evidence(aliases=self.plan.aliases)
        self.proxies: list[Proxy] = []
        self.started = 0
        self.current = 0  # index of the proxy that gets plain requests
        self.waiting: list[asyncio.Task[None]] = []  # overlapped requests
        self.crowd: tuple[Crowd, asyncio.Task[None]] | None = None
        self.watched = self._watched()
        self.actions: Mapping[str, Callable[[Step], Awaitable[None]]] = {
            "client_request": self._client_request,
            "concurrent_with": self._concurrent_with,
            "spawn_proxies": self._spawn_proxies,
            "parallel_requests": self._parallel_requests,
            "kill_process": self._kill_process,
            "read_facts": self._read_facts,
            "start_proxy": self._start_proxy,
        }

    async def play(self) -> Evidence:
        """Goes through the steps and gives what they have shown; ends every process that it started."""
        self.place.make()
        async with FakeModel(self.plan.script) as self.model, client_session() as self.http:
            try:
                for step in self.run.steps:
                    action = self.actions.get(name_of(step))
                    if action is not None:  # the others say what the model does, which the plan has taken in
                        await action(step)
                for label in self.plan.probes:
                    await self._send(probe_of(self.run.case, label))
                await self._join()
                await self._gather()
            finally:
                for task in self._open_tasks():
                    task.cancel()
                for proxy in self.proxies:
                    await proxy.stop()
            self._read_folders()
        return self.evidence

    # requests

    async def _client_request(self, step: Step) -> None:
        request = self.plan.requests[step["label"]]
        if request.overlapped:
            await self._proxy()
            self.waiting.append(asyncio.create_task(self._send(request)))
            await asyncio.sleep(0)
            return
        before = await self._count(step)
        await self._send(request)
        if self.waiting and not self._next_overlaps(step):
            await self._join()
        after = await self._count(step)
        self.evidence.fact_counts[request.label] = (before, after)

    async def _send(self, request: Request) -> None:
        proxy = await self._proxy()
        self.evidence.exchanges[request.label] = Exchange(request.label, request.method, request.path, request.body)
        seen = await exchange(self.http, proxy.url, request, self.model)
        self.evidence.exchanges[request.label] = seen
        if seen.fault and not self._broken_on_purpose(request):
            self.evidence.problems.append(f"{request.label}: {seen.fault}")

    def _broken_on_purpose(self, request: Request) -> bool:
        reply = self.plan.script.replies.get(request.label, {})
        return bool(request.overlapped or reply.get("then"))

    def _next_overlaps(self, step: Step) -> bool:
        place = next(number for number, one in enumerate(self.run.steps) if one is step)
        return any(name_of(one) == "concurrent_with" for one in self.run.steps[place + 1 : place + 2])

    async def _join(self) -> None:
        for gate in self.plan.script.gates.values():
            gate.set()
        for task in self.waiting:
            await task
        self.waiting.clear()
        if self.crowd is not None:
            crowd, talking = self.crowd
            await talking
            self.evidence.problems.extend(crowd.problems)
            self.crowd = None

    def _open_tasks(self) -> list[asyncio.Task[None]]:
        return [*self.waiting, *([self.crowd[1]] if self.crowd else [])]

    # control actions

    async def _concurrent_with(self, step: Step) -> None:
        """Waits until the request is held by the model, so that the next one overlaps it for certain."""
        label = step["label"]
        script = self.plan.script
        held = [one for one in (label, label + SUMMARY) if one in script.delays or one in script.gates]
        arrivals = [asyncio.create_task(self.model.arrival(one).wait()) for one in held]
        done, _ = await asyncio.wait(
            {*self.waiting, *arrivals}, timeout=OVERLAP_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not done & set(arrivals):
            self.evidence.problems.append(f"{label} never waited for {' or '.join(held)}: nothing could overlap it")
        for task in arrivals:
            task.cancel()

    async def _spawn_proxies(self, step: Step) -> None:
        shared = bool(step.get("shared_data_dir", True))
        for _ in range(step["count"]):
            await self._launch(self.started if not shared else 0)

    async def _parallel_requests(self, step: Step) -> None:
        await self._proxy()
        crowd = Crowd(step, self.run.case.endpoint, self._crowd_send)
        self.crowd = (crowd, asyncio.create_task(crowd.talk()))
        place = next(number for number, one in enumerate(self.run.steps) if one is step)
        following = self.run.steps[place + 1 : place + 2]
        if not any(name_of(one) == "kill_process" and one.get("when") == "during_write" for one in following):
            await self._join()

    async def _crowd_send(self, number: int, request: Request) -> Exchange:
        """Sends to the session's own proxy, or to another one when that is dead."""
        alive = [proxy for proxy in self.proxies if proxy.alive] or [await self._proxy()]
        home = self.proxies[number % len(self.proxies)]
        proxy = home if home.alive else alive[number % len(alive)]
        return await exchange(self.http, proxy.url, request, self.model)

    async def _kill_process(self, step: Step) -> None:
        name = str(step.get("signal", "KILL")).removeprefix("SIG")
        if name not in SIGNALS:
            raise Malformed(f"kill_process: unknown signal {name!r}")
        if step["which"] > len(self.proxies) or not self.proxies:
            raise Malformed(f"kill_process: there is no process {step['which']}")
        await self._moment(str(step.get("when", "now")))
        await self.proxies[min(step["which"], len(self.proxies) - 1)].kill(name)
        await self._join()

    async def _moment(self, when: str) -> None:
        """Waits for the moment to kill: at once, or in the middle of what runs."""
        if when == "now":
            return
        if when != "during_write":
            raise Malformed(f"kill_process: unknown moment {when!r}")
        if self.crowd is not None:
            await self.crowd[0].half.wait()
        elif self.waiting:
            label = list(self.evidence.exchanges)[-1]
            async with asyncio.timeout(OVERLAP_SECONDS):
                await self.model.arrival(label).wait()
        else:
            raise Malformed("kill_process: nothing is being written")

    async def _read_facts(self, step: Step) -> None:
        del step
        await self._proxy()
        count = await self._doors().count_facts()
        self.evidence.fact_counts = {"read_facts": (count, count), **self.evidence.fact_counts}

    async def _start_proxy(self, step: Step) -> None:
        server: dict[str, Any] = {}
        if "bind" in step:
            server["host"] = step["bind"]
        if step.get("token") is not None:
            server["token"] = step["token"]
        own = settings_of(step.get("config", {}), strict=False)
        if server:
            own = settings_for(own, {"server": server})
        result = await self._launch(self.started, own)
        self.evidence.starts.append(result if isinstance(result, Start) else Start(False, "it listens"))

    # processes

    async def _proxy(self) -> Proxy:
        """Gives the proxy that plain requests go to; starts one where none runs, over the first data folder."""
        if self.proxies and self.proxies[self.current].alive:
            return self.proxies[self.current]
        alive = [number for number, proxy in enumerate(self.proxies) if proxy.alive]
        if alive:
            self.current = alive[-1]
            return self.proxies[self.current]
        started = await self._launch(0)
        if isinstance(started, Start):
            raise Unmet(f"the proxy doesn't start: {clip(started.output[-400:], 400)}")
        return started

    async def _launch(self, data: int, extra: Mapping[str, Any] | None = None) -> Proxy | Start:
        own = {"upstream": {"url": self.model.url}, "data": str(self.place.data(data))}
        settings = settings_for(settings_for(self.settings, extra or {}), own)
        self.started += 1
        result = await launch(self.place, settings, self.started)
        if isinstance(result, Proxy):
            self.proxies.append(result)
            self.current = len(self.proxies) - 1
            await self._ready(result)
        elif extra is None:
            raise Unmet(f"the proxy doesn't start: {clip(result.output[-400:], 400)}")
        return result

    async def _ready(self, proxy: Proxy) -> None:
        headers = {"authorization": f"Bearer {proxy.token}"} if proxy.token else {}
        status = 0
        async with asyncio.timeout(READY_SECONDS):
            while status != 200:
                try:
                    async with self.http.get(f"{proxy.url}/readyz", headers=headers) as response:
                        status = response.status
                except aiohttp.ClientError as error:
                    raise Unmet(f"the proxy listens, but gives no answer: {error}") from error
                await asyncio.sleep(0 if status == 200 else 0.05)

    # evidence

    def _watched(self) -> set[str]:
        checks = self.run.case.expect.get("checks", [])
        entries = [check for check in checks if isinstance(check, dict)] if isinstance(checks, list) else []
        return {str(check.get("op")) for check in entries}

    async def _count(self, step: Step) -> int:
        del step
        if "facts_count_same" not in self.watched:
            return 0
        await self._proxy()
        return await self._doors().count_facts()

    def _doors(self) -> Doors:
        return Doors(self.place, self.http, self.proxies)

    async def _gather(self) -> None:
        """Reads the doors while a proxy runs; starts one when the last was killed."""
        evidence = self.evidence
        evidence.forwards, evidence.decoys = self.model.forwards, self.model.decoys
        for label in sorted({*self.plan.script.replies, *self.plan.script.delays}):
            if not evidence.upstream(label):  # a case that rests on this answer would pass for nothing
                evidence.problems.append(f"the model was never asked for {label}")
        if not self.proxies:
            return
        await self._proxy()
        doors = self._doors()
        wanted = {
            label: one.header("x-goalkeeper-receipt")
            for label, one in evidence.exchanges.items()
            if label in evidence.forwards and is_model_call(one.path)
        }
        receipts = await doors.settle(wanted)
        evidence.receipt_of = assign(wanted, receipts)
        evidence.stored = Stored(facts=await doors.read("facts"), pins=await doors.read("pins"), receipts=receipts)
        if self.watched & {"transcript_contains", "transcript_block"}:
            evidence.stored.transcript = await doors.transcript()
        if "archive_roundtrip" in self.watched:
            evidence.stored.archive = await doors.originals(evidence.archive_ids)
        evidence.stored.faults = doors.faults

    def _read_folders(self) -> None:
        self.evidence.stored.files = files_of(self.proxies)
        self.evidence.stored.strays = self.place.strays()
