"""The switch-over at sites that lose more than those on Spark do: reminders and crashes.

Sites on Spark save windows and planner with every step, and their links send again what was lost.
The switch-over itself needs less: `laws.exploring_sites` visits every world in which messages are
lost for good and windows are gone after a crash.
"""

from __future__ import annotations

from plait.sites.protocol.messages import GiveUp, Sent, SwitchMessage, WhatNow
from plait.sites.protocol.switch_over import SwitchOver, SwitchTurn, time_out


def remind(state: SwitchOver) -> SwitchTurn:
    """Ask the sites that it waits for to repeat themselves; a host calls it now and then.

    >>> from plait.sites.protocol.switch_over import begin, windows_full
    >>> state, _ = windows_full(begin(1, "N1", ["N1", "N2"])[0], 70)
    >>> [one.message for one in remind(state)[1]]
    [WhatNow(migration=1, sender='N1')]
    """
    ask = WhatNow(state.migration, state.me)
    return state, () if state.over else tuple(Sent(state.me, site, ask) for site in state.others)


def recover(state: SwitchOver) -> SwitchTurn:
    """Go on after a crash from what was saved; windows that were not yet full are gone.

    >>> from plait.sites.protocol.switch_over import begin
    >>> recover(begin(1, "N1", ["N1", "N2"])[0])[0].phase
    'given-up'
    """
    return time_out(state) if state.phase == "copying" else remind(state)


def without_record(me: str, message: SwitchMessage) -> SwitchTurn:
    """A site that knows nothing of a migration (it crashed before it had saved any) gives it up.

    It has not said `LocalReady`, or it would have a record.

    >>> state, sent = without_record("N1", WhatNow(4, "N2"))
    >>> state.phase, sent[0].message
    ('given-up', GiveUp(migration=4, sender='N1'))
    """
    state = SwitchOver(message.migration, me, (message.sender,), "given-up")
    return state, (Sent(me, message.sender, GiveUp(state.migration, me)),)
