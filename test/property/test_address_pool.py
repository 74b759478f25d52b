"""An address belongs to one card at most, whatever comes and goes, and the pool knows of all."""

from __future__ import annotations

from collections import Counter
from typing import Any

from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ganeti import constants, errors
from ganeti.config import verify
from ganeti.config.changes import Draft
from ganeti.config.job_claims import JobClaims
from ganeti.model import address_pool, base
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.model.node import Node

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
NETWORKS = st.sampled_from(["net-0", "net-1"])
#: 198.51.100.0/29 and 198.51.100.8/29 have eight addresses each; the last is in neither.
ADDRESSES = st.integers(0, 16).map(lambda last: f"198.51.100.{last}") | st.just("pool")


def first_state() -> Config:
    networks = {
        f"net-{n}": Network(
            uuid=f"net-{n}",
            name=f"net{n}",
            network=f"198.51.100.{8 * n}/29",
            reservations="00000000",
            ext_reservations="10000001",
        )
        for n in (0, 1)
    }
    cluster = Cluster(
        uuid="c",
        cluster_name="c",
        master_node="node",
        master_ip="192.0.2.9",
        master_netdev="lo",
        master_netmask=32,
    )
    node = Node(
        uuid="node", name="node", primary_ip="192.0.2.1", secondary_ip="192.0.2.1", group="g"
    )
    params = {"mode": "bridged", "link": "br0", "vlan": ""}
    group = NodeGroup(uuid="g", name="g", networks=dict.fromkeys(networks, params))
    return Config(
        ConfigData(
            version=constants.CONFIG_VERSION,
            cluster=cluster,
            nodes={"node": node},
            nodegroups={"g": group},
            networks=networks,
        )
    )


class Pools(RuleBasedStateMachine):
    """Jobs take addresses and put them into the configuration, some later, some never."""

    def __init__(self) -> None:
        super().__init__()
        self.config = first_state()
        self.claims = JobClaims()
        self.job = 0
        #: jobs that have addresses promised: (job, instance, cards)
        self.open: list[tuple[int, str, tuple[Nic, ...]]] = []

    def _change(self, edit: Any) -> None:
        draft = Draft(self.config, 1.0)
        edit(draft)
        self.config = draft.result()

    @rule(
        name=NAMES,
        wanted=st.lists(st.tuples(NETWORKS, ADDRESSES), max_size=3),
        external=st.booleans(),
    )
    def begin(self, name: str, wanted: list[tuple[str, str]], external: bool) -> None:
        """A job checks its parameters; a refusal ends it."""
        if any(name == other for _job, other, _cards in self.open):
            return
        self.job += 1
        cards: list[Nic] = []
        try:
            for number, (network, text) in enumerate(wanted):
                found = self.claims.claim_address(
                    text, network, lambda: self.config, self.job, external=external
                )
                cards.append(
                    Nic(
                        uuid=f"{name}{number}",
                        mac=f"{self.job}-{number}",
                        ip=found,
                        network=network,
                    )
                )
            if len({(card.network, card.ip) for card in cards}) < len(cards):
                raise errors.OpPrereqError("twice")
        except errors.GanetiError:
            self.claims.release(self.job)
            return
        self.open.append((self.job, name, tuple(cards)))

    @rule(pick=st.integers(0, 9), done=st.booleans())
    def end(self, pick: int, done: bool) -> None:
        """A job records its instance, or fails; then its claims end."""
        if not self.open:
            return
        job, name, cards = self.open.pop(pick % len(self.open))
        if done:
            old = self.config.instances.get(name)
            new = Instance(uuid=name, name=name, primary_node="node", forthcoming=True)  # type: ignore[arg-type]
            self._change(lambda draft: draft.put(base.replace(old or new, nics=cards)))
        self.claims.release(job)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if name in self.config.instances:
            self._change(lambda draft: draft.delete(self.config.instances[name]))

    @rule(network=NETWORKS, address=ADDRESSES)
    def reserve_for_others(self, network: str, address: str) -> None:
        known = self.config.networks[network]
        if address_pool.contains(known, address):
            changed = address_pool.with_external(known, take=[address])
            self._change(lambda draft: draft.put(changed))

    @invariant()
    def check_addresses(self) -> None:
        cards = Counter(
            (nic.network, nic.ip) for i in self.config.instances.values() for nic in i.nics
        )
        assert all(count == 1 for count in cards.values()), cards

    @invariant()
    def the_pool_knows(self) -> None:
        found = [text for text in verify.problems(self.config) if "address" in text]
        assert found == []

    @invariant()
    def maps_keep_their_length(self) -> None:
        for network in self.config.networks.values():
            assert len(network.reservations or "") == len(network.ext_reservations or "") == 8


Pools.TestCase.settings = examples(60, stateful_step_count=30)
TestPools = Pools.TestCase
